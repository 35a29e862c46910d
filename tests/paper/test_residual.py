"""Algorithm 3 and its two relatives: Lemmas L1–L3, Theorems A–G, certificates (theory 3.0, 3.1, 4)."""

import numpy as np
import pytest

from convexboost.boosting.algorithms import Residual
from convexboost.boosting.steps import AdaNorm, Constant, InverseSqrt, InverseTime, Polyak, Step
from convexboost.boosting.training import boost
from convexboost.boosting.variants import DualAveraging, ErrorFeedback
from convexboost.core.gradients import Gradient
from convexboost.learners._stumps import HistogramTarget
from convexboost.paper import bounds
from tests.paper import more_bounds
from tests.paper.problems import CONVEX, STRONGLY_CONVEX, make, uniform_edge
from tests.paper.traces import assert_below, certificate_c1, certificate_c2, run, squares

pytestmark = pytest.mark.one_in(3)  # the others: make test-slow

T = 200


@pytest.fixture(scope="module")
def residual(convex):
    return run(convex, Residual(), InverseSqrt(), T)


@pytest.fixture(scope="module")
def residual_strong(strongly_convex):
    return run(strongly_convex, Residual(), InverseTime(), T)


def theorem_b_step(trace):
    """η = d_1/(G √(κT)) for the constants seen in another run."""
    gamma = trace.edge.min()
    return bounds.theorem_b_step(len(trace.eta), max(trace.d[0], 0.1), trace.g_max[-1], gamma)


# Lemmas


def test_round_is_algorithm_3(residual):
    """h_t = proj(Δ_{t−1} + g_t), x_{t+1} = x_t − η_t h_t, and Δ_t is what the library carries."""
    o = residual
    D = o.delta[:-1] + o.g
    assert np.allclose(np.diff(o.z, axis=0), -o.eta[:, None] * o.h)
    assert np.allclose(np.einsum("tr,tr->t", o.h, D), squares(o.h))
    assert np.all(np.abs(np.einsum("tr,tr->t", o.h, o.delta[1:])) <= 1e-9 * (1 + squares(o.h)))


def test_library_keeps_the_same_residual(convex, residual):
    target = residual.state.target
    if isinstance(target, HistogramTarget):
        inside = convex.function(residual.delta[-1]) - convex.f_0
        expected = convex.H.sample.histogram(Gradient(inside, convex.space))
        span = convex.H.span
        assert np.allclose(span.whiten(target.table), span.whiten(expected), atol=1e-9)
    else:
        assert np.allclose(convex.coordinates(target.values), residual.delta[-1])


def test_l1_residual_is_bounded(residual):
    o = residual
    assert_below(np.sqrt(squares(o.delta[1:])), o.c_delta * o.g_max)
    assert_below(np.sqrt(squares(o.delta[:-1] + o.g)), o.g_max / (1 - o.s))
    assert_below(np.sqrt(squares(o.h)), o.g_max / (1 - o.s))
    assert_below(np.cumsum(squares(o.delta[1:])), o.c_delta**2 * np.cumsum(squares(o.g)))


def test_l2_energy_identity(residual):
    o = residual
    h, delta = squares(o.h), squares(o.delta)
    assert np.allclose(h + delta[1:], delta[:-1] + o.q, rtol=1e-9, atol=1e-9)
    assert_below(o.q, o.kappa * o.g_max**2)
    assert_below(np.cumsum(o.eta * h) + o.eta * delta[1:], np.cumsum(o.eta * o.q))
    assert_below(np.cumsum(o.eta * o.q), o.kappa * o.g_max**2 * np.cumsum(o.eta))


def test_l3_identity(convex, residual):
    """For every f, not only the optimum."""
    o = residual
    for f in (convex.z_star, np.random.default_rng(0).normal(size=len(convex.z_star))):
        a = o.z - f
        left = np.cumsum(np.einsum("tr,tr->t", a[:-1], o.g))
        right = np.cumsum(-np.diff(squares(a)) / (2 * o.eta)) + np.cumsum(o.eta * squares(o.h)) / 2
        right += np.einsum("tr,tr->t", a[1:], o.delta[1:])
        assert np.allclose(left, right, rtol=1e-9, atol=1e-9)


# Edges


STUMPS = [case for case in CONVEX if "stumps" in case[1]]


@pytest.mark.parametrize("case", STUMPS, ids=str)
def test_intrinsic_edge_from_histograms(case):
    """‖Πv‖ comes from the bin sums alone (theory 4.5), and so does the edge that the library reports."""
    problem = make(*case)
    v = np.random.default_rng(0).normal(size=problem.offset.shape)
    v -= v.mean(axis=1, keepdims=True) if v.shape[1] > 1 else 0.0
    table = problem.H.sample.histogram(Gradient(v, problem.space))
    assert np.sum(problem.H.span.whiten(table) ** 2) == pytest.approx(np.sum(problem.coordinates(v) ** 2))
    o = run(problem, Residual(), InverseSqrt(), 50)
    exact = np.sqrt(squares(o.h)) / np.sqrt(squares(o.delta[:-1] + o.g))
    assert np.allclose(o.edge, exact)
    measured = np.isfinite(o.intrinsic_edge)
    assert measured.any()
    assert np.allclose(o.intrinsic_edge[measured], exact[measured])


@pytest.mark.parametrize("seed", range(4))
def test_raw_edge_vanishes_and_that_is_no_failure(seed):
    """Δ grows without limit outside S; inside it is bounded and the run converges (theory 0.4)."""
    problem = make("absolute", "low_rank", seed)
    o = run(problem, Residual(), InverseSqrt(), 1000)
    assert o.raw_edge[-50:].max() < 0.02
    assert o.edge.min() > 0.3
    assert o.gap.min() < 0.01


# Convex objectives


def test_theorem_a(residual):
    """η = 1/√t with Dmax, a diameter: measured and a priori forms of the corrected Theorem 7."""
    o = residual
    measured = bounds.theorem_a(o.eta, o.h_norm, o.delta_norm, o.d[:-1])
    a_priori = bounds.theorem_a_a_priori(o.eta, o.d[:-1], o.g_norm, o.edge)
    assert_below(o.average_gap, measured.curve)
    assert_below(measured.curve, a_priori.curve)
    assert_below(a_priori.curve, (o.d_max**2 / 2 + o.kappa * o.g_max**2) / np.sqrt(o.t))


def test_theorem_a_prime(residual):
    """No bound on the iterates is assumed: M_T is one."""
    o = residual
    given = o.d[0], o.g_norm, o.edge
    radius = more_bounds.theorem_a_prime_radius(o.eta, o.h_norm, *given)
    assert_below(np.maximum.accumulate(o.d[1:]), radius.curve)
    measured = bounds.theorem_a_prime(o.eta, o.h_norm, *given)
    assert_below(o.weighted_gap(o.eta), measured.curve)
    assert_below(measured.curve, bounds.theorem_a_prime_a_priori(o.eta, *given).curve)


def test_theorem_a_second(convex):
    a = max(convex.d_1, 0.1)
    o = run(convex, Residual(), AdaNorm(a), T)
    assert np.allclose(o.eta, a / np.sqrt(np.cumsum(squares(o.h))))
    assert_below(o.average_gap, bounds.theorem_a_second(o.eta, o.h_norm, o.delta_norm, o.d[:-1]).curve)


@pytest.mark.parametrize("multiple", [0.3, 1.0, 3.0])
def test_theorem_b(convex, residual, multiple):
    """Constant step, unbounded domain: C1 ≤ measured ≤ a priori, and only d_1 is needed."""
    eta = multiple * theorem_b_step(residual)
    o = run(convex, Residual(), Constant(eta), T)
    d = convex.d_1
    measured = bounds.theorem_b(o.eta, o.h_norm, o.delta_norm, d).curve
    certificate = o.mean(o.R[:-1]) - certificate_c1(o, d)
    assert_below(o.average_gap, certificate)
    assert_below(certificate, measured)
    assert np.allclose(measured, (d**2 / (2 * eta) + eta / 2 * np.cumsum(o.q)) / o.t)
    assert_below(measured, bounds.theorem_b_a_priori(o.eta, d, o.g_norm, o.edge).curve)


@pytest.mark.parametrize("multiple", [1.0, 5.0])
def test_theorem_e(convex, residual, multiple):
    """Dual averaging, η = a/√t: anytime, unbounded, the plain average."""
    d = convex.d_1
    a = multiple * max(d, 0.1) / (residual.g_max[-1] * np.sqrt(2 * residual.kappa[-1]))
    o = run(convex, DualAveraging(), InverseSqrt(a), T)
    assert np.allclose(o.z[1:], -o.eta[:, None] * np.cumsum(o.h, axis=0))
    before = np.concatenate([o.eta[:1], o.eta[:-1]])
    measured = bounds.theorem_e(o.eta, o.h_norm, o.delta_norm, d).curve
    assert np.allclose(measured, (d**2 / (2 * o.eta) + np.cumsum(before * o.q) / 2) / o.t)
    assert_below(o.average_gap, measured)
    a_priori = bounds.theorem_e_a_priori(o.eta, d, o.g_norm, o.edge).curve
    assert_below(measured, a_priori)
    assert_below(a_priori, (d**2 / (2 * a) + a * o.kappa * o.g_max**2) / np.sqrt(o.t))


def test_theorem_e_adanorm(convex):
    d = convex.d_1
    o = run(convex, DualAveraging(), AdaNorm(max(d, 0.1)), T)
    assert_below(o.average_gap, bounds.theorem_e(o.eta, o.h_norm, o.delta_norm, d).curve)


def test_theorem_f(convex, residual):
    """Error feedback: any positive steps, the η-weighted average."""
    o = run(
        convex,
        ErrorFeedback(),
        InverseSqrt(3 * theorem_b_step(residual) * np.sqrt(T)),
        T,
        scales_gradient=True,
    )
    assert np.allclose(np.diff(o.z, axis=0), -o.h)
    correlation = np.einsum("tr,tr->t", o.delta[:-1], o.g)
    spent = np.cumsum(o.eta**2 * squares(o.g) + 2 * o.eta * correlation)
    measured = bounds.theorem_f(o.eta, o.h_norm, o.delta_norm, convex.d_1).curve
    assert np.allclose(measured, (convex.d_1**2 + spent) / (2 * np.cumsum(o.eta)))
    assert_below(o.weighted_gap(o.eta), measured)
    assert_below(measured, bounds.theorem_f_a_priori(o.eta, convex.d_1, o.g_norm, o.edge).curve)


def test_error_feedback_is_residual_for_a_constant_step(convex):
    one = run(convex, Residual(), Constant(0.05), 20)
    other = run(convex, ErrorFeedback(), Constant(0.05), 20, scales_gradient=True)
    assert np.allclose(one.z, other.z)


@pytest.mark.parametrize("case", [case for case in CONVEX if case[1] != "low_rank"], ids=str)
def test_polyak_error_feedback(case):
    """Best gap ≤ G d_1/((1−s)√T) (theory 7.2); a dense Δ does not know S, so there it is everything."""
    problem = make(*case)
    o = run(problem, ErrorFeedback(), Polyak(target=problem.minimum), T, scales_gradient=True)
    squared, correlation = squares(o.g), np.einsum("tr,tr->t", o.delta[:-1], o.g)
    assert np.allclose(o.eta * squared, np.maximum(o.gap - correlation, 0), atol=1e-9)
    virtual = squares(o.z - o.delta - problem.z_star)
    assert_below(virtual[1:], virtual[:-1] - o.eta**2 * squared)
    bound = bounds.polyak(o.t, problem.d_1, o.g_norm, o.edge).curve
    assert_below(np.sqrt(np.cumsum(o.gap**2)), bound * np.sqrt(o.t))
    assert_below(np.minimum.accumulate(o.gap), bound)


# Certificates and what the driver hands out


def test_certificate_c1_is_below_the_minimum(convex, residual):
    assert_below(certificate_c1(residual, convex.d_1), convex.minimum)


def test_average_is_over_the_evaluated_points(convex, residual):
    """`output="average"` is the iterate of the theorems, and R of it is at most the average R (Jensen)."""
    o = residual
    found = boost(
        convex.objective,
        convex.H,
        step="inverse_sqrt",
        n_rounds=len(o.eta),
        start=convex.start,
        offset=convex.offset,
        output="average",
    )
    assert np.allclose(found.history["objective"], o.R)
    average = found.model.predict(convex.X) + convex.offset
    z = convex.coordinates(average - convex.f_0)
    assert np.allclose(z, o.z[:-1].mean(axis=0))
    assert_below(convex.value(z), o.R[:-1].mean())
    assert_below(o.R.min(), found.history["objective"][found.best_round])


# Strongly convex objectives


def test_theorem_c(strongly_convex, residual_strong):
    """η = 1/(λt): (i) needs no unknown constant and is certificate C2; (ii) is a priori."""
    o, lam = residual_strong, strongly_convex.strong_convexity
    measured = bounds.theorem_c(o.eta, o.h_norm, o.delta_norm, lam).curve
    assert_below(o.average_gap, measured)
    a_priori = bounds.theorem_c_a_priori(o.eta, o.g_norm, o.edge, lam).curve
    assert_below(measured, a_priori)
    assert_below(a_priori, bounds.printed_6(o.eta, o.g_norm, o.edge, lam).curve)
    certificate = o.mean(o.R[:-1]) - certificate_c2(o)
    assert np.allclose(certificate, measured, rtol=1e-9, atol=1e-9)
    assert_below(certificate_c2(o), strongly_convex.minimum)


@pytest.mark.parametrize("case", [case for case in STRONGLY_CONVEX if case[0] != "half_squared"], ids=str)
def test_theorem_c_bounds_the_gradients(case):
    """(iii): x_{T+1} in closed form, and an a priori G for a Lipschitz loss plus a ridge."""
    o, lam = run(make(*case), Residual(), InverseTime(), T), case[-1]
    loss = o.g - lam * o.z[:-1]
    closed = -(np.cumsum(loss, axis=0) - o.delta[1:]) / (lam * o.t[:, None])
    assert np.allclose(o.z[1:], closed)
    L = np.sqrt(squares(loss).max())
    assert_below(o.g_max, more_bounds.theorem_c_gradient(T, L, o.edge.min()).curve)


class LogFree(Step):
    """η_t = 4/(λ(t+1)): a user's own step rule."""

    name = "log_free"

    def size(self, t, scores, norm, memory):
        return 4 / (scores.constants.strong_convexity * (t + 1))


def test_theorem_c_prime(strongly_convex):
    """The log-free rate, with weights t."""
    o, lam = run(strongly_convex, Residual(), LogFree(), T), strongly_convex.strong_convexity
    t = o.t
    gap = o.weighted_gap(t)
    assert_below(gap, bounds.theorem_c_prime(o.eta, o.h_norm, o.delta_norm, lam).curve)
    assert_below(gap, bounds.theorem_c_prime_a_priori(o.eta, o.g_norm, o.edge, lam).curve)
    assert_below(gap, np.cumsum(t * o.R[:-1]) / np.cumsum(t) - certificate_c2(o, t.astype(float)))


# Smooth objectives

SMOOTH = [("half_squared", "low_rank", 0), ("half_squared", "low_rank", 1), ("softmax", "low_rank", 0)]


@pytest.mark.parametrize("case", [*SMOOTH, ("half_squared", "coordinates", 0)], ids=str)
def test_theorem_g(case):
    """Smooth convex, η = 1/(Λκ) with the uniform edge: 1/T."""
    problem = make(*case)
    gamma = uniform_edge(problem)
    Lambda, kappa = problem.objective.constants.smoothness, bounds.kappa(gamma)
    o = run(problem, Residual(), Constant(1 / (Lambda * kappa)), 400)
    assert np.all(o.edge >= gamma - 1e-9)
    bound = bounds.theorem_g(o.eta, problem.d_1, gamma, Lambda).curve
    assert np.allclose(bound, kappa * Lambda * problem.d_1**2 / (2 * o.t))
    assert_below(o.average_gap, bound)


@pytest.mark.parametrize(
    "case", [("half_squared", "low_rank", 0), ("half_squared", "coordinates", 1)], ids=str
)
def test_theorem_g_prime(case):
    """Smooth and strongly convex, η = γ²/(9Λ): x_t − ηΔ_{t−1} converges linearly."""
    problem = make(*case, n_samples=8)
    gamma = uniform_edge(problem)
    eta = gamma**2 / 9
    o = run(problem, Residual(), Constant(eta), 400)
    V = squares(o.z - eta * o.delta - problem.z_star)
    bound = more_bounds.theorem_g_prime(o.eta, problem.d_1, gamma, 1.0, 1.0).curve
    assert_below(V[1:], bound, tolerance=1e-12)
