"""The benchmark of accuracy: its statistics against known cases, its losses against scikit-learn's."""

import argparse
import inspect
import re

import numpy as np
import pytest
import scipy.stats
from sklearn import metrics
from sklearn.datasets import make_classification, make_regression

from convexboost import datasets
from convexboost.metrics import disagreement, ndcg

NAMES = ("accuracy", "accuracy_data", "accuracy_models", "accuracy_page", "accuracy_statistics")
PEERS = ("LightGBM", "XGBoost", "CatBoost", "HistGradientBoosting")


# -- statistics ------------------------------------------------------------------------------------------


def test_the_bootstrap_is_that_of_scipy(bench):
    rng = np.random.default_rng(0)
    peer = rng.exponential(size=400)
    ours = 0.9 * peer + rng.exponential(0.1, 400)
    found = bench.accuracy_statistics.compare(ours, peer, np.ones(400), resamples=4000)

    def ratio(a, b, axis):
        return a.mean(axis=axis) / b.mean(axis=axis)

    wanted = scipy.stats.bootstrap(
        (ours, peer), ratio, paired=True, method="percentile", n_resamples=4000, rng=1
    ).confidence_interval
    assert found.ratio == pytest.approx(ours.mean() / peer.mean())
    assert found.low == pytest.approx(wanted.low, abs=2e-3)
    assert found.high == pytest.approx(wanted.high, abs=2e-3)


def test_pairing_finds_a_small_difference_that_all_examples_share(bench):
    losses = np.random.default_rng(0).exponential(size=200)
    compare = bench.accuracy_statistics.compare
    assert compare(losses + 1e-3, losses, np.ones(200)).worse
    assert compare(losses - 1e-3, losses, np.ones(200)).better
    same = compare(losses, losses, np.ones(200))
    assert (same.ratio, same.low, same.high, same.worse, same.better) == (1.0, 1.0, 1.0, False, False)


def test_about_one_comparison_in_twenty_of_equals_is_significant(bench):
    rng = np.random.default_rng(0)
    compare = bench.accuracy_statistics.compare
    found = [compare(*rng.exponential(size=(2, 100)), np.ones(100), resamples=400) for _ in range(300)]
    share = np.mean([outcome.worse or outcome.better for outcome in found])
    assert 0.02 < share < 0.09


def test_a_peer_without_errors_is_compared_by_the_difference(bench):
    found = bench.accuracy_statistics.compare(np.ones(20), np.zeros(20), np.ones(20))
    assert found.ratio == np.inf
    assert found.worse
    assert not found.better


def test_weights_make_a_ratio_of_sums(bench):
    weight, losses = np.array([1.0, 3.0]), np.array([[0.0], [1.0]])
    assert bench.accuracy_statistics.mean(losses, weight) == pytest.approx([0.75])
    drawn = bench.accuracy_statistics.bootstrap(losses, weight)
    assert set(np.unique(drawn)) == {0.0, 0.75, 1.0}
    assert np.mean(drawn == 0.75) == pytest.approx(0.5, abs=0.05)


def test_ranks_share_ties_and_skip_what_is_missing(bench):
    ranks, mean_ranks = bench.accuracy_statistics.ranks, bench.accuracy_statistics.mean_ranks
    assert ranks({"a": 2.0, "b": 1.0, "c": 2.0}) == {"a": 2.5, "b": 1.0, "c": 2.5}
    rows = [{"a": 1.0, "b": 2.0, "c": 3.0}, {"a": 5.0, "b": 4.0}]
    assert mean_ranks(rows) == {"a": 1.5, "b": 1.5, "c": 3.0}


def test_the_goals(bench):
    statistics = bench.accuracy_statistics
    outcomes = [
        statistics.Outcome(0.5, 0.4, 0.6, worse=False, better=True),
        statistics.Outcome(2.0, 1.5, 2.5, worse=True, better=False),
    ]
    found = statistics.goals("a", [{"a": 1.0, "b": 2.0}, {"a": 2.0, "b": 1.0}], outcomes)
    assert found["geometric mean"] == pytest.approx(1.0)
    assert (found["worse"], found["better"], found["is first"]) == ([1], [0], True)


# -- losses and data -------------------------------------------------------------------------------------


def test_the_losses_are_those_of_scikit_learn(bench):
    rng, data, models = np.random.default_rng(0), bench.accuracy_data, bench.accuracy_models
    y, P = rng.normal(size=(2, 100))
    rows = models.Rows(None, y)

    def loss(objective, rows, P):
        (found,) = data.losses(objective, rows, P).values()
        return found.mean()

    assert loss(models.ABSOLUTE, rows, P) == pytest.approx(metrics.mean_absolute_error(y, P))
    assert loss(models.SQUARED, rows, P) == pytest.approx(metrics.mean_squared_error(y, P))
    for objective, q in ((models.LOW, 0.1), (models.HIGH, 0.9)):
        assert loss(objective, rows, P) == pytest.approx(metrics.mean_pinball_loss(y, P, alpha=q))
    several = np.column_stack([P, P + 1, P - 1])
    wanted = np.mean(
        [metrics.mean_pinball_loss(y, several[:, k], alpha=q) for k, q in enumerate((0.1, 0.5, 0.9))]
    )
    assert loss(models.QUANTILES, rows, several) == pytest.approx(wanted)
    labels, guesses = rng.integers(3, size=(2, 100))
    assert loss(models.CLASSES, models.Rows(None, labels), guesses) == pytest.approx(
        metrics.zero_one_loss(labels, guesses)
    )


def test_the_losses_of_queries_add_up_to_the_metrics(bench):
    rng, models = np.random.default_rng(0), bench.accuracy_models
    qid = np.repeat([7, 3, 5, 9], [5, 8, 4, 6])
    y, P = rng.integers(3, size=len(qid)).astype(float), rng.normal(size=len(qid))
    y[qid == 5] = 1.0  # nothing to order
    found = bench.accuracy_data.losses(models.RANKING, models.Rows(None, y, qid), P)
    assert len(found["pairs"]) == 3
    for measure, wanted in (("disagreement", disagreement(y, P, qid)), ("1 − NDCG@10", 1 - ndcg(y, P, qid))):
        weight = bench.accuracy_data.weight_of(measure, found)
        assert bench.accuracy_statistics.mean(found[measure], weight) == pytest.approx(wanted)


def test_a_search_sees_at_most_so_many_rows_of_the_training_part(bench):
    models, data = bench.accuracy_models, bench.accuracy_data
    n = 25_000
    train = models.Rows(np.arange(n, dtype=float)[:, None], np.arange(n) % 3)
    test = models.Rows(np.full((5, 1), -1.0), np.zeros(5, int))
    fitted, held = data.tuning_parts(data.Parts(train, test), models.CLASSES)
    assert len(fitted.y) + len(held.y) == data.MAX_TUNING_ROWS
    assert not set(fitted.X[:, 0]) & set(held.X[:, 0])
    assert min(fitted.X.min(), held.X.min()) >= 0.0
    official = models.Rows(np.zeros((2, 1)), np.zeros(2))
    assert data.tuning_parts(data.Parts(train, test, official), models.RANKING) == (train, official)


# -- settings --------------------------------------------------------------------------------------------


def test_no_setting_knows_a_data_set(bench):
    source = inspect.getsource(bench.accuracy_models)
    named = [name for name in datasets.available() if re.search(rf"\b{name}\b", source)]
    assert named == []
    for library in bench.accuracy_models.LIBRARIES.values():
        assert list(inspect.signature(library.make).parameters) == ["objective", "setting", "seed"]
        assert list(inspect.signature(library.translate).parameters) == ["point"]
    assert list(inspect.signature(bench.accuracy_models.trials).parameters) == ["library", "n_trials"]


def test_all_libraries_search_the_same_points_within_the_space(bench):
    models = bench.accuracy_models
    points = models.points(12)
    assert len(points) == 12
    for name, (low, high, _) in models.SPACE.items():
        assert all(low <= point[name] <= high for point in points)
    rates = {
        tuple(setting[library.words["rate"]] for setting in models.trials(library, 12))
        for library in models.LIBRARIES.values()
    }
    assert len(rates) == 1


def test_the_numbers_of_rounds_that_are_looked_at_end_with_the_last(bench):
    for last in (1, 2, 7, 1000):
        found = bench.accuracy_models.stages(last)
        assert found == sorted(set(found))
        assert (found[0], found[-1]) == (1, last)


# -- the work --------------------------------------------------------------------------------------------


def arguments(folder, **changes):
    given = {"runs": folder, "jobs": 0, "retry": False, "timeout": 60.0, "repeats": 2, "trials": 2}
    given |= {"rounds": 5, "rows": None, "folds": 5, "only": None, "half": None, "part": None}
    given |= {"without": [], "default_seeds": 2}
    return argparse.Namespace(**{**given, **changes})


def test_parts_share_the_work_out(bench, tmp_path):
    whole = bench.accuracy.todo(arguments(tmp_path))
    shares = [bench.accuracy.todo(arguments(tmp_path, part=f"{i}/3")) for i in (1, 2, 3)]
    assert sorted(str(cell) for share in shares for cell in share) == sorted(map(str, whole))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_what_is_left_out_is_not_run_and_counts_as_failed(bench, tmp_path):
    without = arguments(tmp_path, without=["CatBoost:letter"])
    left = {(cell.library, cell.set) for cell, _ in bench.accuracy.todo(without)}
    everything = {(cell.library, cell.set) for cell, _ in bench.accuracy.todo(arguments(tmp_path))}
    assert everything - left == {("CatBoost", "letter")}
    runs = bench.accuracy.runs_of(without)
    (row,) = bench.accuracy.collect(runs, "tuned", ["classes"], ["letter"])
    assert row.failed == {"CatBoost": "left out (--without)"}
    assert "CatBoost" not in row.missing
    assert "LightGBM" in row.missing


def test_a_result_is_made_once_and_the_best_trial_is_refitted_with_every_seed(bench, tmp_path, monkeypatch):
    accuracy, made = bench.accuracy, []

    def run(spec):
        made.append(spec)
        if spec["trial"]:
            rate = spec["setting"]["learning_rate"]
            return {"scores": {"error": rate}, "rounds": {"error": 3}, "seconds": 0.0}
        return {"losses": {"error": [0.0, 1.0]}, "rounds": 3, "seconds": 0.0}

    monkeypatch.setattr(accuracy, "run", run)
    cell = accuracy.Cell("any", "classes", None, "LightGBM")
    runs = accuracy.runs_of(arguments(tmp_path))
    for _ in range(2):
        accuracy.work(cell, "tuned", runs)
        assert [spec["trial"] for spec in made] == [True, True, False, False]
    rate = min(spec["setting"]["learning_rate"] for spec in made[:2])
    assert all(spec["setting"]["learning_rate"] == rate for spec in made[2:])
    assert all(spec["setting"]["n_estimators"] == 3 for spec in made[2:])
    assert [spec["seed"] for spec in made[2:]] == [0, 1]


def test_a_fit_that_takes_too_long_has_failed_until_it_is_tried_again(bench, tmp_path, monkeypatch):
    accuracy = bench.accuracy
    runs = accuracy.runs_of(arguments(tmp_path, jobs=1, timeout=0.01))
    cell = accuracy.Cell("airfoil", "squared", None, "LightGBM")
    (spec,) = accuracy.default_specs(cell, runs.arguments)
    assert runs.make(spec)["failed"] == "not done in 0.01 s"
    monkeypatch.setattr(accuracy, "run", lambda spec: {"losses": {}, "seconds": 0.0})
    again = accuracy.runs_of(arguments(tmp_path))
    assert "failed" in again.make(spec)
    again.arguments.retry = True
    assert "failed" not in again.make(spec)


def row(bench, objective, measure, values, **changes):
    """A row of 50 test examples, all with the same loss."""
    losses = {name: np.full(50, value) for name, value in values.items()}
    whole = bench.accuracy_page.Row("any", objective, measure, losses, np.ones(50), {}, [], {})
    return whole._replace(**changes)


def test_the_summary_takes_one_of_ours_a_row_and_leaves_out_what_is_not_complete(bench):
    classes = {"convexboost, hinge": 0.1, "convexboost, softmax": 0.4, "LightGBM": 0.2}
    rows = [
        row(bench, "classes", "error", classes),
        row(bench, "absolute", "absolute error", {"convexboost": 3.0, "LightGBM": 3.0, "XGBoost": 6.0}),
    ]
    found = bench.accuracy_page.summary(rows)
    hinge, softmax = found["convexboost, hinge"], found["convexboost, softmax"]
    assert hinge["mean ranks"] == {"convexboost": 1.25, "LightGBM": 1.75, "XGBoost": 3.0}
    assert hinge["geometric mean"] == pytest.approx(0.5**0.5)
    assert (hinge["worse"], softmax["worse"]) == ([], ["any, error"])
    assert softmax["mean ranks"]["convexboost"] == 1.75
    text = bench.accuracy_page.half_section("defaults", rows, found)
    assert "missed" in text
    assert "0.2 ▲ ▼" in text
    rows += [row(bench, "squared", "squared error", {"convexboost": 1.0}, missing=["LightGBM"])]
    rows += [row(bench, "squared", "squared error", {"LightGBM": 1.0}, failed={"convexboost": "too slow"})]
    found = bench.accuracy_page.summary(rows)
    assert found["convexboost, hinge"]["rows"] == 2
    text = bench.accuracy_page.half_section("defaults", rows, found)
    assert "convexboost on any, squared error: too slow" in text
    assert ": open)" in text
    assert ": reached" not in text


@pytest.fixture(scope="module")
def problems(bench):
    Rows = bench.accuracy_models.Rows
    X, classes = make_classification(240, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
    y = make_regression(240, 5, n_informative=5, noise=1.0, random_state=0)[1]
    qid = np.repeat(np.arange(24), 10)
    return {
        "classes": Rows(X, classes),
        "numbers": Rows(X, y),
        "ranking": Rows(X, classes.astype(float), qid),
    }


def check_library(bench, name, problems):
    """A trial's last stage is what the model predicts; a setting is understood."""
    library = bench.accuracy_models.LIBRARIES[name]
    for objective in library.objectives:
        rows = problems.get(objective, problems["numbers"])
        train, held = rows.take(np.arange(160)), rows.take(np.arange(160, 240))
        (setting,) = bench.accuracy_models.trials(library, 1)
        model = library.make(objective, {**setting, library.rounds: 6}, seed=0)
        plain = library.fit(library.make(objective, {**setting, library.rounds: 6}, seed=0), train)
        assert library.n_rounds(plain) == 6
        assert getattr(plain, "early_stopping", False) is False  # a given number is meant
        P = library.predict(plain, held.X)
        if objective == "quantiles":
            assert P.shape == (80, 3)
            continue
        assert P.shape == (80,)
        library.fit(model, train, held)
        stages = list(library.staged(model, held.X, [1, 3, 6]))
        assert not np.array_equal(stages[0], stages[2])
        np.testing.assert_allclose(stages[2], P, rtol=1e-5, atol=1e-6)


def check_patience(bench, name, problems, monkeypatch):
    """Where there is nothing to learn a trial stops early, and keeps the rounds after its best one."""
    monkeypatch.setattr(bench.accuracy_models, "PATIENCE", 4)
    library = bench.accuracy_models.LIBRARIES[name]
    objective = "classes" if "classes" in library.objectives else "absolute"
    rows = problems.get(objective, problems["numbers"])
    noise = rows._replace(y=np.random.default_rng(0).permutation(rows.y))
    train, held = noise.take(np.arange(160)), noise.take(np.arange(160, 240))
    (setting,) = bench.accuracy_models.trials(library, 1)
    model = library.make(objective, {**setting, library.rounds: 300}, seed=0)
    n = library.n_rounds(library.fit(model, train, held))
    assert 4 <= n < 300
    first, last = library.staged(model, held.X, [1, n])
    assert first.shape == last.shape == (80,)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ["convexboost", "convexboost, hinge", "convexboost, softmax"])
def test_our_stages_end_with_the_prediction(bench, problems, monkeypatch, name):
    check_library(bench, name, problems)
    check_patience(bench, name, problems, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("name", PEERS)
def test_the_stages_of_a_peer_end_with_its_prediction(bench, problems, monkeypatch, name):
    package = bench.accuracy_models.LIBRARIES[name].package
    pytest.importorskip(package.replace("scikit-learn", "sklearn"))
    check_library(bench, name, problems)
    check_patience(bench, name, problems, monkeypatch)
