"""Two points on which naive boosting fails (theory 5), with the numbers of the tie-free variant."""

import numpy as np
import pytest

from convexboost.boosting.algorithms import Algorithm, Residual
from convexboost.boosting.steps import Constant, InverseTime
from convexboost.boosting.training import boost
from convexboost.core.space import FunctionSpace
from convexboost.core.tolerances import KINK
from convexboost.learners.finite import FiniteSet
from convexboost.paper import bounds
from convexboost.paper.counterexample import Slopes, run

ROUNDS = (10, 100, 1000)
TABLE = {
    "naive": ((0.548549, 0.451006, 0.450032), (0.997172, 0.641446, 0.512390), (0, 0, 0)),
    "repeated": ((0.198249, 0.041305, 0.012832), (0.707475, 0.235336, 0.075550), (9, 99, 999)),
    "residual": ((1.311978, 0.434794, 0.126526), (0.984274, 0.414762, 0.140059), (3, 33, 333)),
}


@pytest.fixture(scope="module")
def runs():
    return {algorithm: run(algorithm, max(ROUNDS)) for algorithm in TABLE}


@pytest.mark.parametrize("algorithm", TABLE)
def test_table(runs, algorithm):
    """R(f_T), its average over the evaluated points, and how often f(x_2) moved."""
    found, (last, average, moves) = runs[algorithm], TABLE[algorithm]
    R, f_2 = found.objective, found.points[:, 1]
    assert [R[T] for T in ROUNDS] == pytest.approx(last, abs=1e-6)
    assert [R[:T].mean() for T in ROUNDS] == pytest.approx(average, abs=1e-6)
    assert tuple(np.count_nonzero(np.diff(f_2[: T + 1])) for T in ROUNDS) == moves


def test_objective_is_the_mean_of_the_two_losses(runs):
    for found in runs.values():
        assert np.allclose(found.objective, np.abs(found.points) @ [2.0, 0.9] / 2)


def test_dual_averaging_first_rounds():
    """Later it hits exact zeros at square t, where rounding decides."""
    R = run("dual_averaging", 10).objective
    assert (R[10], R[:10].mean()) == pytest.approx((1.065783, 1.055176), abs=1e-6)


@pytest.mark.parametrize(
    "step", ["inverse_sqrt", "constant:0.3", "inverse_time:1", "adanorm:1", "line_search"]
)
def test_naive_never_moves_the_flatter_point(step):
    """Bit for bit, whatever the steps, so that R(f_t) ≥ ½ · 0.9 |f_2(0)|, although every edge is large."""
    found = run("naive", 200, step=step)
    assert np.all(found.points[:, 1] == 1.0)
    assert np.all(found.objective >= 0.45)
    edges = found.result.history["edge"][1:]
    assert np.allclose(edges, 2 / np.hypot(2, 0.9))


class ZeroAtTheKink(Slopes):
    def evaluate(self, F, y):
        losses, G = super().evaluate(F, y)
        return losses, np.where(np.abs(F) <= KINK, 0.0, G)


def test_naive_escapes_only_by_a_zero_subgradient():
    """Erratum 35: with sgn(0) = 0 and η = 0.5/t the first step lands on the kink; then only f_2 moves."""
    space = FunctionSpace.of(2)
    found = boost(
        ZeroAtTheKink().bind([2.0, 1.0], space),
        FiniteSet(np.eye(2)[:, :, None], space),
        algorithm="naive",
        step=InverseTime(0.5),
        n_rounds=50,
        start=np.ones(1),
    )
    moved = [h.index for (_, h) in found.path.terms]
    assert moved == [0] + [1] * 49
    assert np.all(run("naive", 50, slopes=(2.0, 1.0), step=InverseTime(0.5)).points[:, 1] == 1.0)


def test_residual_converges(runs):
    found = runs["residual"]
    assert found.objective[:1000].mean() < 0.2
    assert found.objective[:1000].min() < 1e-4


def test_smallest_edge(runs):
    edges = runs["residual"].result.history["edge"][1:]
    assert edges.min() == pytest.approx(0.743294, abs=1e-6)
    assert edges.min() >= 1 / np.sqrt(2)  # the uniform edge of two orthogonal functions


class KeepsDelta(Algorithm):
    """Algorithm 3 that notes ‖Δ_t‖."""

    def __init__(self):
        self.norms, self.check = [], Residual().check

    def round(self, state):
        done = Residual().round(state)
        self.norms.append(FunctionSpace.of(2).norm(state.target.values))
        return done


@pytest.mark.parametrize("slopes", [(2.0, 0.9), (2.0, 1.0)])
def test_largest_residual(slopes):
    """max ‖Δ‖ = √2."""
    algorithm = KeepsDelta()
    run(algorithm, 1000, slopes)
    assert max(algorithm.norms) == pytest.approx(np.sqrt(2), abs=1e-9)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("slopes", [(2.0, 0.9), (2.0, 1.0)])
@pytest.mark.parametrize("T", [100, 1000, 5000])
def test_theorem_b(slopes, T):
    """η = 0.03, uniform edge 1/√2, d_1 = 1: average ≤ 1/(0.06 T) + 0.03 κ G²/2."""
    assert bounds.kappa(np.sqrt(0.5)) == pytest.approx(5.828427)
    R = run("residual", T, slopes, Constant(0.03)).objective
    bound = bounds.theorem_b_a_priori(
        np.full(T, 0.03), 1.0, np.sqrt(np.mean(np.square(slopes))), np.sqrt(0.5)
    )
    assert R[:T].mean() <= bound.value


@pytest.mark.parametrize("algorithm", ["repeated", "residual", "dual_averaging", "error_feedback"])
def test_all_but_naive_fall_below_its_floor(algorithm):
    assert run(algorithm, 400).objective.min() < 0.1
