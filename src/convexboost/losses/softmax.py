"""The multinomial logistic loss."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from convexboost.core.compiling import kernel
from convexboost.core.gradients import Gradient
from convexboost.core.protocols import Constants
from convexboost.core.space import Array, FunctionSpace
from convexboost.kernels import parallel
from convexboost.losses._loss import Loss, RowLoss
from convexboost.losses._scores import Lookup
from convexboost.losses.logistic import Logistic


@kernel(allocates=False)
def _centre(F: Array, codes: Any, table: Array, E: Array, a: int, b: int) -> None:
    """F += table[codes]; E = F minus the largest score of the row."""
    for n in range(a, b):
        if len(codes) > 0:
            for k in range(F.shape[1]):
                F[n, k] += table[codes[n], k]
        top = F[n, 0]
        for k in range(1, F.shape[1]):
            top = max(top, F[n, k])
        for k in range(F.shape[1]):
            E[n, k] = F[n, k] - top


@kernel(allocates=False)
def _normalise(F: Array, y: Any, G: Array, losses: Array, a: int, b: int) -> None:
    """From G = exp(f − top): the losses, and G = probabilities − indicator of y."""
    for n in range(a, b):
        total, top = 0.0, F[n, 0]
        for k in range(F.shape[1]):
            total += G[n, k]
            top = max(top, F[n, k])
        own = G[n, y[n]]
        losses[n] = np.log(total) - (np.log(own) if own > 1e-300 else F[n, y[n]] - top)
        for k in range(F.shape[1]):
            G[n, k] /= total
        G[n, y[n]] -= 1.0


@kernel(allocates=False)
def _variances(y: Any, G: Array, out: Array) -> None:
    """From G = probabilities P − indicator of y: P (1 − P)."""
    for n in range(len(G)):
        for k in range(G.shape[1]):
            out[n, k] = G[n, k] * (1.0 - G[n, k])
        p = G[n, y[n]] + 1.0
        out[n, y[n]] = p * (1.0 - p)


@dataclass(frozen=True)
class Softmax(RowLoss):
    """l(f, y) = log Σ_k exp f_k − f_y.  Smooth with constant ½, ‖∇R‖ ≤ √2; scores are log-probabilities.

    A classifier trains `Logistic` instead where there are two classes: the same model with one output.
    """

    name: ClassVar[str] = "softmax"
    task: ClassVar[str] = "classification"
    link_steps = (("softmax",),)
    has_link = has_best_constant = has_curvatures = True
    couples_outputs = True

    def formula(self, f: str = "f") -> str:
        """−log P(y)."""
        return f"log Σ_k exp {f}_k − {f}_y"

    def for_classes(self, n_classes: int | None) -> Loss:
        """Return the logistic loss for two classes, unless a subclass has formulas of its own."""
        return Logistic() if n_classes == 2 and type(self) is Softmax else self

    def evaluate(self, F: Array, y: Any) -> tuple[Array, Array]:
        """Return −log P(y) and the probabilities minus the indicator of y."""
        return self._pass(F, y, None, 1)

    def advance(
        self,
        F: Array,
        y: Any,
        space: FunctionSpace,
        lookup: Lookup | None,
        before: Gradient | None,
        n_threads: int,
    ) -> tuple[float, Gradient]:
        """Move and evaluate in one go."""
        losses, G = self._pass(F, y, lookup, n_threads)
        return space.mean(losses), Gradient(G, space)

    def _pass(self, F: Array, y: Any, lookup: Lookup | None, n_threads: int) -> tuple[Array, Array]:
        losses, G = np.empty(len(F)), np.empty(F.shape)
        codes, table = lookup or (np.empty(0, np.uint8), np.empty((0, F.shape[1])))

        def task(a: int, b: int) -> None:
            _centre(F, codes, table, G, a, b)
            np.exp(G[a:b], out=G[a:b])  # NumPy's is vectorised
            _normalise(F, y, G, losses, a, b)

        parallel.run(task, len(F), 10 * F.size, n_threads)
        return losses, G

    def curvatures(self, y: Any, G: Array) -> Array:
        """Return P (1 − P)."""
        out = np.empty(G.shape)
        _variances(y, G, out)
        return out

    def link(self, F: Array) -> Array:
        """Return exp f_k / Σ exp f."""
        P = np.exp(F - F.max(axis=1, keepdims=True))
        P /= P.sum(axis=1, keepdims=True)
        return P

    def constants(self, n_outputs: int) -> Constants:
        """Λ = ½, ‖∇R‖ ≤ √2."""
        return Constants(lipschitz=math.sqrt(2), smoothness=0.5, minimum=0.0)

    def best_constant(self, y: Any, n_outputs: int, space: FunctionSpace) -> Array:
        """Return the log of the class shares, centred; a class without weight counts as half a row."""
        shares = space.masses(y, n_outputs)
        logs = np.log(np.where(shares > 0.0, shares, 0.5 * space.row))
        return logs - logs.mean()
