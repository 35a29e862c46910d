"""The names in the tables of docs/guide/coming-from.md exist, here and in libraries that are installed."""

import ast
import inspect
import json
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from convexboost import ConvexBoostClassifier, ConvexBoostRanker, ConvexBoostRegressor
from convexboost.learners import Tree
from convexboost.losses import as_loss
from convexboost.registry import available, resolve

PAGE = (Path(__file__).parents[1] / "docs" / "guide" / "coming-from.md").read_text()
LIBRARIES = ("XGBoost", "LightGBM", "CatBoost", "EBM", "HistGradientBoosting")


def section(title):
    """Return the part of the page under a heading."""
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def column(title, library):
    """Return the code in a column of the table of a section."""
    head, _, *rows = [line.split("|")[1:-1] for line in section(title).splitlines() if line.startswith("|")]
    place = [cell.strip() for cell in head].index(library)
    return [code for row in rows for code in re.findall(r"`([^`]+)`", row[place])]


def parameters(*functions):
    """Return the names of the parameters of functions."""
    return {name for function in functions for name in inspect.signature(function).parameters}


def names_of(library):
    """Return parameters, attributes and functions of a library that may be named in the tables."""
    if library == "XGBoost":
        xgboost = pytest.importorskip("xgboost")
        booster = xgboost.train({}, xgboost.DMatrix(np.zeros((4, 1)), np.arange(4)), 1)
        native = json.loads(booster.save_config())["learner"]["gradient_booster"]["tree_train_param"]
        models = (xgboost.XGBClassifier, xgboost.XGBRegressor, xgboost.XGBRanker, xgboost.XGBModel)
        calls = (xgboost.train, xgboost.Booster.predict, *(m.fit for m in models))
        return {*native, "Booster.predict"}.union(parameters(*models, *calls), *map(dir, models))
    if library == "LightGBM":
        lightgbm = pytest.importorskip("lightgbm")
        basic = pytest.importorskip("lightgbm.basic")
        native = {n for names in basic._ConfigAliases._get_all_param_aliases().values() for n in names}
        models = (lightgbm.LGBMModel, lightgbm.LGBMRanker)
        calls = (lightgbm.early_stopping, lightgbm.LGBMModel.predict, *(m.fit for m in models))
        return native.union(parameters(*models, *calls), dir(lightgbm.LGBMModel), dir(lightgbm), PREDICT)
    if library == "CatBoost":
        catboost = pytest.importorskip("catboost")
        models = (catboost.CatBoostClassifier, catboost.CatBoostRegressor)
        return {"Pool"}.union(parameters(*models, catboost.CatBoost.fit), *map(dir, models))
    if library == "EBM":
        ebm = pytest.importorskip("interpret.glassbox").ExplainableBoostingRegressor
        return parameters(ebm, ebm.fit).union(dir(ebm))
    models = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)
    return {"validation_score_"}.union(parameters(*models, *(m.fit for m in models)), *map(dir, models))


#: A keyword of `predict` that LightGBM takes as **kwargs.
PREDICT = {"pred_contrib"}
TABLES = ("Trees and rounds", "Everything else")


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_names_of_other_libraries_exist(library):
    named = {name for title in TABLES for name in column(title, library)}
    assert len(named) > 10
    assert named - names_of(library) - {"fit", "predict"} == set()


def test_our_names_exist():
    estimators = (ConvexBoostClassifier, ConvexBoostRegressor, ConvexBoostRanker)
    known = parameters(*estimators, *(estimator.fit for estimator in estimators))
    known |= set(re.findall(r"^ {4}(\w+_) :", inspect.getdoc(ConvexBoostRegressor), re.M))
    known |= set(re.findall(r"^(\w+_) :", inspect.getdoc(ConvexBoostRegressor), re.M))
    known = known.union(*map(dir, estimators))
    for code in {code for title in TABLES for code in column(title, "here")} - {"fit", '"additive"'}:
        if match := re.fullmatch(r"Tree\((\w+)\)", code):
            assert match[1] in parameters(Tree), code
        else:
            assert re.match(r"\w+", code)[0] in known, code


def calls():
    """Return library, estimator and keywords of the fits that are translated."""
    found = re.findall(r"^\*\*(\w+)\*\* `(\w+\(.*?\))`", section("The same fit"), re.M)
    for library, code in found:
        call = ast.parse(code, mode="eval").body
        yield library, call.func.id, {word.arg for word in call.keywords}


def test_the_fits_that_are_translated_use_names_of_the_tables():
    assert {library for library, _, _ in calls()} == set(LIBRARIES) - {"HistGradientBoosting"}
    for library, _, keywords in calls():
        named = {name for title in TABLES for name in column(title, library)}
        assert keywords - named - {"alpha"} == set(), library


def fit_with(library, loss):
    """Train a moment with a loss that is named in the table; raises where it is unknown."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.arange(60) % (3 if "multi" in loss.lower() and "quantile" not in loss.lower() else 2) + 0.0
    y += 1.0 if "gamma" in loss else 0.0
    if library == "XGBoost":
        xgboost = pytest.importorskip("xgboost")
        rows = xgboost.DMatrix(X, y, qid=np.arange(60) // 6) if "rank" in loss else xgboost.DMatrix(X, y)
        settings = {"objective": loss, "verbosity": 0}
        settings |= {"num_class": 3} if "multi" in loss else {}
        settings |= {"quantile_alpha": [0.1, 0.9]} if "quantile" in loss else {}
        xgboost.train(settings, rows, 1)
    elif library == "LightGBM":
        lightgbm = pytest.importorskip("lightgbm")
        rows = lightgbm.Dataset(X, y, group=[6] * 10 if "rank" in loss else None)
        settings = {"objective": loss, "verbose": -1, "num_class": 3 if "multi" in loss else 1}
        lightgbm.train(settings, rows, 1)
    elif library == "CatBoost":
        catboost = pytest.importorskip("catboost")
        pool = catboost.Pool(X, y, group_id=np.arange(60) // 6 if "Pair" in loss else None)
        settings = {"loss_function": loss, "iterations": 1, "verbose": 0, "allow_writing_files": False}
        catboost.CatBoost(settings).fit(pool)
    elif library == "EBM":
        glassbox = pytest.importorskip("interpret.glassbox")
        kind = "Classifier" if loss == "log_loss" else "Regressor"
        settings = {"objective": loss, "max_rounds": 1, "outer_bags": 1, "interactions": 0, "n_jobs": 1}
        getattr(glassbox, f"ExplainableBoosting{kind}")(**settings).fit(X, y)
    elif loss == "log_loss":
        HistGradientBoostingClassifier(loss=loss, max_iter=1).fit(X, y)
    else:
        HistGradientBoostingRegressor(loss=loss, max_iter=1, quantile=0.5).fit(X, y)


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_losses_of_other_libraries_exist(library):
    for loss in sorted(set(column("Losses", library))):
        fit_with(library, loss)


def test_our_losses_exist():
    for name in column("Losses", "here"):
        assert as_loss(resolve("loss", name, available("convexboost.losses"), [])), name
