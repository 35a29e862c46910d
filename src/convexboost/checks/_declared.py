"""Whether what a loss declares beyond value and gradient is true."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np

from convexboost.checks._names import show
from convexboost.checks._probe import Probe
from convexboost.checks._report import DoubtfulError
from convexboost.losses._objective import BoundLoss


def check_constants(probe: Probe) -> None:
    """Lipschitz constant, smoothness, strong convexity and minimum."""
    declared, noise = probe.objective.loss_constants(), max(1e-11, 100 * probe.noise)
    slack = 1 + max(1e-6, noise)

    def require(fine: bool, name: str, met: float, what: str) -> None:
        if not fine:
            probe.fail_declared(
                f"the declared {name} {getattr(declared, name):.6g} is wrong: {met:.6g} was met at {what}",
                f"Correct `constants`, or leave `{name}` out.",
            )

    for a in probe.points:
        if declared.lipschitz is not None:
            met = float(probe.lengths(a.G, dual=True)[a.finite].max(initial=0.0))
            fine = met <= declared.lipschitz * slack
            require(fine, "lipschitz", met, f"{a.name} (length of a subgradient)")
        if declared.minimum is not None:
            tolerance = float(a.noise.max()) + 1e-9 * abs(declared.minimum)
            require(not declared.minimum - tolerance > probe.risk(a), "minimum", probe.risk(a), a.name)
    if declared.smoothness is None and declared.strong_convexity == 0.0:
        return
    for a, b in permutations(probe.points, 2):
        D = b.F - a.F
        distance = probe.lengths(D)
        apart = a.finite & b.finite & (distance > 1e-6 * (probe.lengths(a.F) + probe.lengths(b.F)))
        if declared.smoothness is not None:
            rough = 100 * probe.noise * (probe.lengths(a.G, dual=True) + probe.lengths(b.G, dual=True))
            change = (probe.lengths(b.G - a.G, dual=True) - rough) / distance
            met = float(change[apart].max(initial=0.0))
            fine = met <= declared.smoothness * slack
            require(fine, "smoothness", met, f"{a.name} (change of gradient per length)")
        if declared.strong_convexity > 0.0:
            gain = b.losses - a.losses - probe.dot(a.G, D)
            rough = a.noise + b.noise + noise * (a.scale + b.scale + probe.dot(np.abs(a.G), np.abs(D)))
            met = float((2 * (gain + 4 * rough) / distance**2)[apart].min(initial=np.inf))
            fine = met * slack >= declared.strong_convexity
            require(fine, "strong_convexity", met, f"{a.name} (curvature)")


def check_value(probe: Probe) -> None:
    """`value` agrees with `evaluate`."""
    if not (probe.by_rows and probe.method == "evaluate"):
        return
    point = probe.points[1]
    losses = probe.loss.value(point.F.copy(), probe.y)
    off = np.abs(losses - point.losses) - 4 * point.noise - 1e-9 * np.abs(point.losses)
    row = int(np.argmax(np.where(point.finite, off, -1.0)))
    if point.finite[row] and off[row] > 0:
        probe.fail_declared(
            f"`value` and the first half of `evaluate` differ (row {row}, f = {show(point.F[row])}: "
            f"{losses[row]:.6g} and {point.losses[row]:.6g})",
            "They must be the same losses; without `value`, `evaluate` is used for both.",
        )


def check_start(probe: Probe) -> None:
    """A declared start should not be much worse than 0."""
    if not (probe.method and probe.loss.has_best_constant):
        return
    objective, n, name = probe.objective, probe.shape[0], probe.loss.start_method
    declared, best = objective.start(), objective.search_start()
    there, found, zero = (objective.value(np.tile(c, (n, 1))) for c in (declared, best, 0 * best))
    if there > found + 2 * max(zero - found, 0.0) + 0.1 * abs(found) + 1e-12:
        probe.fail_declared(
            f"`{name}` returns {show(declared)}, where R is {there:.6g}, but at {show(best)} it is "
            f"{found:.6g} and at 0 {zero:.6g}",
            f"Return scores, on the scale of F (a log-odds, not a probability), or leave `{name}` out.",
        )


def check_prox(probe: Probe) -> None:
    """No other scores are better than the prox."""
    if not probe.objective.has_prox:
        return
    weight = 1.0 if probe.by_rows else probe.objective.space.weight[:, None]
    for size in (0.1, 1.0, 10.0):
        F, unit = probe.points[1].F, probe.points[1].unit
        X = probe.objective.prox(F.copy(), size)
        if np.shape(X) != probe.shape:
            probe.fail_declared(
                f"`prox` returns shape {np.shape(X)}, not {probe.shape} like `F`", "Return scores."
            )
        for step in (1e-3, 1e-2, 0.1, 1.0, 10.0) * 4:
            Y = X + step * unit * probe.rng.normal(size=probe.shape)
            (here, near), (there, far) = (
                (probe.values(Z), probe.dot(weight * (Z - F), Z - F) / (2 * size)) for Z in (X, Y)
            )
            slack = max(1e-11, 100 * probe.noise) * (np.abs(here) + np.abs(there) + near + far)
            better = here + near - there - far - slack - 4 * probe.points[1].noise
            if np.nanmax(better, initial=0.0) > 0:
                row = int(np.nanargmax(better))
                where = f" (row {row}, from {show(F[row])} to {show(X[row])})" if probe.by_rows else ""
                probe.fail_declared(
                    f"`prox` with size {size:g} is not optimal{where}",
                    "It must minimise l(f, y) + ‖f − F‖² / (2 size): mind the 2.",
                )


def check_link(probe: Probe, loss: Any) -> None:
    """One prediction per row; for classes, probabilities: of each, or of the second of two."""
    if loss is None or not loss.has_link:
        return
    n, classes = probe.shape[0], max(probe.shape[1], 2) if probe.has_classes else None
    for point in probe.points[:4]:
        F = point.F.copy()
        P = np.asarray(loss.link(F))
        if not np.array_equal(F, point.F):
            probe.fail_declared("`link` writes into `F`", "Work on a copy.")
        if classes == 2 and P.shape == (n, 1):
            P = np.column_stack([1.0 - P, P])
        if P.ndim != 2 or len(P) != n or (classes and P.shape != (n, classes)):
            hint = "Return the probability of each class." if classes else "Keep the rows."
            probe.fail_declared(f"`link` returns shape {P.shape} for scores of shape {probe.shape}", hint)
        fine = np.isfinite(P.reshape(n, -1)).all(axis=1) | ~point.finite.all()
        if classes:
            fine &= (P >= 0).all(axis=1) & (np.abs(P.sum(axis=1) - 1) < 1e-5)
        if not fine.all():
            row = int(np.argmin(fine))
            hint = "Probabilities must sum to 1." if classes else "Use a form that does not overflow."
            probe.fail_declared(f"`link` returns {show(P[row])} for f = {show(F[row])}", hint)


# -- weights ----------------------------------------------------------------------------------------------

UNUSED = "it does not use the weights, {}: R is the same for all weights"
USE = "Take them as an argument named `weight` (they sum to 1), and average the rows with them."


def has_weights(objective: BoundLoss) -> bool:
    """Return whether the weights are not all the same."""
    weight = objective.space.weight
    return bool(np.ptp(weight) > 1e-9 / len(weight))


def check_weights(probe: Probe, bind: Callable[..., BoundLoss], has_groups: bool) -> None:
    """Weight 2 is the row twice; `bind(rows, weight)` binds the loss to some rows, also repeated ones."""
    objective, n = probe.objective, probe.shape[0]
    if not objective.uses_weights:
        if has_weights(objective):
            probe.fail(UNUSED.format("but `sample_weight` is given"), USE, DoubtfulError)
        probe.notes.append("It takes no `weight`: sample weights would not be used.")
    if probe.by_rows or not (objective.uses_weights and probe.method) or n == 1:
        return
    rows, F = np.arange(n), probe.points[1].F
    counts = 1 + 2 * (probe.rng.permutation(n) % 2)  # none is the mean
    value, even = (bind(rows, weight).evaluate(F)[0] for weight in (counts.astype(float), None))
    if value == even:
        probe.fail(UNUSED.format("though it takes them"), USE)
    if has_groups:  # a row twice may be more than one of the weight 2 to its group
        return
    twice = np.repeat(rows, counts)
    repeated, tolerance = bind(twice, None).evaluate(F[twice])[0], max(1e-8, 100 * probe.noise)
    if abs(value - repeated) > tolerance * (abs(value) + abs(repeated)):
        probe.fail(
            f"weight 2 is not the row twice: R = {value:.6g} with weights, {repeated:.6g} with repeated rows",
            "Average with `weight`, which sums to 1: R = Σ weight[n] · loss[n].",
        )
