"""The library's algorithms run round by round, with every quantity of the theorems recorded in S = span(H).

Round t evaluates g_t at x_t and goes to x_{t+1}; averages run over the evaluated points x_1 … x_T (theory 1).
Arrays over rounds have a first axis of length T (T + 1 for z, R and delta).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from convexboost.boosting.algorithms import Algorithm, State
from convexboost.boosting.training import boost
from convexboost.core.protocols import Target
from convexboost.learners._stumps import HistogramTarget
from convexboost.paper import bounds
from tests.paper.problems import Problem

#: A vector this short is rounding; it has no edge.
NOTHING = 1e-12


@dataclass(frozen=True)
class Trace:
    problem: Problem
    z: np.ndarray  #: x_1 … x_{T+1}, minus f_0
    R: np.ndarray  #: R(x_1) … R(x_{T+1})
    g: np.ndarray  #: Π g_t
    h: np.ndarray  #: h_t
    delta: np.ndarray  #: Π Δ_0 … Π Δ_T (of error feedback: Π e)
    eta: np.ndarray
    edge: np.ndarray  #: the smallest intrinsic edge of the round
    raw_edge: np.ndarray  #: as the library reports it
    intrinsic_edge: np.ndarray  #: as the library reports it; NaN where it was not measured
    raw_norm: np.ndarray  #: ‖g_t‖, un-projected
    learners: np.ndarray  #: weak learners trained in the round
    last_edge: np.ndarray  #: of the last projection tried in the round
    last_length: np.ndarray  #: ‖Πr‖ before that projection
    state: State

    @property
    def t(self):
        """1, 2, …, T."""
        return np.arange(1, len(self.eta) + 1)

    @property
    def gap(self):
        """R(x_t) − R*."""
        return self.R[:-1] - self.problem.minimum

    @property
    def average_gap(self):
        return self.mean(self.gap)

    def mean(self, values):
        """Running mean."""
        return np.cumsum(values) / self.t

    def weighted_gap(self, weights):
        return np.cumsum(weights * self.gap) / np.cumsum(weights)

    @cached_property
    def d(self):
        """‖x_t − f*‖, t = 1 … T + 1."""
        return np.linalg.norm(self.z - self.problem.z_star, axis=1)

    @property
    def d_max(self):
        return np.maximum.accumulate(self.d[:-1])

    @property
    def g_max(self):
        """Running max ‖g_t‖."""
        return np.sqrt(np.maximum.accumulate(squares(self.g)))

    @property
    def g_norm(self):
        return np.sqrt(squares(self.g))

    @property
    def h_norm(self):
        return np.sqrt(squares(self.h))

    @property
    def delta_norm(self):
        """‖Δ_1‖ … ‖Δ_T‖."""
        return np.sqrt(squares(self.delta[1:]))

    @property
    def left_norm(self):
        """‖g_t − h_t‖."""
        return np.sqrt(squares(self.g - self.h))

    @property
    def q(self):
        """‖g_t‖² + 2 ⟨Δ_{t−1}, g_t⟩ (theory L2)."""
        return squares(self.g) + 2 * np.einsum("tr,tr->t", self.delta[:-1], self.g)

    @property
    def s(self):
        """√(1 − γ²) with the smallest edge so far."""
        return bounds.contraction(np.minimum.accumulate(self.edge))

    @property
    def c_delta(self):
        return bounds.c_delta(np.minimum.accumulate(self.edge))

    @property
    def kappa(self):
        return bounds.kappa(np.minimum.accumulate(self.edge))


def measured(trace, algorithm, certificate=None):
    """The trace as the library's `bounds_of` wants it."""
    constants = trace.problem.objective.constants
    return bounds.Measurements(
        algorithm,
        step=trace.eta,
        h=trace.h_norm,
        G=trace.g_norm,
        gamma=trace.edge,
        D=trace.d[:-1],
        delta=trace.delta_norm,
        left=trace.left_norm,
        gap=trace.R - trace.problem.minimum,
        certificate=certificate,
        strong_convexity=constants.strong_convexity,
        smoothness=np.inf if constants.smoothness is None else constants.smoothness,
    )


def squares(V):
    return np.einsum("tr,tr->t", V, V)


class NotingSet:
    """A hypothesis set that notes the intrinsic edge of every projection."""

    def __init__(self, problem):
        self.problem, self.mapper, self.inputs = problem, problem.H.mapper, problem.H.inputs
        self.edges, self.lengths = [], []

    def zero(self, n_outputs):
        target = self.problem.H.zero(n_outputs)
        project = target.project

        def noted(rng):
            length = self._length(target)
            h = project(rng)
            if length > NOTHING:
                self.edges.append(min(h.norm / length, 1.0))
                self.lengths.append(length)
            return h

        target.project = noted
        target.projections = lambda *args: Target.projections(target, *args)  # one at a time, to be noted
        return target

    def _length(self, target):
        """‖Πv‖ of the vector that is projected."""
        if isinstance(target, HistogramTarget):
            return np.linalg.norm(target.stumps.span.whiten(target.table))
        return np.linalg.norm(self.problem.coordinates(target.values))


class Recorder(Algorithm):
    """An algorithm that notes what it sees and does."""

    def __init__(self, algorithm, problem):
        self.algorithm, self.problem, self.H = algorithm, problem, NotingSet(problem)
        self.inverse_time = algorithm.inverse_time
        self.state, self.rows = None, []

    def check(self, step, constants):
        self.algorithm.check(step, constants)

    def round(self, state):
        self.state = state
        gradient = state.F.gradient()
        row = {"x": state.F.F.copy(), "R": state.F.value(), "g": gradient.values}
        self.H.edges.clear()
        self.H.lengths.clear()
        done = self.algorithm.round(state)
        edges = self.H.edges or [1.0]
        row |= {"h": np.zeros_like(row["x"]), "eta": done.move.size, "learners": done.h.n_weak_learners}
        row |= {"edge": min(edges), "last_edge": edges[-1], "intrinsic_edge": done.h.intrinsic_edge}
        row |= {"last_length": self.H.lengths[-1] if self.H.lengths else 0.0}
        row |= {"raw_edge": done.h.edge, "raw_norm": gradient.norm}
        done.h.add_to(row["h"], self.problem.H.inputs)
        self.rows.append(row)
        return done


def run(problem, algorithm, step, n_rounds, scales_gradient=False):
    """`boost`, recorded.  `scales_gradient`: of error feedback, whose Δ holds η_t g_t."""
    recorder = Recorder(algorithm, problem)
    boost(
        problem.objective,
        recorder.H,
        algorithm=recorder,
        step=step,
        n_rounds=n_rounds,
        start=problem.start,
        offset=problem.offset,
    )
    F = recorder.state.F
    rows = {name: np.array([row[name] for row in recorder.rows]) for name in recorder.rows[0]}
    moved = np.concatenate([rows.pop("x"), F.F[None]]) - problem.f_0
    z, g, h = (problem.coordinates(V) for V in (moved, rows.pop("g"), rows.pop("h")))
    assert np.allclose(problem.function(z) - problem.f_0, moved)  # the iterates stay in f_0 + S
    added = rows["eta"][:, None] * g if scales_gradient else g
    delta = np.vstack([np.zeros_like(z[:1]), np.cumsum(added - h, axis=0)])
    R = np.append(rows.pop("R"), F.value())
    return Trace(problem, z=z, R=R, g=g, h=h, delta=delta, state=recorder.state, **rows)


def assert_below(actual, bound, tolerance=1e-8):
    """`actual` ≤ `bound` in every round, up to rounding."""
    actual, bound = np.broadcast_arrays(actual, bound)
    excess = actual - bound - tolerance * np.maximum(1.0, np.abs(actual))
    worst = int(np.argmax(excess))
    assert excess.max() <= 0, f"{actual.flat[worst]} > {bound.flat[worst]} at index {worst}"


def certificate_c1(trace, D):
    """LB_C1(D) after each round: min R over {f in f_0 + S, ‖f − f_0‖ ≤ D} is not below it (theory 4.1)."""
    A = trace.R[:-1] - np.einsum("tr,tr->t", trace.g, trace.z[:-1])
    u = np.cumsum(trace.g, axis=0) / trace.t[:, None]
    return trace.mean(A) - D * np.sqrt(squares(u))


def certificate_c2(trace, weights=None):
    """LB_C2 after each round, λ > 0 (theory 4.2); the ridge is about f_0, so x is x − f_0."""
    lam = trace.problem.strong_convexity
    weights = np.ones(len(trace.eta)) if weights is None else weights
    z, total = trace.z[:-1], np.cumsum(weights)
    A = trace.R[:-1] - np.einsum("tr,tr->t", trace.g, z) + lam / 2 * squares(z)
    u = np.cumsum(weights[:, None] * (trace.g - lam * z), axis=0) / total[:, None]
    return np.cumsum(weights * A) / total - squares(u) / (2 * lam)
