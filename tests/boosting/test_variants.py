import numpy as np
import pytest

from convexboost.boosting.algorithms import Naive, Repeated, Residual
from convexboost.boosting.steps import STEPS
from convexboost.boosting.training import boost
from convexboost.core.space import FunctionSpace
from convexboost.learners.stump import Stump
from convexboost.losses.absolute import Absolute
from convexboost.losses.half_squared import HalfSquared
from convexboost.losses.softmax import Softmax
from tests.reference import SlowStumps

N = 50
rng = np.random.default_rng(1)
X = rng.normal(size=(N, 3))
Y = np.digitize(X[:, 0] + X[:, 1] ** 2 + 0.2 * rng.normal(size=N), [0.3, 1.2])
SPACE = FunctionSpace.of(N, rng.uniform(0.5, 2.0, N))
SCHEDULES = [name for name, cls in STEPS.items() if cls.is_schedule]


def run(algorithm, step="inverse_sqrt:0.5", loss=None, H=None, n_rounds=15, **options):
    y = X[:, 0] - X[:, 2] ** 2 if loss is not None and loss.task == "regression" else Y
    H = H or Stump(max_bins=10).bind(X, SPACE)
    objective = (loss or Softmax()).bind(y, SPACE)
    return boost(objective, H, algorithm=algorithm, step=step, n_rounds=n_rounds, output="last", **options)


def same(a, b, exactly=False):
    compare = np.testing.assert_array_equal if exactly else np.testing.assert_allclose
    compare(a.path.predict(X), b.path.predict(X), **({} if exactly else {"rtol": 1e-9, "atol": 1e-9}))


@pytest.mark.parametrize("step", [f"{name}:0.5" for name in STEPS if name not in ("auto", "line_search")])
def test_residual_without_memory_is_naive(step):
    a, b = run(Residual(decay=0.0), step), run(Naive(), step)
    same(a, b, exactly=True)
    np.testing.assert_array_equal(a.history["edge"], b.history["edge"])


def test_residual_without_memory_is_naive_after_a_zero(monkeypatch):
    """A zero projection in between loses nothing of what is known."""
    space, y = FunctionSpace.of(2), np.array([1.0, 0.0])
    H = Stump().bind(np.array([[0.0], [1.0]]), space)
    a, b = (
        boost(
            Absolute().bind(y, space),
            H,
            algorithm=algorithm,
            step="constant:0.5",
            n_rounds=5,
            start=np.array([0.5]),
        )
        for algorithm in (Residual(decay=0.0), Naive())
    )
    np.testing.assert_array_equal(a.history["edge"], b.history["edge"])


def test_decay_is_between_the_two():
    predictions = [run(Residual(decay)).path.predict(X) for decay in (0.0, 0.5, 1.0)]
    assert not np.allclose(predictions[0], predictions[1])
    assert not np.allclose(predictions[1], predictions[2])


@pytest.mark.parametrize("scale", [0.25, 0.3])
def test_error_feedback_with_a_constant_step_is_residual(scale):
    same(run("error_feedback", f"constant:{scale}"), run("residual", f"constant:{scale}"))


def test_error_feedback_differs_with_other_steps():
    a, b = run("error_feedback"), run("residual")
    assert not np.allclose(a.path.predict(X), b.path.predict(X))


def test_dual_averaging_with_a_constant_step_is_residual():
    same(run("dual_averaging", "constant:0.3"), run("residual", "constant:0.3"))


def test_dual_averaging_by_hand():
    """f_t = f_0 − η_t Σ h_j, with h and Δ as in Algorithm 3, on the dense twin."""
    H = Stump(max_bins=10).bind(X, SPACE)
    result = run("dual_averaging", H=H, n_rounds=8)
    slow, objective = SlowStumps(X, SPACE, H.mapper, H.kind), Softmax().bind(Y, SPACE)
    start = result.path.start
    F, delta, total = np.tile(start, (N, 1)), np.zeros((N, 3)), np.zeros((N, 3))
    for t in range(1, 9):
        delta = delta + objective.evaluate(F)[1]
        h = slow.fit(delta, None).evaluate(X)
        h = SPACE.inner(delta, h) / SPACE.norm(h) ** 2 * h
        delta, total = delta - h, total + h
        F = start - 0.5 / np.sqrt(t) * total
        np.testing.assert_allclose(result.path.truncate(t).predict(X), F, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("algorithm", ["dual_averaging", "error_feedback"])
@pytest.mark.parametrize("step", STEPS)
def test_only_schedules_fit(algorithm, step):
    spec = "inverse_time:0.5" if step == "inverse_time" else step
    if step in SCHEDULES:
        assert len(run(algorithm, spec, n_rounds=3).records) == 4
    else:
        with pytest.raises(
            ValueError, match=rf"`algorithm` '{algorithm}' fixes the step .* `step` '{step}' does not fit"
        ):
            run(algorithm, spec)


# --- repeated ----------------------------------------------------------------------------------------------


def test_repeated_trains_t_learners_in_round_t():
    result = run("repeated", n_rounds=6)
    assert result.history["weak_learners"].tolist() == [0, 1, 3, 6, 10, 15, 21]
    assert result.path.ends == [0, 1, 3, 6, 10, 15, 21]


def test_repeated_projects_better_than_naive():
    """The edge grows with the number of projections."""
    edges = run("repeated", n_rounds=10).history["edge"][1:]
    assert (edges > run("naive", n_rounds=1).history["edge"][1] - 1e-9).all()
    assert edges[-1] > edges[0]
    assert (edges <= 1.0).all()


def test_repeated_by_hand():
    """Two rounds on the dense twin: project, subtract, rescale to the projection on the sum's own line."""
    H = Stump(max_bins=10).bind(X, SPACE)
    result = run("repeated", "constant:0.5", loss=HalfSquared(), H=H, n_rounds=2)
    slow = SlowStumps(X, SPACE, H.mapper, H.kind)
    F = np.tile(result.path.start, (N, 1))
    y = (X[:, 0] - X[:, 2] ** 2)[:, None]
    for count in (1, 2):
        left, total = F - y, np.zeros((N, 1))
        for _ in range(count):
            h = slow.fit(left, None).evaluate(X)
            h = SPACE.inner(left, h) / SPACE.norm(h) ** 2 * h
            left, total = left - h, total + h
        total *= SPACE.inner(F - y, total) / SPACE.norm(total) ** 2
        F = F - 0.5 * total
        np.testing.assert_allclose(result.path.truncate(count).predict(X), F, rtol=1e-9, atol=1e-9)


def test_repeated_within_an_accuracy():
    """The projection goes on until what is left is no longer than sqrt(λ accuracy/2)."""
    result = run(Repeated(accuracy=0.05), "constant:0.5", loss=HalfSquared(), n_rounds=3)
    learners = np.diff(result.history["weak_learners"])
    assert learners[0] > 1
    fine = run(Repeated(accuracy=0.001), "constant:0.5", loss=HalfSquared(), n_rounds=1)
    assert fine.history["weak_learners"][1] > learners[0]
    with pytest.warns(UserWarning, match="`accuracy`=0.001 may be missed"):
        capped = run(Repeated(accuracy=0.001, cap=2), "constant:0.5", loss=HalfSquared(), n_rounds=3)
    assert np.diff(capped.history["weak_learners"]).tolist() == [2, 2, 2]


def test_repeated_with_a_radius():
    """accuracy/(2 radius) without strong convexity: a larger radius asks for more projections."""
    few, many = (
        run(Repeated(accuracy=0.1, radius=radius), loss=Absolute(), n_rounds=1).history["weak_learners"][1]
        for radius in (0.5, 5.0)
    )
    assert few < many
    assert run(Repeated(accuracy=0.1), loss=Absolute(), n_rounds=2).history["weak_learners"][2] >= 2
