"""The benchmark of tables: its data, its measures, its summary and what it keeps."""

import argparse
import json
from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics

from convexboost import ConvexBoostClassifier, ConvexBoostRegressor

NAMES = ("tables", "tables_data", "tables_page", "tables_picture", "accuracy_statistics", "accuracy_models")


# -- measures --------------------------------------------------------------------------------------------


def test_one_minus_auc_is_that_of_scikit_learn_with_ties_and_counts(bench):
    rng = np.random.default_rng(0)
    label, score = rng.integers(0, 2, 300), rng.integers(0, 20, 300) / 20
    counts = rng.integers(0, 4, 300)
    found = bench.accuracy_statistics.one_minus_auc(label, score)
    assert found(np.ones(300)) == pytest.approx(1 - metrics.roc_auc_score(label, score))
    weighted = metrics.roc_auc_score(label, score, sample_weight=counts)
    assert found(counts) == pytest.approx(1 - weighted)
    assert np.isnan(found(label))


def test_a_ratio_is_clipped_on_both_sides(bench):
    clipped = bench.accuracy_statistics.clipped
    assert clipped(1.0, 2.0) == 0.8
    assert clipped(3.0, 2.0) == 1.25
    assert clipped(2.1, 2.0) == pytest.approx(1.05)
    assert clipped(0.0, 0.0) == 1.0


def test_ties_can_share_the_better_rank(bench):
    ranks = bench.accuracy_statistics.ranks
    values = {"a": 1.0, "b": 1.0, "c": 2.0, "d": np.inf}
    assert ranks(values) == {"a": 1.5, "b": 1.5, "c": 3.0, "d": 4.0}
    assert ranks(values, ties="min") == {"a": 1.0, "b": 1.0, "c": 3.0, "d": 4.0}


def test_the_losses_are_those_of_scikit_learn(bench):
    data, rng = bench.tables_data, np.random.default_rng(0)
    y, P = rng.integers(0, 3, 100), rng.dirichlet(np.ones(3), 100)
    rows = bench.accuracy_models.Rows(None, y)
    found = data.losses("classes", rows, P)
    assert set(found) == {"log-loss", "error"}
    assert found["log-loss"].mean() == pytest.approx(metrics.log_loss(y, P))
    assert found["error"].mean() == pytest.approx(metrics.zero_one_loss(y, P.argmax(axis=1)))
    two = data.losses("classes", rows._replace(y=y % 2), P[:, :2] / P[:, :2].sum(axis=1, keepdims=True))
    assert set(two) == {"log-loss", "error", "label", "score"}
    numbers = rows._replace(y=rng.normal(size=100))
    assert data.losses("squared", numbers, P[:, 0])["RMSE"].mean() == pytest.approx(
        metrics.mean_squared_error(numbers.y, P[:, 0])
    )
    assert data.losses("quantile:0.9", numbers, P[:, 0])["pinball 0.9"].mean() == pytest.approx(
        metrics.mean_pinball_loss(numbers.y, P[:, 0], alpha=0.9)
    )


# -- data ------------------------------------------------------------------------------------------------


@pytest.fixture
def tables(tmp_path, monkeypatch, bench):
    """Two small tables: numbers, and three classes of which one has a single row."""
    pandas, rng, n = pytest.importorskip("pandas"), np.random.default_rng(0), 80
    X = pandas.DataFrame({"row": np.arange(n), "word": rng.choice(["x", "y", ""], n)})
    targets = {"few_numbers": rng.normal(size=n), "few_classes": np.array(["b", "a"])[np.arange(n) % 2]}
    targets["few_classes"][5] = "c"
    for name, y in targets.items():
        folder = tmp_path / "tables" / name
        folder.mkdir(parents=True)
        X.assign(target=y).to_csv(folder / "table.csv.gz", index=False)
        about = {"rows": n, "features": 2, "categorical": ["word"], "target": "target", "split_seed": 7}
        about |= {"task": "regression"} if "numbers" in name else {"task": "multiclass"}
        about |= {"classes": {"a": 40, "b": 39, "c": 1}} if "classes" in name else {}
        (folder / "meta.json").write_text(json.dumps(about))
    monkeypatch.setenv("CONVEXBOOST_DATA", str(tmp_path))
    yield bench.tables_data
    bench.tables_data.meta.cache_clear()
    bench.tables_data.load.cache_clear()


def test_the_test_rows_are_those_of_the_fixed_split(tables):
    whole = tables.load("few_numbers")
    expected = np.random.default_rng(7).permutation(80)[:20]
    np.testing.assert_array_equal(whole.test.X["row"], np.sort(expected))
    assert sorted([*whole.train.X["row"], *whole.test.X["row"]]) == list(range(80))
    assert whole.train.X["word"].dtype == whole.test.X["word"].dtype
    assert whole.train.X["word"].isna().any()


def test_training_rows_are_split_without_the_test_rows(tables):
    whole, split = tables.load("few_numbers"), tables.parts("few_numbers", "training")
    assert sorted([*split.train.X["row"], *split.test.X["row"]]) == sorted(whole.train.X["row"])
    assert len(split.test.y) == 15
    assert len(tables.parts("few_numbers", "training", limit=20).train.y) == 15


def test_a_class_that_cannot_be_learned_is_not_tested(tables, bench):
    rows = bench.accuracy_models.Rows(np.arange(8)[:, None], np.array([0, 0, 0, 1, 2, 2, 2, 2]))
    for seed in range(20):
        train, held, _ = tables.held_out(rows, "few_classes", seed)
        assert set(held.y) <= set(train.y) == set(range(train.y.max() + 1))
        present = {0, 1, 2} if 3 in train.X else {0, 2}
        assert len(set(train.y)) == len(present)
        assert (3 in held.X) is False


# -- summary ---------------------------------------------------------------------------------------------


def result(loss, seconds=1.0):
    """Return what is kept of a fit with the same loss on 50 rows."""
    return {"losses": {"absolute error": [loss] * 50}, "fit": seconds, "predict": 0.0}


def rows(bench, *tables_of_results):
    """Return rows of the absolute error; a number is a loss, a text why the library failed."""
    names = (bench.tables_data.OURS, *bench.tables_data.PEERS)
    made = []
    for n, values in enumerate(tables_of_results):
        kept = {
            name: {"failed": value} if isinstance(value, str) else value if value is None else result(*value)
            for name, value in zip(names, values, strict=True)
        }
        made.append(bench.tables_page.Row(f"table {n}", "absolute", "absolute error", kept, resamples=50))
    return made


def test_the_summary_ranks_a_failure_last_and_clips_ratios(bench):
    found = bench.tables_page.summary(
        rows(
            bench,
            [(1.0, 6.0), (2.0, 2.0), (4.0, 1.0), "too many levels", (4.0, 1.0)],
            [(3.0, 6.0), (3.0, 3.0), (2.0, 1.0), (5.0, 1.0), (6.0, 1.0)],
        )
    )["absolute error"]
    assert found["mean ranks"] == {
        "convexboost": 1.5,
        "LightGBM": 2.0,
        "XGBoost": 2.0,
        "HistGradientBoosting": 4.5,
        "CatBoost": 4.0,
    }
    assert found["ratio"] == pytest.approx((0.8 * 1.25) ** 0.5)
    assert (found["better"], found["worse"]) == (["table 0"], ["table 1"])
    assert found["cost"]["LightGBM"] == pytest.approx(6.0**0.5)
    assert found["cost"]["HistGradientBoosting"] == pytest.approx(6.0)


def test_our_default_is_compared_with_the_models_of_the_searches(bench):
    default = rows(bench, [(1.0,), (2.0,), (2.0,), (2.0,), (2.0,)], [(2.1,), (2.0,), (2.0,), (2.0,), (2.0,)])
    tuned = rows(
        bench, [(1.1,), (2.0,), (0.9,), "too slow", (2.0,)], [(2.0,), (2.0,), (2.0,), (2.0,), (2.0,)]
    )
    text = bench.tables_page.untuned_section(default, tuned)
    to_ours, to_best = (1.0 / 1.1 * 2.1 / 2.0) ** 0.5, (1.0 / 0.9 * 2.1 / 2.0) ** 0.5
    assert text.splitlines()[-1] == f"| absolute error | 2 | 1 | {to_ours:.3f} | {to_best:.3f} |"
    unfinished = rows(bench, [None, (2.0,), (2.0,), (2.0,), (2.0,)])
    assert bench.tables_page.untuned_section(default, unfinished) == ""


def test_a_table_that_some_library_has_not_seen_is_left_out(bench):
    some = rows(bench, [(1.0,), (2.0,), (2.0,), (2.0,), (2.0,)], [None, (2.0,), (2.0,), (2.0,), (2.0,)])
    assert bench.tables_page.summary(some)["absolute error"]["tables"] == 1
    assert "not all libraries were run: table 1" in bench.tables_page.summary_section(some)
    none = bench.tables_page.summary_section(some[1:])
    assert "convexboost lacks 1 of 1 fits" in none
    text = bench.tables_page.goals(some)
    assert "best mean rank in every measure: in 1 of 1 (reached)" in text
    assert "at most 0.98 in 2: in 1 (**missed**)" in text


def test_a_peer_that_is_better_and_cheaper_is_named(bench):
    worse = rows(bench, [(2.0, 3.0), (1.9, 1.0), (3.0, 1.0), (1.0, 9.0), (3.0, 9.0)])
    assert "lower loss and lower CPU time on average: LightGBM (**missed**)" in bench.tables_page.goals(worse)


def test_the_root_is_taken_of_the_mean_square(bench):
    kept = {name: {**result(0.0), "losses": {"RMSE": [1.0, 7.0]}} for name in ("convexboost", "LightGBM")}
    row = bench.tables_page.Row("any", "squared", "RMSE", kept, resamples=20)
    assert row.values["convexboost"] == 2.0
    assert set(np.round(row.drawn["LightGBM"], 6)) <= {1.0, 2.0, round(7**0.5, 6)}


def test_the_picture_compares_the_least_loss_up_to_a_cost(bench):
    Point, (ours, *peers) = bench.tables_picture.Point, ("convexboost", *bench.tables_data.PEERS)
    at = {Point(name): (2.0, 10.0) for name in (ours, *peers)}
    for name in peers:
        at |= {Point(name, 0.1, 10): (3.0, 10.0), Point(name, 0.1, 20): (1.2, 40.0)}
    at |= {Point(ours, 0.1, 10): (1.1, 9.0), Point(ours, 0.1, 20): (1.0, 80.0)}
    found = bench.tables_picture.Picture.of({"whole": at, "part": {**at, Point(ours): None}})
    assert (found.tables, found.left_out) == (["whole"], ["part"])
    assert found.points[Point(ours)] == pytest.approx((1.0, 2.0))
    assert found.at(ours, 0.5) == np.inf
    assert found.at(ours, 1.0) == pytest.approx(1.1)
    assert found.at("XGBoost", 1.0) == pytest.approx(2.0)  # 3 times the best counts as 2 times
    assert found.is_lowest
    at[Point("XGBoost", 0.1, 20)] = (1.05, 40.0)
    assert not bench.tables_picture.Picture.of({"whole": at}).is_lowest


# -- the work --------------------------------------------------------------------------------------------


def arguments(folder, **changes):
    given = {"runs": folder, "jobs": 0, "retry": False, "timeout": 60.0, "repeats": 1, "trials": 3}
    given |= {
        "rounds": 5,
        "rows": "training",
        "limit_rows": None,
        "only": None,
        "tables": None,
        "limit": 10.0,
    }
    return argparse.Namespace(**{**given, **changes})


def test_ours_at_the_defaults_is_the_bare_estimator(bench):
    ours = bench.tables.SHORT["ours"]
    assert (
        ours.make("classes", {}, 0).get_params()
        == ConvexBoostClassifier(random_state=0, n_jobs=1).get_params()
    )
    assert (
        ours.make("squared", {}, 0).get_params()
        == ConvexBoostRegressor(random_state=0, n_jobs=1).get_params()
    )


def test_a_result_is_made_once_and_a_failure_is_kept(bench, tables, tmp_path, monkeypatch):
    made = []

    class Library(bench.accuracy_models.Library):
        name, package, rounds = "convexboost", "convexboost", "n_rounds"
        objectives = bench.tables.SHORT["ours"].objectives

        def make(self, objective, setting, seed):
            made.append(objective)
            if objective == "classes":
                raise ValueError("too many levels\nfor this library")

        def fit(self, model, train, held=None):
            return model

        def n_rounds(self, model):
            return 3

        def predict(self, model, X, method="predict"):
            return np.zeros(len(X))

    monkeypatch.setitem(bench.tables.LIBRARIES, "convexboost", Library())
    monkeypatch.setattr(bench.tables, "warm", lambda name, kind: None)
    runs = bench.tables.Runs(arguments(tmp_path), bench.tables.run, Path("none"), bench.tables.LIBRARIES)
    for _ in range(2):
        for name, objective in (("few_numbers", "absolute"), ("few_classes", "classes")):
            spec = bench.tables.spec_of(bench.tables.Cell(name, objective, "convexboost"), runs.arguments)
            found = runs.make(spec)
        assert made == ["absolute", "classes"]
    assert found["failed"] == "ValueError: too many levels"
    kept = runs.find(
        bench.tables.spec_of(bench.tables.Cell("few_numbers", "absolute", "convexboost"), runs.arguments)
    )
    assert len(kept["losses"]["absolute error"]) == 15
    assert kept["rounds"] == 3


def test_a_search_ends_at_its_limit_and_fits_the_best_trial(bench, tables, tmp_path):
    specs = []

    def run(spec):
        specs.append(spec)
        if spec["trial"]:
            return {"scores": {"absolute error": len(specs)}, "rounds": {"absolute error": 4}, "seconds": 6.0}
        return {**result(1.0), "seconds": 1.0}

    runs = bench.tables.Runs(arguments(tmp_path), run, Path("none"), bench.tables.LIBRARIES)
    cell = bench.tables.Cell("few_numbers", "absolute", "LightGBM")
    bench.tables.search(runs, cell)
    assert [spec["trial"] for spec in specs] == [True, True, False]
    assert specs[2]["setting"] == {**specs[0]["setting"], "n_estimators": 4}
    found = bench.tables._tuned(runs, cell)
    assert found["trials"] == (2, 3)
    assert found["search"] == 12.0
