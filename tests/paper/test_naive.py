"""Algorithm 1: linear if R is smooth and strongly convex, 1/T if smooth, else a floor (theory 3.3)."""

import numpy as np
import pytest

from convexboost.boosting.algorithms import Naive
from convexboost.boosting.steps import Constant, InverseSqrt, LineSearch
from convexboost.paper import bounds
from tests.paper.problems import make
from tests.paper.traces import assert_below, certificate_c1, run, squares

SETS = ["full_span", "low_rank", "coordinates", "stumps"]
T = 200


def gaps(trace):
    """R(x_1) … R(x_{T+1}) − R*."""
    return trace.R - trace.problem.minimum


@pytest.mark.one_in(2)
@pytest.mark.parametrize("l2", [0.0, 0.5])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("hypotheses", SETS)
def test_theorem_i_is_an_equality_for_least_squares(hypotheses, seed, l2):
    """λ = Λ = 1 + l2, step 1/Λ: every round multiplies the gap by exactly 1 − γ_t²."""
    o = run(make("half_squared", hypotheses, seed, l2), Naive(), Constant(1 / (1 + l2)), T)
    gap = gaps(o)
    assert np.allclose(np.diff(o.z, axis=0), -o.eta[:, None] * o.h)
    bound = bounds.theorem_i(o.edge, gap[0], 1 + l2, 1 + l2, o.eta)
    assert not bound.failed
    assert np.allclose(gap[1:], bound.curve, rtol=1e-7, atol=1e-13)


@pytest.mark.parametrize("hypotheses", SETS)
def test_printed_proof_of_theorem_3_is_false(hypotheses):
    """Erratum 15: with γ instead of γ² the rate does not hold, not even with the smallest edge."""
    o = run(make("half_squared", hypotheses, 0), Naive(), Constant(1.0), T)
    gap = gaps(o)
    printed = (1 - np.minimum.accumulate(o.edge)) ** o.t * gap[0]
    assert np.any(gap[1:] > printed + 1e-9)


@pytest.mark.parametrize("hypotheses", SETS)
def test_line_search_finds_the_step_of_theorem_i(hypotheses):
    """On a quadratic the exact step is 1/Λ in every round."""
    o = run(make("half_squared", hypotheses, 1, 1.0), Naive(), LineSearch(), 8)
    assert np.allclose(o.eta, 0.5, rtol=1e-5)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("step", [Constant(1 / 0.7), LineSearch()], ids=["constant", "line_search"])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("hypotheses", ["full_span", "low_rank", "stumps"])
def test_theorem_i(hypotheses, seed, step):
    """Softmax with a ridge: λ = 0.2, Λ = 0.7, measured edges."""
    o = run(make("softmax", hypotheses, seed, 0.2), Naive(), step, T)
    gap = gaps(o)
    measured = bounds.theorem_i(o.edge, gap[0], 0.7, 0.2).curve
    assert_below(gap[1:], measured, tolerance=1e-10)
    assert_below(measured, bounds.printed_3(o.t, o.edge, gap[0], 0.7, 0.2).curve, tolerance=1e-10)


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_theorem_i_prime(seed):
    """Smooth, λ = 0: each step gains ‖h_t‖²/2Λ, and the gap falls like 1/T."""
    problem = make("softmax", "low_rank", seed)
    Lambda = problem.objective.constants.smoothness
    o = run(problem, Naive(), Constant(1 / Lambda), T)
    assert_below(o.R[1:], o.R[:-1] - squares(o.h) / (2 * Lambda), tolerance=1e-12)
    gap = gaps(o)
    measured = bounds.theorem_i_prime(o.edge, gap[0], o.d[:-1], Lambda, o.eta).curve
    assert_below(gap[1:], measured, tolerance=1e-10)
    assert_below(measured, bounds.theorem_i_prime_a_priori(o.t, o.edge, o.d[:-1], Lambda, o.eta).curve)


@pytest.mark.one_in(2)
def test_theorem_j(convex):
    """Not smooth: a bound whose last term does not vanish, and valid certificates all the same."""
    o = run(convex, Naive(), InverseSqrt(), T)
    assert_below(o.average_gap, bounds.theorem_j(o.eta, o.h_norm, o.g_norm, o.edge, o.d[:-1]).curve)
    assert_below(certificate_c1(o, convex.d_1), convex.minimum)


def test_reported_edge_is_raw(convex):
    """Definition 1: ‖h_t‖/‖g_t‖, and at most the intrinsic edge."""
    o = run(convex, Naive(), InverseSqrt(), 20)
    assert np.allclose(o.raw_edge * o.raw_norm, np.sqrt(squares(o.h)))
    assert_below(o.raw_edge, o.edge)
