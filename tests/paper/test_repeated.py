"""Algorithm 2′ and its threshold form: Theorem H (theory 3.2, 7.1)."""

import numpy as np
import pytest

from convexboost.boosting.algorithms import Repeated, Residual
from convexboost.boosting.steps import Constant, InverseSqrt, InverseTime
from convexboost.boosting.training import boost
from convexboost.core.gradients import Gradient
from convexboost.core.hypotheses import Direction
from convexboost.core.space import FunctionSpace
from convexboost.learners.finite import FiniteSet
from convexboost.learners.stump import Stump
from convexboost.learners.tree import Tree
from convexboost.losses.absolute import Absolute
from convexboost.paper import bounds
from tests.paper import more_bounds
from tests.paper.problems import make, uniform_edge
from tests.paper.traces import assert_below, certificate_c1, certificate_c2, run, squares

pytestmark = pytest.mark.one_in(3)  # the others: make test-slow

T = 25


@pytest.fixture(scope="module")
def repeated(convex):
    return run(convex, Repeated(), InverseSqrt(), T)


@pytest.fixture(scope="module")
def repeated_strong(strongly_convex):
    return run(strongly_convex, Repeated(), InverseTime(), T)


def lengths(V):
    return np.sqrt(squares(V))


def test_round_is_algorithm_2_prime(repeated):
    """t projections in round t, then one rescale: h_t ⟂ g_t − h_t, so ‖h_t‖ ≤ ‖g_t‖."""
    o = repeated
    assert np.allclose(np.diff(o.z, axis=0), -o.eta[:, None] * o.h)
    assert np.all(o.learners <= o.t)
    assert o.learners[0] == 1
    assert np.allclose(np.einsum("tr,tr->t", o.h, o.g), squares(o.h))
    assert_below(lengths(o.h), lengths(o.g))


def test_reported_edge_is_of_the_gradient(repeated):
    o = repeated
    assert np.allclose(o.raw_edge * o.raw_norm, lengths(o.h))


def test_inner_loop_converges_linearly(repeated):
    """‖g_t − h_t‖ ≤ (1 − γ²)^(K_t/2) ‖g_t‖: Algorithm 1 on ½‖g_t − h‖²."""
    o = repeated
    s = np.sqrt(1 - o.edge**2)
    assert_below(lengths(o.g - o.h), s**o.learners * lengths(o.g))


def test_theorem_h_convex(repeated):
    """η = 1/√t, K_t = t: the corrected Theorem 5, with a 1/T and E = 0."""
    o = repeated
    measured = bounds.theorem_h(o.eta, o.h_norm, o.left_norm, o.d[:-1]).curve
    assert_below(o.average_gap, measured)
    assert_below(measured, bounds.theorem_h_a_priori(o.eta, o.d[:-1], o.g_norm, o.edge).curve)


def test_theorem_h_constant_step(convex, repeated):
    """An unbounded domain: M bounds the iterates."""
    eta = max(convex.d_1, 0.1) / (repeated.g_max[-1] * np.sqrt(T))
    o = run(convex, Repeated(), Constant(eta), T)
    given = convex.d_1, o.g_norm, o.edge
    radius = more_bounds.theorem_h_constant_radius(o.eta, o.h_norm, *given)
    assert_below(np.maximum.accumulate(o.d[1:]), radius.curve)
    measured = bounds.theorem_h_constant(o.eta, o.h_norm, *given).curve
    assert_below(o.average_gap, measured)
    assert_below(measured, bounds.theorem_h_constant_a_priori(o.eta, *given).curve)


def test_theorem_h_strongly_convex(strongly_convex, repeated_strong):
    """η = 2/(λt): Theorem 4 with the constant as printed, true once h_t is rescaled."""
    o, lam = repeated_strong, strongly_convex.strong_convexity
    measured = bounds.theorem_h_strong(o.eta, o.h_norm, o.left_norm, lam).curve
    assert_below(o.average_gap, measured)
    a_priori = bounds.theorem_h_strong_a_priori(o.eta, o.g_norm, o.edge, lam).curve
    assert_below(measured, a_priori)
    assert np.allclose(a_priori, bounds.printed_4(o.eta, o.g_norm, o.edge, lam).curve)


def test_certificates(convex, repeated):
    """The cuts do not care which algorithm found the points."""
    assert_below(certificate_c1(repeated, convex.d_1), convex.minimum)


def test_certificates_strongly_convex(strongly_convex, repeated_strong):
    assert_below(certificate_c2(repeated_strong), strongly_convex.minimum)


# The threshold form: projections go on until ‖Πr‖ ≤ τ (theory 7.1).

EPSILON = [0.05, pytest.param(0.005, marks=pytest.mark.slow)]
THRESHOLD = [
    ("absolute", "coordinates", 0),
    ("absolute", "coordinates", 1),
    ("absolute", "low_rank", 0),
    ("absolute", "low_rank", 1),
    ("multiclass_hinge", "low_rank", 0),
    ("multiclass_hinge", "low_rank", 1),
    ("absolute", "stumps", 0),
    ("multiclass_hinge", "class_stumps", 1),
]


def assert_stops_at(o, tau):
    """Every round ends as soon as ‖Πr‖ ≤ τ, and not before: a τ twice too large or too small is noticed."""
    tau = np.broadcast_to(tau, o.eta.shape)
    left = o.last_length * np.sqrt(1 - o.last_edge**2)
    assert_below(left, tau)
    several = o.learners > 1
    assert several.any()
    assert np.all(o.last_length[several] > tau[several])
    close = [np.any(left > tau / 2), np.any(o.last_length[several] < 2 * tau[several])]
    assert all(close), "these rounds would not notice a factor of two"
    assert_below(o.left_norm, tau)  # the final rescale only shortens what is left over


@pytest.mark.parametrize("accuracy", EPSILON)
def test_accuracy_is_kept_on_strongly_convex_objectives(strongly_convex, accuracy):
    """‖Πr‖²/λ ≤ ε/2 in every round: what the projection error adds to the average gap."""
    lam = strongly_convex.strong_convexity
    o = run(strongly_convex, Repeated(accuracy=accuracy), InverseTime(), 15)
    assert_below(o.left_norm**2 / lam, accuracy / 2)
    assert_stops_at(o, np.sqrt(lam * accuracy / 2))
    bound = more_bounds.threshold_strong(o.eta, o.h_norm, accuracy, lam)
    assert not bound.failed
    assert_below(o.average_gap, bound.curve)


@pytest.mark.parametrize("accuracy", EPSILON)
@pytest.mark.parametrize("case", THRESHOLD[2:], ids=str)  # coordinates leave 0 or much
def test_accuracy_is_kept_within_the_radius(case, accuracy):
    """⟨x_t − f, r_t⟩ ≤ ε/2 for all f within the radius; the optimum is one of them."""
    problem = make(*case)
    radius = 3 * problem.d_1
    o = run(problem, Repeated(accuracy=accuracy, radius=radius), InverseSqrt(0.3 * problem.d_1), 30)
    assert o.d.max() <= radius
    assert_below(radius * o.left_norm, accuracy / 2)
    assert_stops_at(o, accuracy / (2 * radius))
    bound = more_bounds.threshold_bounded(o.eta, o.h_norm, o.d[:-1], accuracy)
    assert not bound.failed
    assert_below(o.average_gap, bound.curve)


@pytest.mark.parametrize("case", THRESHOLD[2:], ids=str)  # coordinates leave 0 or much
def test_accuracy_is_kept_within_the_distance_travelled(case):
    """Without a radius: against the models that are no further from the start than the iterate."""
    problem, accuracy = make(*case), 0.05
    o = run(problem, Repeated(accuracy=accuracy), InverseSqrt(0.5 * problem.d_1), 30)
    travelled = np.linalg.norm(o.z[:-1], axis=1)
    assert_below(2 * travelled * o.left_norm, accuracy / 2)
    nearest = (o.R[:-1] - problem.objective.constants.minimum) / o.raw_norm
    assert_stops_at(o, accuracy / (2 * np.maximum(2 * travelled, nearest)))


@pytest.mark.parametrize("n_rounds", [9, 36, 100])
@pytest.mark.parametrize("case", THRESHOLD[:6], ids=str)
def test_threshold_constant_step(case, n_rounds):
    """τ = G/(4√T), η = d_1/(G√T), no bounded domain: average gap ≤ 1.43 d_1 G/√T."""
    problem = make(*case)
    gamma, G = uniform_edge(problem), problem.objective.constants.lipschitz
    tau = G / (4 * np.sqrt(n_rounds))
    radius = 1.69 * problem.d_1
    eta = problem.d_1 / (G * np.sqrt(n_rounds))
    o = run(problem, Repeated(accuracy=2 * radius * tau, radius=radius), Constant(eta), n_rounds)
    assert_below(o.left_norm, tau)
    assert_below(o.d, radius)
    bound = more_bounds.threshold_constant(n_rounds, eta, tau, problem.d_1, G)
    assert not bound.failed
    assert_below(o.average_gap[-1], bound.value)
    most = more_bounds.threshold_projections(o.g_norm, tau, gamma).curve
    assert np.all(o.learners <= np.maximum(most, 1))


def test_more_projections_than_the_cap_are_missed_with_a_warning():
    problem = make("absolute", "coordinates", 0, 0.3)
    with pytest.warns(UserWarning, match=r"`accuracy`=0.005 may be missed: 3 projections in a round"):
        o = run(problem, Repeated(accuracy=0.005, cap=3), InverseTime(), 2)
    assert o.learners.tolist() == [3, 3]


def test_a_set_that_does_not_know_its_span_goes_by_the_whole_vector():
    """Trees of two leaves cannot reach all of ∇: ‖r‖ is an upper bound that is never small enough."""
    problem = make("absolute", "stumps", 0, 0.3)
    H = Tree(max_leaves=2, min_samples_leaf=1, max_bins=3).bind(problem.X, problem.space)
    with pytest.warns(UserWarning, match="`accuracy`=0.05 may be missed"):
        boost(
            problem.objective, H, algorithm=Repeated(accuracy=0.05, cap=20), step="inverse_time", n_rounds=1
        )
    full = Tree(max_leaves=20, min_samples_leaf=1).bind(problem.X, problem.space)
    done = boost(problem.objective, full, algorithm=Repeated(accuracy=0.05), step="inverse_time", n_rounds=3)
    assert 3 <= done.history["weak_learners"][-1] <= 12


def test_thousands_of_projections_where_the_length_is_known():
    """Many correlated stumps have small edges; the promise is kept all the same."""
    rng = np.random.default_rng(0)
    X, space = rng.normal(size=(150, 2)), FunctionSpace.of(150)
    H = Stump().bind(X, space)
    objective = Absolute().bind(X[:, 0] + np.sin(3 * X[:, 1]), space).with_l2(0.3)
    done = boost(objective, H, algorithm=Repeated(accuracy=0.01), step="inverse_time", n_rounds=1)
    assert 1000 < done.history["weak_learners"][-1] < 100_000
    scores = objective.scores(H.inputs, objective.start())
    left = H.zero(1)
    left.add(scores.gradient())
    left.subtract(Direction(tuple((-w / done.history["step"][1], h) for w, h in done.path.terms), 1.0))
    assert left.length() ** 2 / 0.3 <= 0.005 * (1 + 1e-9)


# Algorithm 2 without the rescaling


def test_plain_algorithm_2(convex):
    """h_t is the plain sum of the projections: g_t − h_t is what matching pursuit leaves."""
    o = run(convex, Repeated(rescale=False), InverseSqrt(), T)
    rescaled = run(convex, Repeated(), InverseSqrt(), T)
    np.testing.assert_allclose(o.h[0], rescaled.h[0])  # one projection needs no rescaling
    left = o.last_length * np.sqrt(1 - o.last_edge**2)
    full = o.learners == o.t  # else it stopped at rounding
    np.testing.assert_allclose(o.left_norm[full], left[full], rtol=1e-6, atol=1e-9)
    given = o.d[:-1], o.g_norm, o.edge
    assert_below(o.average_gap, bounds.theorem_h_a_priori(o.eta, *given, rescaled=False).curve)


def test_plain_algorithm_2_may_overshoot():
    """‖h_t‖ ≤ ‖∇_t‖ is false without the rescaling (erratum 23): 1.117627 in the plane."""
    angles = np.deg2rad([-20.0, 40.0])
    space = FunctionSpace.of(2)
    H = FiniteSet(np.column_stack([np.cos(angles), np.sin(angles)])[:, :, None], space)
    lengths = {}
    for rescale in (False, True):
        delta = H.zero(1)
        delta.add(Gradient(np.array([[np.sqrt(2)], [0.0]]), space))
        lengths[rescale] = delta.pursue(2, np.random.default_rng(0), 0.0, rescale).norm
    assert lengths[False] == pytest.approx(1.117627, abs=1e-6)
    assert lengths[True] <= 1.0


# The steps that the theorems ask for are the defaults


def test_inverse_time_is_that_of_theorem_4(strongly_convex):
    o, lam = run(strongly_convex, Repeated(), InverseTime(), T), strongly_convex.strong_convexity
    np.testing.assert_allclose(o.eta, 2 / (lam * o.t))
    printed = bounds.printed_4(o.eta, o.g_norm, o.edge, lam)
    assert printed.failed == ()
    assert_below(o.average_gap, printed.curve)


def test_inverse_time_is_that_of_theorem_6(strongly_convex):
    o, lam = run(strongly_convex, Residual(), InverseTime(), T), strongly_convex.strong_convexity
    np.testing.assert_allclose(o.eta, 1 / (lam * o.t))
    printed = bounds.printed_6(o.eta, o.g_norm, o.edge, lam)
    assert printed.failed == ()
    assert_below(o.average_gap, printed.curve)
