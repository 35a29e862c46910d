"""Claims that are false as printed (theory 2), and mistakes that the checks must catch."""

from dataclasses import replace

import numpy as np
import pytest

from convexboost.boosting.algorithms import Residual
from convexboost.boosting.steps import InverseSqrt
from convexboost.boosting.training import boost
from convexboost.core.gradients import Gradient
from convexboost.core.hypotheses import Direction
from convexboost.core.space import FunctionSpace
from convexboost.learners.finite import FiniteSet
from convexboost.losses.absolute import Absolute
from convexboost.paper import bounds
from tests.paper.problems import make
from tests.paper.traces import certificate_c1, run, squares


def target_of(H, values):
    target = H.zero(1)
    target.add(Gradient(np.array(values, float)[:, None], H.space))
    return target


def sum_of(directions, H):
    total = np.zeros((H.space.n_samples, 1))
    for direction in directions:
        direction.add_to(total, H.inputs)
    return total


def test_literal_algorithm_2_runs_away():
    """Erratum 7: subtracting h_k itself and not its projection, ∇ = 0.1 and H = {±1}: the wrong sign."""
    H = FiniteSet(np.ones((1, 1, 1)), FunctionSpace.of(1))
    rng = np.random.default_rng(0)
    target, found, sums = target_of(H, [0.1]), [], []
    for _ in range(6):
        projection = target.project(rng)
        found.append(projection)
        sums.append(sum_of(found, H).item())
        ((coefficient, h),) = projection.terms
        target.subtract(Direction(((np.sign(coefficient), h),), 1.0))  # the misprint
    assert sums == pytest.approx([0.1, -0.8, -0.7, -1.6, -1.5, -2.4])
    corrected = target_of(H, [0.1]).pursue(6, rng)
    assert sum_of([corrected], H).item() == pytest.approx(0.1)


def plane():
    """Unit vectors at −20° and +40° in L²(P) on two points."""
    angles = np.deg2rad([-20.0, 40.0])
    atoms = np.sqrt(2) * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return FiniteSet(atoms[:, :, None], FunctionSpace.of(2))


def test_matching_pursuit_overshoots():
    """Erratum 23: ‖h‖ = 1.117627 ‖g‖ after two projections; the rescale of Algorithm 2′ takes it back."""
    H, rng, g = plane(), np.random.default_rng(0), [np.sqrt(2), 0.0]
    target, found = target_of(H, g), []
    for _ in range(2):
        found.append(target.project(rng))
        target.subtract(found[-1])
    assert H.space.norm(sum_of(found, H)) == pytest.approx(1.117627, abs=1e-6)

    rescaled = target_of(H, g).pursue(2, rng)
    values = sum_of([rescaled], H)
    assert H.space.norm(values) == pytest.approx(rescaled.norm)
    assert rescaled.norm < 1.0
    assert rescaled.edge == pytest.approx(rescaled.norm)
    left = np.array(g)[:, None] - values
    assert H.space.inner(left, values) == pytest.approx(0.0, abs=1e-12)
    assert H.space.norm(left) <= 0.171010  # not longer than without


def average_gap_on_the_line(F):
    """R(f) = |f + F| on one point, f_0 = F, f* = −F, η = 1/√t, T = F²: all |f_t| ≤ F."""
    space = FunctionSpace.of(1)
    found = boost(
        Absolute().bind([-F], space),
        FiniteSet(np.ones((1, 1, 1)), space),
        algorithm="residual",
        step="inverse_sqrt",
        n_rounds=int(F**2),
        start=np.array([F]),
    )
    return found.history["objective"][:-1].mean()


def printed_theorem_7(F, T):
    step = 1 / np.sqrt(np.arange(1, T + 1))
    return bounds.printed_7(step, F, 1.0, 1.0).value


@pytest.mark.parametrize(
    ("F", "gap"),
    [(100.0, 68.1270), pytest.param(1000.0, 668.1270, marks=pytest.mark.slow)],
    ids=["100", "1000"],
)
def test_theorem_7_needs_a_diameter(F, gap):
    """Erratum 25: with F a bound on ‖f‖ the printed bound is 0.500 F, and the average gap 0.668 F."""
    found = average_gap_on_the_line(F)
    assert found == pytest.approx(gap, abs=1e-3)
    assert found > printed_theorem_7(F, F**2)
    assert found < printed_theorem_7(2 * F, F**2)


class DividedByN(Absolute):
    """The classic mistake: an ordinary gradient of the mean loss where the functional one is asked for."""

    constants = Absolute.constants

    def evaluate(self, F, y):
        losses, G = super().evaluate(F, y)
        return losses, G / len(F)


@pytest.mark.parametrize("hypotheses", ["full_span", "low_rank", "coordinates", "stumps"])
@pytest.mark.parametrize("seed", [0, 2])
def test_gradient_divided_by_n_breaks_the_certificate(hypotheses, seed):
    problem = make("absolute", hypotheses, seed)
    right = run(problem, Residual(), InverseSqrt(), 100)
    assert np.all(certificate_c1(right, problem.d_1) <= problem.minimum + 1e-9)

    mistaken = replace(problem, objective=DividedByN().bind(problem.objective.y, problem.space))
    wrong = run(mistaken, Residual(), InverseSqrt(), 100)
    assert certificate_c1(wrong, problem.d_1)[-1] > problem.minimum + 1e-3


@pytest.mark.parametrize("hypotheses", ["full_span", "coordinates", "stumps"])
def test_steps_of_algorithm_3_are_longer_than_gradients(hypotheses):
    """Erratum 28: ‖h_t‖ ≤ G is false for Algorithm 3."""
    o = run(make("absolute", hypotheses, 1), Residual(), InverseSqrt(), 100)
    assert np.sqrt(squares(o.h)).max() > o.g_max[-1]


@pytest.mark.parametrize("gamma", [0.1, 0.5, 0.9])
def test_printed_sum_of_theorem_5_is_too_small(gamma):
    """Erratum 24: Σ_t s^t = s/(1−s) is larger than 2(1−γ²)/γ²."""
    sum_ = bounds.c_delta(gamma)
    assert sum_ > 2 * (1 - gamma**2) / gamma**2
    assert sum_ <= 2 * bounds.contraction(gamma) / gamma**2
