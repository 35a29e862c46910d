"""Each rule of the diagnosis, provoked and not provoked; on made-up histories and on real runs."""

import math
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import (
    load_diabetes,
    load_digits,
    make_blobs,
    make_classification,
    make_friedman1,
    make_gaussian_quantiles,
)
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

from convexboost import ConvexBoostClassifier, ConvexBoostRegressor
from convexboost.boosting.steps import InverseSqrt
from convexboost.boosting.training import Stop
from convexboost.estimators._validation import N_FOLDS
from convexboost.inspection.diagnosis import Trial, compare, diagnose, number
from convexboost.inspection.findings import ALL_CLEAR, Diagnosis, Finding
from convexboost.inspection.finished_run import MIN_ROUNDS, FinishedRun
from convexboost.learners._bin_function import BinFunction
from convexboost.learners._dense import RowValues
from convexboost.learners.stump import Stump
from convexboost.learners.tree import Tree
from convexboost.losses import WorstGroup
from convexboost.paper import counterexample

FRIEDMAN = make_friedman1(1000, 6, noise=1.0, random_state=0)
QUANTILES = make_gaussian_quantiles(n_samples=1200, n_features=10, n_classes=5, random_state=0)
rng = np.random.default_rng(0)
SQUARE = rng.uniform(-1, 1, (3000, 2))
XOR = np.sign(SQUARE[:, 0] * SQUARE[:, 1])  #: no sum of functions of one feature each can fit this


ONE_RUN = {"n_rounds": 120, "early_stopping": False, "n_jobs": 1}


def regressor(*args, **options):
    learner = {"learner": "stump"} if len(args) < 2 else {}
    return ConvexBoostRegressor(*args, **{**learner, **ONE_RUN, **options})


def classifier(*args, **options):
    learner = {"learner": "stump"} if len(args) < 2 else {}
    return ConvexBoostClassifier(*args, **{**learner, **ONE_RUN, **options})


def made_up(objective, *, chosen=None, edge=None, validation=None, **options):
    """A run with this history; by default every weak learner is a new one, and minimum 0."""
    objective = np.asarray(objective, float)
    n = len(objective)
    history = {
        "objective": objective,
        "validation": np.full(n, np.nan) if validation is None else np.asarray(validation, float),
        "edge": np.full(n, 0.5) if edge is None else np.asarray(edge, float),
        "intrinsic_edge": np.full(n, 0.3),
        "step": np.ones(n),
        "weak_learners": np.arange(n),
    }
    chosen = np.arange(n - 1) if chosen is None else np.asarray(chosen)
    return FinishedRun(
        history, chosen, **{"minimum": 0.0, "algorithm": "naive", "step": "inverse_sqrt", **options}
    )


T = np.arange(201.0)
HEALTHY = 0.2 + 0.8 / (1 + T / 20)
FLAT = np.where(T < 50, HEALTHY, HEALTHY[50])


def rules(run):
    return diagnose(run).rules


# --- made-up histories -------------------------------------------------------------------------------------


def test_a_healthy_run_is_all_clear():
    found = diagnose(made_up(HEALTHY, validation=HEALTHY[:150].tolist() + 51 * [HEALTHY[149]]))
    assert found.findings == ()
    assert str(found) == ALL_CLEAR


def test_what_is_not_known_is_no_all_clear():
    found = diagnose(made_up(HEALTHY))
    assert found.findings == ()
    assert [missing.rule for missing in found.unchecked] == ["distance_from_the_optimum", "overfitting"]
    assert str(found).startswith("No warnings, but not known: distance from the optimum, overfitting.")
    assert "X_val" in str(found)
    assert "the objective is 0.2727" in str(found)
    assert "at least 0." in str(found)
    assert "still lowered" in str(found)
    unbounded = diagnose(made_up(HEALTHY, minimum=None))
    assert "of the optimum nothing is known" in " ".join(str(unbounded).split())
    at_the_minimum = diagnose(made_up(HEALTHY - 0.27))
    assert at_the_minimum.verdict == "No warnings, but not known: overfitting."
    short = diagnose(made_up(HEALTHY[:MIN_ROUNDS]))
    assert short.verdict == "No warnings, but not known: the course of the run, overfitting."
    for run in (made_up(FLAT, chosen=np.arange(200) % 3), made_up(FLAT), made_up(HEALTHY - 0.2)):
        assert ALL_CLEAR not in str(diagnose(run))


def test_a_short_run_is_not_judged():
    short = FLAT[:MIN_ROUNDS]
    found = diagnose(made_up(short, chosen=np.zeros(len(short) - 1, int)))
    assert found.findings == ()
    assert "too few" in str(found)
    assert "too few" not in str(diagnose(made_up(HEALTHY[: MIN_ROUNDS + 1])))


def test_flat_and_going_in_circles_is_stalled_and_cycling():
    found = diagnose(made_up(FLAT, chosen=np.arange(200) % 3, n_hypotheses=100))
    assert found.rules == {"stalled", "cycling"}
    assert found["cycling"].numbers["distinct"] == 3
    assert "only 3 different" in found["cycling"].sentence
    assert "algorithm='residual'" in found["stalled"].advice
    assert str(found).count("algorithm='residual'") == 1  # said once is enough
    assert "one and the same" in str(diagnose(made_up(FLAT, chosen=np.zeros(200, int))))


def test_going_in_circles_while_the_objective_falls_is_fine():
    assert rules(made_up(HEALTHY, chosen=np.arange(200) % 3)) == set()


def test_where_there_is_but_one_hypothesis_using_it_is_no_cycle():
    assert rules(made_up(FLAT, chosen=np.zeros(200, int), n_hypotheses=1)) == set()
    assert rules(made_up(FLAT, chosen=np.arange(200) % 5, n_hypotheses=10)) == set()


def test_flat_without_a_cause_is_only_noted():
    found = diagnose(made_up(FLAT))
    assert found.rules == set()
    assert found["flat"].severity == "note"
    assert "certificate=True" in found["flat"].advice
    assert "residual" not in diagnose(made_up(FLAT, algorithm="residual"))["flat"].advice


def test_flat_at_the_known_minimum_is_converged():
    found = diagnose(made_up(FLAT - FLAT[-1] + 0.005, chosen=np.zeros(200, int)))
    assert found.rules == set()
    assert "converged" in found
    assert "stalled" not in found


def test_without_a_known_minimum_progress_is_the_measure():
    assert rules(made_up(FLAT - 10.0, chosen=np.arange(200) % 2, minimum=None)) == {"stalled", "cycling"}
    assert rules(made_up(HEALTHY - 10.0, minimum=None)) == set()


def test_weak_learners_that_cannot_be_compared():
    found = diagnose(made_up(FLAT, chosen=np.full(200, -1)))
    assert "cycling" in [missing.rule for missing in found.unchecked]
    assert "stalled" not in found
    known = diagnose(made_up(HEALTHY, chosen=np.full(200, -1), validation=HEALTHY))
    assert known.unchecked == ()  # the objective falls: no need to look for cycles


def test_the_edge_collapses():
    found = diagnose(made_up(HEALTHY, edge=0.5 * np.exp(-T / 20)))
    assert found["edge"].severity == "note"
    assert "stronger learner" in found["edge"].advice
    assert "edge" not in diagnose(made_up(HEALTHY, edge=0.5 / np.sqrt(1 + T / 10)))


def test_the_raw_edge_of_residual_may_tend_to_zero():
    assert "edge" not in diagnose(made_up(HEALTHY, edge=0.5 / (1 + T), algorithm="residual"))


def test_an_unknown_edge_is_said_to_be_unknown():
    run = made_up(HEALTHY, algorithm="residual")
    run.history["intrinsic_edge"][:] = np.nan
    assert "edge" in [missing.rule for missing in diagnose(run).unchecked]


def test_a_tiny_edge_and_no_progress():
    crawl = 1.0 - 0.03 * (1 - np.exp(-T / 30))
    found = diagnose(made_up(crawl, edge=np.full(201, 0.03), smooth=True))
    assert found.rules == {"edge"}
    assert "too weak" in found["edge"].sentence
    assert rules(made_up(crawl, edge=np.full(201, 0.3), smooth=True)) == {"stalled"}
    assert rules(made_up(crawl, edge=np.full(201, 0.03))) == {"stalled"}  # naive is to blame, or may be
    assert rules(made_up(HEALTHY, edge=np.full(201, 0.03))) == set()


def test_jumping_about_is_a_step_too_large():
    jumps = HEALTHY + 0.1 * (T % 2) * (T > 50) + 0.1 * (T % 3 == 0)
    assert rules(made_up(jumps)) == {"step_too_large"}
    assert rules(made_up(HEALTHY + 0.005 * (T % 2))) == set()


def test_jumping_about_while_getting_on_is_fine():
    getting_on = 1.0 - 0.5 * np.sqrt(T / 200)
    assert rules(made_up(getting_on + 0.06 * (T % 2), algorithm="residual")) == set()


def test_residual_may_fluctuate_a_little():
    wobble = HEALTHY * (1 + 0.03 * np.sin(T))
    assert rules(made_up(wobble, algorithm="residual")) == set()


def test_divergence_is_a_step_too_large_however_short():
    run = made_up([1.0, 10.0, 1e4], stop=Stop("diverged", "diverged: …"))
    assert "step_too_large" in rules(run)
    assert "step='auto'" in diagnose(run)["step_too_large"].advice
    assert (
        "smaller step"
        in diagnose(made_up([1.0, 10.0], stop=Stop("diverged", ""), step="auto"))["step_too_large"].advice
    )


def test_the_step_proposed_is_better():
    """One stump explains nearly everything: the first steps are too long for what is left."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] > 0) + 0.1 * rng.normal(size=300)
    model = regressor("absolute", step="inverse_sqrt:1").fit(X, y)
    assert "step='auto'" in model.diagnose()["step_too_large"].advice
    better = regressor("absolute", step="auto").fit(X, y)
    assert better.history_["objective"].min() < 0.8 * model.history_["objective"].min()
    assert better.diagnose().rules == set()


def test_a_straight_line_is_a_step_too_small():
    line = 1.0 - 0.001 * T
    assert rules(made_up(line)) == {"step_too_small"}
    assert rules(made_up(1.0 - 0.2 * (1 - np.exp(-T / 40)))) == set()
    assert rules(made_up(np.maximum(1.0 - 0.0045 * T, 0.0))) == set()  # straight, but nearly there
    assert rules(made_up(line, step="line_search")) == set()  # a longer step is known to be worse


def test_auto_is_not_blamed_for_too_few_rounds():
    found = diagnose(made_up(1.0 - 0.001 * T, step="auto"))
    assert found.rules == set()
    assert "More rounds" in found["unfinished"].advice


def test_overfitting():
    validation = HEALTHY + 0.004 * np.maximum(T - 60, 0)
    found = diagnose(made_up(HEALTHY, validation=validation, output="last"))
    assert found.rules == {"overfitting"}
    assert "output='best'" in found["overfitting"].advice
    best = diagnose(made_up(HEALTHY, validation=validation, output="best"))
    assert best.rules == set()  # the model handed out is the good one
    assert best["overfitting"].severity == "note"
    unseen = made_up(HEALTHY, validation=validation, output="best", has_validation=False)
    assert rules(unseen) == {"overfitting"}  # "best" was by the training objective


def test_a_validation_loss_that_still_falls_is_unfinished():
    found = diagnose(made_up(HEALTHY, validation=HEALTHY + 0.1))
    assert found.rules == set()
    assert "still falling: rounds 101 to 200 took it from 0.4333 to 0.3727" in found["unfinished"].sentence
    settled = np.maximum(HEALTHY + 0.1, 0.5) - 1e-5 * T
    assert "unfinished" not in diagnose(made_up(HEALTHY, validation=settled))


def test_what_is_not_overfitting():
    assert rules(made_up(HEALTHY, validation=HEALTHY + 0.1, output="last")) == set()
    noise = 0.005 * np.random.default_rng(0).normal(size=201)
    assert rules(made_up(HEALTHY, validation=HEALTHY + 0.1 + noise, output="last")) == set()
    rising = 0.4 + 0.003 * T  # training gets worse as well: the step is to blame
    assert "overfitting" not in rules(made_up(rising, validation=rising, output="last"))


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_units_do_not_matter(unit):
    runs = [HEALTHY, FLAT, 1.0 - 0.001 * T, HEALTHY + 0.1 * (T % 2)]
    for objective in runs:
        validation = HEALTHY + 0.004 * np.maximum(T - 60, 0)
        one = made_up(objective, validation=validation, chosen=np.arange(200) % 2)
        other = made_up(
            unit * objective, validation=unit * validation, chosen=np.arange(200) % 2, step="constant"
        )
        assert diagnose(one).rules == diagnose(other).rules


def test_numbers():
    leaves = np.array([0, 0, 1, 2], np.uint8)
    a = BinFunction(0, leaves, np.ones((3, 2)), np.ones(4))
    same = BinFunction(0, leaves.copy(), np.zeros((3, 2)), np.ones(4))
    other_feature = BinFunction(1, leaves, np.ones((3, 2)), np.ones(4))
    other_split = BinFunction(0, np.array([0, 1, 1, 2], np.uint8), np.ones((3, 2)), np.ones(4))
    terms = [(1.0, h) for h in (a, other_feature, same, other_split, other_feature)]
    assert number(terms).tolist() == [0, 1, 0, 2, 1]
    assert number([(1.0, RowValues(np.ones((3, 1))))]).tolist() == [-1]
    assert number([]).tolist() == []


def test_findings_by_name():
    found = Diagnosis((Finding("flat", "note", "It is flat."),))
    assert found["flat"].title == "Flat"
    assert str(found["flat"]) == "It is flat."
    assert "stalled" not in found
    with pytest.raises(KeyError):
        found["stalled"]


def test_trials_are_compared():
    own = Trial("the model's own settings", "", 1.0, 0.5, 0.6, 200)
    better = Trial("algorithm='residual'", "algorithm", 1.0, 0.2, 0.3, 200)
    worse = Trial("algorithm='repeated'", "algorithm", 1.0, 0.4, 0.7, 200)
    memory = Trial("learner=tree", "learner", 1.0, 0.0, 0.6, 50)  # fits better, predicts no better
    algorithm, learner = compare([own, worse, better, memory])
    assert algorithm.severity == "warning"
    assert algorithm.advice == "Try algorithm='residual'."
    assert algorithm.sentence.index("residual") < algorithm.sentence.index("repeated")  # best first
    assert (learner.severity, learner.rule) == ("note", "other_learner")
    assert "would not help" in learner.advice
    assert compare([]) == []


# --- runs on data ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("certificate", [False, True])
def test_naive_goes_in_circles_where_residual_gets_on(certificate):
    X, y = make_blobs(1000, 8, centers=20, cluster_std=4, random_state=0)
    options = {"step": "inverse_sqrt", "certificate": certificate}
    naive = classifier("multiclass_hinge", "class_stump", "naive", **options).fit(X, y).diagnose()
    assert naive.rules == {"stalled", "cycling"}
    assert "algorithm='residual'" in naive["stalled"].advice
    residual = classifier("multiclass_hinge", "class_stump", "residual", **options).fit(X, y).diagnose()
    assert residual.rules == set()


@pytest.mark.parametrize("certificate", [False, True])
def test_naive_goes_in_circles_on_letter(certificate):
    if "CONVEXBOOST_DATA" not in os.environ:
        pytest.skip("set CONVEXBOOST_DATA to the folder with the data sets (letter/, pendigits/, ...)")
    folder = str(Path(__file__).parents[2] / "benchmarks")
    sys.path.insert(0, folder)
    try:
        from data import letter
    finally:
        sys.path.remove(folder)
    X, y = letter()[:2]
    options = {"step": "inverse_sqrt", "certificate": certificate, "n_rounds": 100}
    naive = classifier("multiclass_hinge", algorithm="naive", **options).fit(X, y).diagnose()
    assert naive.rules == {"stalled", "cycling"}
    assert "algorithm='residual'" in naive["stalled"].advice
    residual = classifier("multiclass_hinge", algorithm="residual", **options).fit(X, y).diagnose()
    assert residual.rules == set()


def test_a_rise_at_the_beginning_is_forgiven():
    X, y = make_classification(
        800, 16, n_informative=14, n_classes=26, n_clusters_per_class=2, random_state=0
    )
    model = classifier("multiclass_hinge", n_rounds=60).fit(X, y)
    assert model.history_["objective"].min() == model.history_["objective"][0]
    found = model.diagnose()
    assert found.rules == set()
    assert "coming down" in found["unfinished"].sentence


def test_line_search_is_nothing_for_residual():
    """Its direction need not descend; the best step along it is then 0, for ever."""
    X, y = make_blobs(500, 8, centers=20, cluster_std=4, random_state=0)
    found = (
        classifier("multiclass_hinge", "class_stump", step="line_search", n_rounds=60).fit(X, y).diagnose()
    )
    assert "stalled" in found.rules
    assert "step='auto'" in found["stalled"].advice


def test_the_counterexample_of_the_paper():
    for algorithm, expected in (("naive", {"stalled", "cycling"}), ("residual", set())):
        result = counterexample.run(algorithm, 300).result
        run = FinishedRun(
            result.history, number(result.path.terms), algorithm, minimum=0.0, step="inverse_sqrt"
        )
        assert diagnose(run).rules == expected


def test_a_certificate_tells_a_stall_from_the_optimum():
    """Two values of x: the best stump is the optimum, and it is all there is to choose twice."""
    x = np.repeat([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], 50, axis=0)
    y = 2 * x[:, 0] + np.tile([0.0, 0.0, 1.0, 1.0, 5.0], 40) + 0.3 * x[:, 1]
    for algorithm in ("repeated", "residual"):
        model = regressor("absolute", algorithm=algorithm, max_weak_learners=400, certificate=True).fit(x, y)
        assert model.diagnose().rules == set(), algorithm


@pytest.mark.one_in(2)
@pytest.mark.parametrize("algorithm", ["naive", "repeated", "residual"])
@pytest.mark.parametrize("learner", ["stump", "additive", DecisionTreeRegressor(max_depth=3, random_state=0)])
def test_auto_is_not_warned_of_on_easy_data(algorithm, learner):
    X, y = FRIEDMAN
    tree = not isinstance(learner, str)
    model = regressor("half_squared", learner, algorithm, n_rounds=40 if tree else 100)
    model.set_params(max_weak_learners=100 if tree else 500)
    assert model.fit(X, y).diagnose().rules == set()
    if not tree:
        assert model.fit(X, 1e5 * y + 1e6).diagnose().rules == set()


def test_a_large_constant_step():
    X, y = FRIEDMAN
    assert regressor(step="constant:0.1").fit(X, y).diagnose().rules == {"step_too_large"}
    assert regressor(step="auto").fit(X, y).diagnose().rules == set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        diverged = regressor(step="constant:50").fit(X, y)
    assert diverged.diagnose().rules == {"step_too_large"}
    assert "diverged" in str(diverged.diagnose())


def test_a_small_constant_step():
    X, y = FRIEDMAN
    for step in ("constant:0.001", InverseSqrt(0.01)):
        assert regressor(algorithm="naive", step=step).fit(X, y).diagnose().rules == {"step_too_small"}


def test_the_edge_of_additive_functions_runs_out():
    X, y = FRIEDMAN
    model = regressor(learner="additive", algorithm="naive", n_rounds=300, step="constant:0.1").fit(X, y)
    assert "edge" in model.diagnose()
    assert "edge" not in regressor(algorithm="naive", n_rounds=60).fit(X, y).diagnose()


@pytest.mark.parametrize("algorithm", ["naive", "residual"])
def test_stumps_are_too_weak_for_xor(algorithm):
    model = regressor(learner=Stump(max_bins=8), algorithm=algorithm, n_rounds=60).fit(SQUARE, XOR)
    found = model.diagnose()
    assert "edge" in found.rules
    assert "stronger learner" in found["edge"].advice
    tree = regressor(
        learner=DecisionTreeRegressor(max_depth=3, random_state=0), algorithm=algorithm, n_rounds=40
    )
    assert "edge" not in tree.fit(SQUARE, XOR).diagnose()


def test_memorising_is_called_overfitting():
    X, y = load_diabetes(return_X_y=True)
    rows = {"X_val": X[300:], "y_val": y[300:]}
    one_run = {"early_stopping": False}
    last = regressor("absolute", "additive", output="last", **one_run).fit(X[:300], y[:300], **rows)
    assert last.diagnose().rules == {"overfitting"}
    best = regressor("absolute", "additive", early_stopping="auto").fit(X[:300], y[:300], **rows)
    assert best.diagnose().rules == set()
    X, y = FRIEDMAN
    healthy = regressor(algorithm="naive", output="last").fit(X[:700], y[:700], X_val=X[700:], y_val=y[700:])
    assert "overfitting" not in healthy.diagnose()


def test_rows_that_were_not_trained_on_stand_in_for_a_validation_set():
    X, y = load_diabetes(return_X_y=True)
    model = regressor("absolute", "additive", output="last").fit(X[:300], y[:300])
    assert "overfitting" in [missing.rule for missing in model.diagnose().unchecked]
    found = model.diagnose(X[300:], y[300:])
    watched = regressor("absolute", "additive", output="last", early_stopping=False).fit(
        X[:300], y[:300], X_val=X[300:], y_val=y[300:]
    )
    assert found["overfitting"].sentence == watched.diagnose()["overfitting"].sentence
    with pytest.raises(ValueError, match="not trained on"):
        model.diagnose(X[:300], y[:300])
    average = regressor("absolute", output="average").fit(X[:300], y[:300])
    assert "overfitting" in [missing.rule for missing in average.diagnose(X[300:], y[300:]).unchecked]
    assert "there were no validation rows" not in str(average.diagnose(X[300:], y[300:]))
    groups = np.arange(300) % 3
    grouped = ConvexBoostRegressor(WorstGroup("absolute"), n_rounds=40).fit(X[:300], y[:300], groups=groups)
    assert "groups_val" in str(grouped.diagnose(X[300:], y[300:]))


@pytest.mark.parametrize(
    "options",
    [{}, {"l2": 0.1}, {"learner": "additive"}, {"early_stopping": True}, {"loss": "absolute"}],
    ids=str,
)
def test_training_rows_are_recognised(options):
    """In any order, whatever the fit; other rows of the same size are not."""
    X, y = load_diabetes(return_X_y=True)
    model = ConvexBoostRegressor(n_jobs=1, random_state=0, **options).fit(
        X[:200], y[:200], np.arange(200) % 3 + 1
    )
    for order in (slice(None), slice(None, None, -1)):
        with pytest.raises(ValueError, match="not trained on; these are the rows that `fit` got"):
            model.diagnose(X[:200][order], y[:200][order])
    model.diagnose(X[200:400], y[200:400])
    model.diagnose(X[:200], y[200:400])
    labels = np.where(y > 140, "high", "low")
    model = ConvexBoostClassifier(n_jobs=1, random_state=0).fit(X[:200], labels[:200])
    with pytest.raises(ValueError, match="not trained on"):
        model.diagnose(X[:200].copy(), labels[:200])


def test_rows_that_are_given_are_looked_at():
    """Also where there were validation rows before."""
    X, y = load_diabetes(return_X_y=True)
    model = regressor("absolute", "additive", output="last")
    kind = model.fit(X[:300], y[:300], X_val=X[:300], y_val=y[:300])  # rows that say nothing
    assert "overfitting" not in kind.diagnose()
    assert kind.diagnose(X[300:], y[300:]).rules == {"overfitting"}


# --- what certificates and new rows know better ------------------------------------------------------------


@pytest.mark.parametrize("certificate", [False, True])
def test_far_from_the_optimum_is_no_all_clear(certificate):
    """`certify` meets a model of 0.0104, an eighth of this one's objective."""
    X, y = load_digits(return_X_y=True)
    model = classifier("multiclass_hinge", l2=0.02, certificate=certificate, n_rounds=500)
    found = model.fit(X[::2], y[::2]).diagnose()
    assert model.history_["objective"].min() > 0.05
    assert ALL_CLEAR not in str(found)
    assert "distance from the optimum" in found.verdict
    assert "still lowered the objective" in " ".join(str(found).split())


def test_a_model_that_overfits_is_no_all_clear():
    X, y = load_diabetes(return_X_y=True)
    for learner in ("tree", "stump", "additive"):
        model = ConvexBoostRegressor(learner=learner, early_stopping=False, n_rounds=200, n_jobs=1)
        model.fit(X[:300], y[:300])
        assert "overfitting" in model.diagnose().verdict
        assert model.diagnose(X[300:], y[300:]).rules == {"overfitting"}


def test_folds_of_the_default_are_a_validation():
    X, y = load_diabetes(return_X_y=True)
    model = ConvexBoostRegressor(n_jobs=1).fit(X, y)
    assert model.n_members_ == N_FOLDS
    assert str(model.diagnose()) == ALL_CLEAR
    short = ConvexBoostRegressor(n_jobs=1, n_rounds=40, step="refit:0.03").fit(X, y)
    assert short.n_members_ == N_FOLDS
    assert "still falling" in short.diagnose()["unfinished"].sentence
    labels = ConvexBoostClassifier(n_jobs=1, n_rounds=300).fit(X, y > 140)
    assert labels.n_members_ == N_FOLDS
    assert "overfitting" not in [missing.rule for missing in labels.diagnose().unchecked]
    assert labels.diagnose().rules == set()


def test_healthy_runs_are_all_clear():
    X, y = FRIEDMAN
    assert str(ConvexBoostRegressor(n_jobs=1).fit(X, y).diagnose()).startswith(ALL_CLEAR)
    watched = {"X_val": X[700:], "y_val": y[700:]}
    stumps = ConvexBoostRegressor(learner="stump", algorithm="naive", n_jobs=1).fit(
        X[:700], y[:700], **watched
    )
    assert str(stumps.diagnose()).startswith(ALL_CLEAR)
    residual = ConvexBoostRegressor(learner="stump", n_jobs=1).fit(X[:700], y[:700], **watched)
    assert str(residual.diagnose()).startswith(ALL_CLEAR)


def test_rows_for_a_classifier():
    X, y = QUANTILES
    labels = np.array(["a", "b", "c", "d", "e"])[y]
    model = classifier(output="last").fit(X[:500], labels[:500])
    assert "overfitting" not in [m.rule for m in model.diagnose(X[500:], labels[500:]).unchecked]


@pytest.mark.parametrize("loss", ["half_squared", "absolute"])
def test_the_default_learner_can_be_judged(loss):
    """Trees can be told apart, their raw edge means something, and no advice names what is there already."""
    X, y = FRIEDMAN
    model = ConvexBoostRegressor(loss, n_rounds=60, n_jobs=1)
    found = model.fit(X[:700], y[:700], X_val=X[700:], y_val=y[700:]).diagnose()
    assert (model.chosen_ >= 0).all()
    assert found.unchecked == ()
    assert found.rules == set()
    noise = model.fit(X, np.random.default_rng(0).permutation(y), X_val=X, y_val=y).diagnose()
    assert "step='auto'" not in str(noise)


def test_advice_with_a_refitting_step():
    creeping = made_up(np.linspace(1.0, 0.9, 201), step="refit", algorithm="residual", decay=0.7)
    assert rules(creeping) == set()
    assert "More rounds" in diagnose(creeping)["unfinished"].advice
    jumping = np.where(T % 4 == 0, FLAT, FLAT + 0.2)
    found = diagnose(made_up(jumping, step="refit", algorithm="residual", decay=0.7))
    assert "refit:0.02" in found["step_too_large"].advice


# --- trials ------------------------------------------------------------------------------------------------


def test_trials_find_the_stronger_learner():
    model = regressor(learner=Stump(max_bins=8), n_rounds=40).fit(SQUARE, XOR)
    found = model.diagnose(SQUARE, XOR, trials=True)
    assert {"edge", "other_learner"} <= found.rules
    assert found["other_learner"].advice == "Try learner='tree'."
    assert "learner='tree'" in found["edge"].advice
    assert found["other_learner"].numbers["held_out"] < 0.7 * found["other_learner"].numbers["own_held_out"]
    assert "other_step" not in found  # it is auto already


def test_trials_find_the_better_algorithm_and_step():
    X, y = QUANTILES
    labels = np.array(["a", "b", "c", "d", "e"])[y]
    labels[0] = "rare"  # in one part of the split only
    model = classifier("softmax", "stump", "naive", step="constant:0.01", n_rounds=60).fit(X, labels)
    found = model.diagnose(X, labels, trials=True)
    assert "other_step" in found.rules
    assert found["other_step"].advice == "Try step='auto'."


def test_trials_do_not_recommend_what_does_not_help():
    n = 600
    X = np.random.default_rng(1).normal(size=(n, 3))
    y = X @ [3.0, 2.0, 1.0] + 0.1 * np.random.default_rng(2).normal(size=n)
    found = (
        regressor("half_squared", Ridge(alpha=1e-6), "naive", n_rounds=40)
        .fit(X, y)
        .diagnose(X, y, trials=True)
    )
    assert not {"other_algorithm", "other_learner"} & found.rules
    assert found["other_learner"].severity == "note"


def test_trials_take_frames_and_deeper_trees():
    pd = pytest.importorskip("pandas")
    X, y = FRIEDMAN
    X, y = pd.DataFrame(X[:200], columns=list("abcdef")), pd.Series(y[:200])
    learner = DecisionTreeRegressor(max_depth=2, random_state=0)
    model = regressor(learner=learner, n_rounds=5).fit(X, y)
    found = model.diagnose(X, y, trials=True)
    assert "max_depth=4" in found["other_learner"].sentence
    assert learner.max_depth == 2


def test_trials_of_trees_are_larger_trees_and_stumps():
    X, y = FRIEDMAN
    for learner, larger in (
        ("tree", "Tree(max_leaves=124, splits='mixed')"),
        (Tree(8, 3, splits="best"), "Tree(max_leaves=32, max_depth=5, splits='best')"),
    ):
        model = regressor(learner=learner, n_rounds=5).fit(X, y)
        sentence = model.diagnose(X, y, trials=True)["other_learner"].sentence
        assert f"learner={larger}:" in sentence
        assert "learner='stump':" in sentence


def test_what_diagnose_refuses():
    X, y = FRIEDMAN
    model = regressor(n_rounds=3)
    with pytest.raises(NotFittedError):
        model.diagnose()
    model.fit(X, y)
    with pytest.raises(ValueError, match="`X` and `y` go together, but `y` is missing"):
        model.diagnose(X)
    with pytest.raises(ValueError, match="rows to try on"):
        model.diagnose(trials=True)
    with pytest.raises(ValueError, match="rows like `X`"):
        model.diagnose(X[:10], y[:9])


def test_odd_runs():
    X = np.arange(40.0)[:, None]
    assert regressor().fit(X, np.ones(40)).diagnose().rules == set()  # nothing to do
    assert regressor(n_rounds=1).fit(X, X[:, 0]).diagnose().rules == set()
    assert regressor().fit(np.ones((40, 1)), X[:, 0]).diagnose().rules == set()  # nothing to learn from
    done = regressor("absolute", l2=1.0, certificate=True, n_rounds=300).fit(X, X[:, 0]).diagnose()
    assert "stalled" not in done
    assert math.isnan(FinishedRun({}, np.zeros(0), certificate=None).mean_slope)
