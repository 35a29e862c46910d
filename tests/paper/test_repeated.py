"""Algorithm 2′ and its threshold form: Theorem H (theory 3.2, 7.1)."""

import numpy as np
import pytest

from convexboost.boosting.algorithms import Repeated
from convexboost.boosting.steps import Constant, InverseSqrt, InverseTime
from convexboost.paper import bounds
from tests.paper import more_bounds
from tests.paper.problems import make, uniform_edge
from tests.paper.traces import assert_below, certificate_c1, certificate_c2, run, squares

T = 25


@pytest.fixture(scope="module")
def repeated(convex):
    return run(convex, Repeated(), InverseSqrt(), T)


@pytest.fixture(scope="module")
def repeated_strong(strongly_convex):
    return run(strongly_convex, Repeated(), InverseTime(2 / strongly_convex.strong_convexity), T)


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


# The threshold form.  The library stops on the next projected length, ‖h_{k+1}‖ ≤ τ, which needs no Π; then
# ‖Πr‖ ≤ τ/γ (theory 7.1, "trap").

THRESHOLD = [
    ("absolute", "coordinates", 0),
    ("absolute", "coordinates", 1),
    ("absolute", "low_rank", 0),
    ("absolute", "low_rank", 1),
    ("multiclass_hinge", "low_rank", 0),
    ("multiclass_hinge", "low_rank", 1),
]


@pytest.mark.parametrize("n_rounds", [9, 36, 100])
@pytest.mark.parametrize("case", THRESHOLD, ids=str)
def test_threshold_constant_step(case, n_rounds):
    """τ = G/(4√T), η = d_1/(G√T), no bounded domain: average gap ≤ 1.43 d_1 G/√T."""
    problem = make(*case)
    gamma, G = uniform_edge(problem), problem.objective.constants.lipschitz
    tau = G / (4 * np.sqrt(n_rounds))
    radius = 1.69 * problem.d_1
    eta = problem.d_1 / (G * np.sqrt(n_rounds))
    o = run(problem, Repeated(accuracy=2 * radius * gamma * tau, radius=radius), Constant(eta), n_rounds)
    assert_below(lengths(o.g - o.h), tau)
    assert_below(o.d, radius)
    bound = more_bounds.threshold_constant(n_rounds, eta, tau, problem.d_1, G)
    assert not bound.failed
    assert_below(o.average_gap[-1], bound.value)
    most = more_bounds.threshold_projections(o.g_norm, gamma * tau, gamma).curve
    assert np.all(o.learners <= np.maximum(most, 1))


@pytest.mark.parametrize("accuracy", [0.1, 0.01])
@pytest.mark.parametrize(
    "case", [("absolute", "low_rank", 0, 0.3), ("multiclass_hinge", "low_rank", 1, 0.1)], ids=str
)
def test_threshold_strongly_convex(case, accuracy):
    """τ = √(λ accuracy/2) costs at most accuracy/2."""
    problem = make(*case)
    gamma, lam = uniform_edge(problem), problem.strong_convexity
    o = run(problem, Repeated(accuracy=accuracy * gamma**2), InverseTime(2 / lam), 60)
    assert_below(squares(o.g - o.h) / lam, accuracy / 2)
    assert_below(o.average_gap, more_bounds.threshold_strong(o.eta, o.h_norm, accuracy, lam).curve)


def test_threshold_stops_on_the_next_length(convex):
    """Whatever the edges: the vector left over has no projection longer than the threshold."""
    threshold = 0.05
    o = run(convex, Repeated(accuracy=2 * threshold, radius=1.0), InverseSqrt(), 20)
    # The final rescale only shortens what is left over.
    assert_below(lengths(o.g - o.h), threshold / o.last_edge)
