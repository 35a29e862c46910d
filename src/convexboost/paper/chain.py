"""A small problem with a known optimum, and every bound on its gap: measured ≤ certified ≤ proven ≤ printed.

R[f] = mean |f − y| (+ λ/2 ‖f‖²) over the span S of a few random functions, a strict subspace.  The optimum
is a linear program, or the dual of a quadratic one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import linprog, minimize

from convexboost.boosting.algorithms import Algorithm, Residual, Round, State
from convexboost.boosting.steps import Constant, InverseSqrt, InverseTime, Step
from convexboost.boosting.training import boost
from convexboost.boosting.variants import DualAveraging
from convexboost.core.protocols import Constants
from convexboost.core.space import Array, FunctionSpace
from convexboost.learners.finite import FiniteSet
from convexboost.losses.absolute import Absolute
from convexboost.paper import bounds


@dataclass(frozen=True)
class SolvedProblem:
    """min R over S from f_0 = 0, solved; functions of S as coordinates in an orthonormal basis."""

    y: Array
    H: FiniteSet
    basis: Array  #: (rank, n_samples)
    l2: float
    minimum: float  #: R*, or a certified lower bound of it
    optimum: Array

    def coordinates(self, V: Array) -> Array:
        """Πv, for functions of shape (…, n_samples)."""
        return (V * self.H.space.weight) @ self.basis.T

    @property
    def d_1(self) -> float:
        """‖f_0 − f*‖."""
        return float(np.linalg.norm(self.optimum))


def make(seed: int = 0, l2: float = 0.0, n_samples: int = 40, rank: int = 6) -> SolvedProblem:
    """Make and solve a random problem with sample weights."""
    rng = np.random.default_rng(seed)
    space = FunctionSpace.of(n_samples, rng.uniform(0.5, 1.5, n_samples))
    atoms = rng.normal(size=(2 * rank, rank)) @ rng.normal(size=(rank, n_samples))
    root = np.sqrt(space.weight)
    basis = np.linalg.svd(atoms * root, full_matrices=False)[2][:rank] / root
    y = 2 * rng.normal(size=rank) @ basis + rng.standard_t(3, size=n_samples)
    minimum, optimum = (_dual if l2 > 0.0 else _linear_program)(y, basis, space.weight, l2)
    return SolvedProblem(y, FiniteSet(atoms[:, :, None], space), basis, l2, minimum, optimum)


def _linear_program(y: Array, basis: Array, p: Array, l2: float) -> tuple[float, Array]:
    """Minimise Σ p_n t_n subject to t_n ≥ ± (f_n − y_n)."""
    rank, N = basis.shape
    A = np.block([[basis.T, -np.eye(N)], [-basis.T, -np.eye(N)]])
    found = linprog(np.append(np.zeros(rank), p), A_ub=A, b_ub=np.append(y, -y), bounds=(None, None))
    z = found.x[:rank]
    return float(p @ np.abs(z @ basis - y)), z


def _dual(y: Array, basis: Array, p: Array, l2: float) -> tuple[float, Array]:
    """Maximise −⟨u, y⟩ − ‖Πu‖²/2λ over |u| ≤ 1: every u gives a lower bound; f* = −Πu/λ at the best."""

    def negative(u: Array) -> tuple[float, Array]:
        inside = basis @ (p * u)
        return float(p * u @ y + inside @ inside / (2 * l2)), p * (y + inside @ basis / l2)

    found = minimize(
        negative,
        np.zeros(len(y)),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-1, 1)] * len(y),
        options={"ftol": 1e-16, "gtol": 1e-10, "maxiter": 10_000, "maxfun": 100_000},
    )
    return -float(found.fun), -(basis @ (p * found.x)) / l2


@dataclass
class Recorder(Algorithm):
    """An algorithm that notes what it sees and does."""

    algorithm: Algorithm
    rows: list[tuple[Array, float, Array, Array, float, float]] = field(default_factory=list)

    def check(self, step: Step, constants: Constants) -> None:
        """Ask the algorithm."""
        self.algorithm.check(step, constants)

    def round(self, s: State) -> Round:
        """One round of the algorithm: x_t, R, g_t, Δ_t, η_t, ‖h_t‖."""
        F: Any = s.F
        x, R, g = F.F[:, 0].copy(), F.value(), F.gradient().values[:, 0]
        done = self.algorithm.round(s)
        target: Any = s.target
        self.rows.append((x, R, g, target.values[:, 0], done.move.size, done.h.norm))
        return done


def measure(problem: SolvedProblem, algorithm: str, step: Step, n_rounds: int) -> bounds.Measurements:
    """Run an algorithm that keeps a residual, and measure in S all that the theorems ask for."""
    recorder = Recorder({"residual": Residual, "dual_averaging": DualAveraging}[algorithm]())
    found = boost(
        Absolute().bind(problem.y, problem.H.space).with_l2(problem.l2),
        problem.H,
        algorithm=recorder,
        step=step,
        n_rounds=n_rounds,
        start=np.zeros(1),
    )
    x, R, g, delta, eta, h = (np.array(column) for column in zip(*recorder.rows, strict=True))
    z, g, delta = (problem.coordinates(V) for V in (x, g, delta))
    before = np.vstack([np.zeros_like(delta[:1]), delta[:-1]])
    return bounds.Measurements(
        algorithm,
        step=eta,
        h=h,
        G=_norms(g),
        gamma=np.minimum(h / _norms(before + g), 1.0),
        D=_norms(z - problem.optimum),
        delta=_norms(delta),
        gap=np.append(R, found.history["objective"][-1]) - problem.minimum,
        certificate=_certificate(z, R, g, problem),
        d_1=problem.d_1,
        strong_convexity=problem.l2,
    )


def _certificate(z: Array, R: Array, g: Array, problem: SolvedProblem) -> Array:
    """Average R minus the lower bound C1 at D = d_1, or C2 where λ > 0 (uniform weights)."""
    t, lam = np.arange(1, len(R) + 1), problem.l2
    A = R - np.sum(g * z, axis=1) + lam / 2 * np.sum(z * z, axis=1)
    u = _norms(np.cumsum(g - lam * z, axis=0) / t[:, None])
    lower = np.cumsum(A) / t - (u**2 / (2 * lam) if lam > 0.0 else problem.d_1 * u)
    return np.cumsum(R) / t - lower


def _norms(V: Array) -> Array:
    return np.asarray(np.linalg.norm(V, axis=1))


@dataclass(frozen=True)
class Chain:
    """The bounds on one run's average gap, each below the next."""

    title: str
    links: list[bounds.Bound]

    @property
    def curves(self) -> list[Array]:
        """Return the curves, lowest first."""
        return [link.curve for link in self.links]


#: λ of the strongly convex run.
L2 = 0.3

#: The theorem that belongs to each run, and the paper's.
RUNS = {
    "residual, constant step": ("Theorem B", "proof of Theorem 7, other steps"),
    "dual averaging, a/√t": ("Theorem E", "proof of Theorem 7, other steps"),
    "residual, strongly convex, 1/(λt)": ("Theorem C", "Theorem 6"),
}


def chains(seed: int = 0, n_rounds: int = 1000, l2: float = L2) -> list[Chain]:
    """Run all three; the step scales are those of Theorems B and E with the edge of a first short run."""
    problem = make(seed)
    first = measure(problem, "residual", InverseSqrt(), 50)
    G, kappa = float(np.max(first.G)), float(bounds.kappa(np.min(first.gamma)))
    steps: list[tuple[str, SolvedProblem, Step]] = [
        ("residual", problem, Constant(problem.d_1 / (G * np.sqrt(kappa * n_rounds)))),
        ("dual_averaging", problem, InverseSqrt(problem.d_1 / (G * np.sqrt(2 * kappa)))),
        ("residual", make(seed, l2), InverseTime()),
    ]
    found = []
    for (title, wanted), (algorithm, solved, step) in zip(RUNS.items(), steps, strict=True):
        names = ("measured gap", "certificate", *wanted)
        all_of_them = bounds.bounds_of(measure(solved, algorithm, step, n_rounds))
        links = [bound for bound in all_of_them if bound.name in names and bound.on == bounds.AVERAGE]
        found.append(Chain(title, links))
    return found
