"""The theorems as functions: from what a run measured to what its optimality gap can be at most.

Theorems A to O are corrected or new statements (docs/theory.md, tests/paper); `printed_3` to
`printed_7` are the paper's, with F a diameter where they are false otherwise.  Everything is meant inside
span(H).  Arguments are numbers, or arrays with one entry per round t = 1 … T:

    step   η_t                        gamma  a bound on the edges, or the edges γ_t
    h      ‖h_t‖                      G      a bound on the subgradients, or ‖g_t‖
    delta  ‖Δ_t‖; a number is ‖Δ_T‖   D      a bound on ‖x_t − f*‖, or these distances
    left   ‖g_t − h_t‖                d_1    ‖x_1 − f*‖, x_1 being the start

Of edges, subgradients and distances the worst so far counts.  The gap of round t is that of x_t, the point
where g_t was taken; h_t leads from there to x_{t+1}.  A plain name is the measured form of a theorem,
`_a_priori` the form that needs only constants.  A bound whose assumption fails says which, and is NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Numbers: TypeAlias = Any  #: a number, or one for each round
Holds: TypeAlias = Any  #: bool, one bool for each round, or None where the arguments cannot tell
P = ParamSpec("P")

# What is bounded.
AVERAGE = "average gap over the evaluated points"
WEIGHTED = "average gap weighted by the steps"
T_WEIGHTED = "average gap weighted by t"
BEST = "best gap"
LAST = "gap after the round"
SQUARED_GRADIENT = "mean square of the gradients"

# How a bound is known, from the tightest to the loosest.
KINDS = ("gap", "certificate", "measured", "a priori", "printed")
GAP, CERTIFICATE, MEASURED, A_PRIORI, PRINTED = KINDS

#: Steps count as equal to what a theorem asks for within this relative error.
CLOSE = 1e-9


@dataclass(frozen=True)
class Bound:
    """What a theorem says about a run."""

    name: str
    on: str  #: what it bounds
    kind: str
    curve: Array  #: after each round; NaN from the round on where an assumption fails
    assumes: dict[str, bool | None]  #: each assumption, and whether it holds; None: the inputs cannot tell

    @property
    def value(self) -> float:
        """Return the bound after the last round."""
        return float(self.curve[-1])

    @property
    def failed(self) -> tuple[str, ...]:
        """Return the assumptions that do not hold."""
        return tuple(words for words, holds in self.assumes.items() if holds is False)


def theorem(
    name: str, on: str, kind: str
) -> Callable[[Callable[P, tuple[Array, dict[str, Holds]]]], Callable[P, Bound]]:
    """Make a `Bound` of a function that returns the curve and its assumptions."""

    def decorate(formula: Callable[P, tuple[Array, dict[str, Holds]]]) -> Callable[P, Bound]:
        @wraps(formula)
        def bound(*args: P.args, **kwargs: P.kwargs) -> Bound:
            arrays: Any = [np.asarray(a, float) for a in args]
            named: Any = {key: np.asarray(a, float) for key, a in kwargs.items()}
            with np.errstate(all="ignore"):
                curve, assumes = formula(*arrays, **named)
                return _bound(name, on, kind, curve, assumes)

        return bound

    return decorate


def _bound(name: str, on: str, kind: str, curve: Numbers, assumes: dict[str, Holds]) -> Bound:
    curve = np.atleast_1d(np.asarray(curve, float)).copy()
    told: dict[str, bool | None] = {}
    for words, holds in assumes.items():
        if holds is not None:
            so_far = np.logical_and.accumulate(np.broadcast_to(holds, curve.shape))
            curve[~so_far] = np.nan
            told[words] = bool(so_far[-1])
        else:
            told[words] = None
    return Bound(name, on, kind, curve, told)


# Constants


def contraction(gamma: Numbers) -> Any:
    """√(1 − γ²), called s: what a projection leaves over, at most."""
    return np.sqrt(np.maximum(1 - np.square(gamma), 0.0))


def c_delta(gamma: Numbers) -> Any:
    """c_Δ = s/(1 − s): ‖Δ_t‖ ≤ c_Δ G (Lemma L1).  Written without cancellation."""
    s = contraction(gamma)
    return s * (1 + s) / np.square(gamma)


def kappa(gamma: Numbers) -> Any:
    """κ = (1 + s)/(1 − s) ≤ 4/γ²: the mean of ‖h_t‖² is at most κG² (Lemma L2)."""
    return np.square((1 + contraction(gamma)) / gamma)


def c_decayed(gamma: Numbers, decay: Numbers) -> Any:
    """c_β = s/(1 − βs): ‖Δ_t‖ ≤ c_β G where the residual is multiplied by β between rounds."""
    s = contraction(gamma)
    return s / (1 - decay * s)


def starvation_ratio(decay: float, steep: int = 1) -> float:
    """1/(1 − β^m): from this ratio of slopes on, m steep points keep a flat one from ever moving."""
    return float(1 / (1 - decay**steep))


def printed_c(gamma: Numbers) -> Any:
    """2/γ², the paper's c: its bound on ‖Δ_t‖/G and on ‖h_t‖/G."""
    return 2 / np.square(gamma)


def theorem_b_step(T: int, d_1: float, G: float, gamma: float) -> float:
    """η = d_1/(G√(κT)), the constant step that makes Theorem B's bound d_1 G√κ/√T."""
    return float(d_1 / (G * np.sqrt(kappa(gamma) * T)))


# What the theorems ask for


def _t(step: Array) -> Array:
    return np.arange(1.0, np.size(step) + 1)


def _most(values: Array) -> Array:
    return np.fmax.accumulate(np.atleast_1d(values))


def _least(values: Array) -> Array:
    return np.fmin.accumulate(np.atleast_1d(values))


def _sum(values: Array) -> Array:
    return np.cumsum(np.atleast_1d(values))


def _final(delta: Array, step: Array) -> Array:
    """‖Δ_t‖ in each round; a single number is that of the last one."""
    return delta if delta.ndim else np.append(np.full(np.size(step) - 1, np.nan), delta)


def _close(a: Array, b: Array) -> Holds:
    return np.abs(a - b) <= CLOSE * np.abs(b)


def _descending(step: Array) -> dict[str, Holds]:
    step = np.atleast_1d(step)
    falls = np.append(True, step[1:] <= step[:-1] * (1 + CLOSE))
    return {"the steps are positive": step > 0, "the steps do not increase": falls}


def _constant(step: Array) -> dict[str, Holds]:
    step = np.atleast_1d(step)
    return {"the steps are positive": step > 0, "the step is constant": _close(step, step[0])}


def _is(words: str, step: Array, wanted: Array) -> dict[str, Holds]:
    return {f"the step is {words}": _close(np.atleast_1d(step), wanted)}


def _is_measured(values: Array) -> Holds:
    """Return True for one number per round, None for a claim."""
    return True if values.ndim else None


def _within(D: Array) -> dict[str, Holds]:
    return {"‖x_t − f*‖ ≤ D": _is_measured(D)}


def _known(G: Array, gamma: Array) -> dict[str, Holds]:
    return {
        "‖g_t‖ ≤ G": _is_measured(G),
        "the edges are at least γ": _is_measured(gamma),
        "γ lies in (0, 1]": (_least(gamma) > 0) & (_least(gamma) <= 1 + CLOSE),
    }


def _strongly(strong_convexity: Array) -> dict[str, Holds]:
    return {"R is λ-strongly convex, λ > 0": strong_convexity > 0}


def _smooth(smoothness: Array) -> dict[str, Holds]:
    return {"R is smooth": np.isfinite(smoothness) & (smoothness > 0)}


# Algorithm 3: residual


@theorem("Theorem A", AVERAGE, MEASURED)
def theorem_a(step: Numbers, h: Numbers, delta: Numbers, D: Numbers) -> Any:
    """(1/T) [D²/2η_T + ½Ση_t‖h_t‖² + ½η_T‖Δ_T‖²]."""
    delta = _final(delta, step)
    total = _most(D) ** 2 / (2 * step) + _sum(step * h**2) / 2 + step * delta**2 / 2
    return total / _t(step), _descending(step) | _within(D)


@theorem("Theorem A", AVERAGE, A_PRIORI)
def theorem_a_a_priori(step: Numbers, D: Numbers, G: Numbers, gamma: Numbers) -> Any:
    """(1/T) [D²/2η_T + ½κG²Ση_t]; at most (D²/2 + κG²)/√T for η_t = 1/√t."""
    energy = kappa(_least(gamma)) * _most(G) ** 2
    total = _most(D) ** 2 / (2 * step) + energy * _sum(step) / 2
    return total / _t(step), _descending(step) | _within(D) | _known(G, gamma)


def _radius(step: Array, travelled: Array, d_1: Array, G: Array, gamma: Array) -> tuple[Array, Array]:
    """η_1 c_Δ G and M_T of Theorem A'."""
    carried = np.ravel(step)[0] * c_delta(_least(gamma)) * _most(G)
    return carried, carried + np.sqrt(carried**2 + d_1**2 + travelled)


@theorem("Theorem A'", WEIGHTED, MEASURED)
def theorem_a_prime(step: Numbers, h: Numbers, d_1: Numbers, G: Numbers, gamma: Numbers) -> Any:
    """[d_1² + Ση_t²‖h_t‖² + 2η_1 M_T c_ΔG] / 2Ση_t: no bound on the iterates is assumed."""
    travelled = _sum((step * h) ** 2)
    carried, M = _radius(step, travelled, d_1, G, gamma)
    return (d_1**2 + travelled + 2 * M * carried) / (2 * _sum(step)), _descending(step) | _known(G, gamma)


@theorem("Theorem A'", WEIGHTED, A_PRIORI)
def theorem_a_prime_a_priori(step: Numbers, d_1: Numbers, G: Numbers, gamma: Numbers) -> Any:
    """The same with Ση_t²‖h_t‖² ≤ κG²Ση_t²."""
    travelled = kappa(_least(gamma)) * _most(G) ** 2 * _sum(step**2)
    carried, M = _radius(step, travelled, d_1, G, gamma)
    return (d_1**2 + travelled + 2 * M * carried) / (2 * _sum(step)), _descending(step) | _known(G, gamma)


@theorem("Theorem A''", AVERAGE, MEASURED)
def theorem_a_second(step: Numbers, h: Numbers, delta: Numbers, D: Numbers) -> Any:
    """(1/T) [(D²/2a + a)√Σ‖h_t‖² + ½η_T‖Δ_T‖²] for η_t = a/√Σ_{j≤t}‖h_j‖²."""
    H, delta = _sum(h**2), _final(delta, step)
    a = np.ravel(step * np.sqrt(H))[0]
    total = (_most(D) ** 2 / (2 * a) + a) * np.sqrt(H) + step * delta**2 / 2
    return total / _t(step), _is("a/√Σ‖h_j‖²", step, a / np.sqrt(H)) | _within(D)


@theorem("Theorem B", AVERAGE, MEASURED)
def theorem_b(step: Numbers, h: Numbers, delta: Numbers, d_1: Numbers) -> Any:
    """d_1²/2ηT + (η/2T) (Σ‖h_t‖² + ‖Δ_T‖²): a constant step needs no bound on the iterates."""
    energy = _sum(h**2) + _final(delta, step) ** 2
    return (d_1**2 / step + step * energy) / (2 * _t(step)), _constant(step)


@theorem("Theorem B", AVERAGE, A_PRIORI)
def theorem_b_a_priori(step: Numbers, d_1: Numbers, G: Numbers, gamma: Numbers) -> Any:
    """d_1²/2ηT + ηκG²/2; d_1 G√κ/√T ≤ 2d_1G/γ√T with the best step (`theorem_b_step`)."""
    noise = step * kappa(_least(gamma)) * _most(G) ** 2 / 2
    return d_1**2 / (2 * step * _t(step)) + noise, _constant(step) | _known(G, gamma)


def _inverse_time(step: Array, strong_convexity: Array) -> dict[str, Holds]:
    return _strongly(strong_convexity) | _is("1/(λt)", step, 1 / (strong_convexity * _t(step)))


@theorem("Theorem C", AVERAGE, MEASURED)
def theorem_c(step: Numbers, h: Numbers, delta: Numbers, strong_convexity: Numbers) -> Any:
    """(1/T) [½Ση_t‖h_t‖² + ½η_T‖Δ_T‖²], η_t = 1/(λt): no unknown constant; it is certificate C2."""
    energy = _sum(step * h**2) + step * _final(delta, step) ** 2
    return energy / (2 * _t(step)), _inverse_time(step, strong_convexity)


@theorem("Theorem C", AVERAGE, A_PRIORI)
def theorem_c_a_priori(step: Numbers, G: Numbers, gamma: Numbers, strong_convexity: Numbers) -> Any:
    """κG²(1 + ln T)/2λT ≤ 2G²(1 + ln T)/γ²λT."""
    T = _t(step)
    energy = kappa(_least(gamma)) * _most(G) ** 2 * (1 + np.log(T))
    assumes = _inverse_time(step, strong_convexity) | _known(G, gamma)
    return energy / (2 * strong_convexity * T), assumes


def _log_free(step: Array, strong_convexity: Array) -> dict[str, Holds]:
    wanted = 4 / (strong_convexity * (_t(step) + 1))
    return _strongly(strong_convexity) | _is("4/(λ(t+1))", step, wanted)


@theorem("Theorem C'", T_WEIGHTED, MEASURED)
def theorem_c_prime(step: Numbers, h: Numbers, delta: Numbers, strong_convexity: Numbers) -> Any:
    """[2Σ t/(t+1)‖h_t‖² + Σ_{t<T}‖Δ_t‖²/(t+1) + 2T‖Δ_T‖²/(T+1)] / λΣt: no logarithm."""
    t, square = _t(step), _final(delta, step) ** 2
    carried = np.append(0.0, _sum(square / (t + 1))[:-1])
    total = 2 * _sum(t / (t + 1) * h**2) + carried + 2 * t / (t + 1) * square
    assumes = _log_free(step, strong_convexity) | {"every ‖Δ_t‖ is known": ~np.isnan(square)}
    return total / (strong_convexity * _sum(t)), assumes


@theorem("Theorem C'", T_WEIGHTED, A_PRIORI)
def theorem_c_prime_a_priori(step: Numbers, G: Numbers, gamma: Numbers, strong_convexity: Numbers) -> Any:
    """4κG²/λ(T+1) + 2c_Δ²G² ln T/λT(T+1)."""
    T, least = _t(step), _least(gamma)
    factor = 4 * kappa(least) / (T + 1) + 2 * c_delta(least) ** 2 * np.log(T) / (T * (T + 1))
    assumes = _log_free(step, strong_convexity) | _known(G, gamma)
    return factor * _most(G) ** 2 / strong_convexity, assumes


@theorem("Theorem G", AVERAGE, A_PRIORI)
def theorem_g(step: Numbers, d_1: Numbers, gamma: Numbers, smoothness: Numbers) -> Any:
    """d_1²/2ηT for a constant η ≤ 1/(Λκ), on a smooth objective: κΛd_1²/2T ≤ 2Λd_1²/γ²T at best."""
    longest = 1 / (smoothness * kappa(_least(gamma)))
    assumes = (
        _smooth(smoothness) | _constant(step) | {"the step is at most 1/(Λκ)": step <= longest * (1 + CLOSE)}
    )
    return d_1**2 / (2 * step * _t(step)), assumes | {"the edges are at least γ": _is_measured(gamma)}


# Algorithm 3 with a decay β_t, by which the residual is multiplied before the subgradient is added


def _forgetful(decay: Array) -> dict[str, Holds]:
    return {"the decay lies in [0, 1]": (decay >= 0) & (decay <= 1)}


@theorem("Theorem K", AVERAGE, MEASURED)
def theorem_k(step: Numbers, h: Numbers, delta: Numbers, D: Numbers, decay: Numbers) -> Any:
    """Theorem A + (1/T) Σ(1 − β_t) d_t ‖Δ_{t−1}‖: what was forgotten is a floor."""
    delta = _final(delta, step)
    total = _most(D) ** 2 / (2 * step) + _sum(step * h**2) / 2 + step * delta**2 / 2
    forgotten = _sum((1 - decay) * D * np.append(0.0, delta[:-1]))
    return (total + forgotten) / _t(step), _descending(step) | _within(D) | _forgetful(decay)


def _theorem_k(step: Array, D: Array, G: Array, gamma: Array, decay: Array) -> tuple[Array, Array]:
    """Return the part of Theorem K that vanishes, and the floor over D."""
    c = c_decayed(_least(gamma), _most(decay))
    energy = (1 + 2 * _most(decay) * c) * _most(G) ** 2
    floor = _sum(np.broadcast_to(1 - decay, _t(step).shape)) / _t(step) * c * _most(G)
    return (_most(D) ** 2 / (2 * step) + energy * _sum(step) / 2) / _t(step), floor


@theorem("Theorem K", AVERAGE, A_PRIORI)
def theorem_k_a_priori(step: Numbers, D: Numbers, G: Numbers, gamma: Numbers, decay: Numbers) -> Any:
    """(1/T) [D²/2η_T + ½(1 + 2βc_β)G²Ση_t] + mean(1 − β_t) c_β D G."""
    vanishing, floor = _theorem_k(step, D, G, gamma, decay)
    assumes = _descending(step) | _within(D) | _known(G, gamma) | _forgetful(decay)
    return vanishing + floor * _most(D), assumes


@theorem("Theorem K'", AVERAGE, A_PRIORI)
def theorem_k_prime(
    step: Numbers, D: Numbers, G: Numbers, gamma: Numbers, decay: Numbers, sharpness: Numbers
) -> Any:
    """The vanishing part of Theorem K over 1 − (1 − β)c_βG/σ, where R(f) − R* ≥ σ‖f − f*‖."""
    vanishing, floor = _theorem_k(step, D, G, gamma, decay)
    assumes = _descending(step) | _within(D) | _known(G, gamma) | _forgetful(decay)
    assumes |= {"(1 − β)c_βG < σ": floor < sharpness, "R(f) − R* ≥ σ‖f − f*‖": None}
    return vanishing / (1 - floor / sharpness), assumes


def theorem_m_step(smoothness: float, gamma: float, decay: float) -> float:
    """η = ρ/2ΛB, the longest step of Theorem M."""
    rho, B = _theorem_m(np.asarray(gamma), np.asarray(decay))
    return float(rho / (2 * smoothness * B))


def _theorem_m(gamma: Array, decay: Array) -> tuple[Array, Array]:
    c = c_decayed(gamma, decay)
    lost = (1 - decay) * c
    return 1 - lost, decay * c * (1 + lost) + (1 + lost) ** 2 / 2


@theorem("Theorem M", SQUARED_GRADIENT, A_PRIORI)
def theorem_m(step: Numbers, first: Numbers, gamma: Numbers, smoothness: Numbers, decay: Numbers) -> Any:
    """2(R(f_0) − R*)/ηρT, ρ = (1 − s)/(1 − βs), for a constant η ≤ ρ/2ΛB: every decay, smooth R."""
    rho, B = _theorem_m(_least(gamma), decay)
    assumes = _smooth(smoothness) | _constant(step) | _forgetful(decay)
    assumes |= {"the step is at most ρ/2ΛB": step <= rho / (2 * smoothness * B) * (1 + CLOSE)}
    return 2 * first / (step * rho * _t(step)), assumes | {"the edges are at least γ": _is_measured(gamma)}


# Algorithm 3 with steps that may grow


@theorem("Theorem O", AVERAGE, MEASURED)
def theorem_o(step: Numbers, h: Numbers, delta: Numbers, D: Numbers) -> Any:
    """(1/T) [½D²V_T + ½Ση_t‖h_t‖² + ½η_T‖Δ_T‖²], V_T = 1/η_1 + Σ(1/η_t − 1/η_{t−1})₊; `auto` is one."""
    inverse, delta = 1 / np.atleast_1d(step), _final(delta, step)
    variation = _sum(np.append(inverse[:1], np.maximum(np.diff(inverse), 0.0)))
    total = _most(D) ** 2 * variation + _sum(step * h**2) + step * delta**2
    return total / (2 * _t(step)), {"the steps are positive": step > 0} | _within(D)


# Algorithm 3 as dual averaging and with error feedback


def _before(step: Array) -> Array:
    """η_{t−1}, with η_0 = η_1."""
    return np.append(step[:1], step[:-1])


@theorem("Theorem E", AVERAGE, MEASURED)
def theorem_e(step: Numbers, h: Numbers, delta: Numbers, d_1: Numbers) -> Any:
    """(1/T) [d_1²/2η_T + ½Ση_{t−1}‖h_t‖² + ½Σ(η_{t−1} − η_t)‖Δ_t‖² + ½η_T‖Δ_T‖²]."""
    before, square = _before(step), _final(delta, step) ** 2
    energy = _sum(before * h**2) + _sum((before - step) * square) + step * square
    assumes = _descending(step) | {"every ‖Δ_t‖ is known": ~np.isnan(square)}
    return (d_1**2 / step + energy) / (2 * _t(step)), assumes


@theorem("Theorem E", AVERAGE, A_PRIORI)
def theorem_e_a_priori(step: Numbers, d_1: Numbers, G: Numbers, gamma: Numbers) -> Any:
    """(1/T) [d_1²/2η_T + ½κG²Ση_{t−1}]; at most (d_1²/2a + aκG²)/√T for η_t = a/√t."""
    energy = kappa(_least(gamma)) * _most(G) ** 2 * _sum(_before(step))
    return (d_1**2 / step + energy) / (2 * _t(step)), _descending(step) | _known(G, gamma)


@theorem("Theorem F", WEIGHTED, MEASURED)
def theorem_f(step: Numbers, h: Numbers, delta: Numbers, d_1: Numbers) -> Any:
    """[d_1² + Σ‖h_t‖² + ‖e_T‖²] / 2Ση_t, where h_t = x_t − x_{t+1} and `delta` is ‖e_t‖; any steps."""
    energy = _sum(h**2) + _final(delta, step) ** 2
    return (d_1**2 + energy) / (2 * _sum(step)), {"the steps are not negative": np.atleast_1d(step) >= 0}


@theorem("Theorem F", WEIGHTED, A_PRIORI)
def theorem_f_a_priori(step: Numbers, d_1: Numbers, G: Numbers, gamma: Numbers) -> Any:
    """[d_1² + κG²Ση_t²] / 2Ση_t."""
    energy = kappa(_least(gamma)) * _most(G) ** 2 * _sum(step**2)
    return (d_1**2 + energy) / (2 * _sum(step)), _descending(step) | _known(G, gamma)


@theorem("Polyak's step in Theorem F", BEST, A_PRIORI)
def polyak(T: Numbers, d_1: Numbers, G: Numbers, gamma: Numbers) -> Any:
    """G d_1/((1 − s)√T) for η_t = [R(x_t) − R* − ⟨g_t, e_{t−1}⟩]₊/‖g_t‖²."""
    bound = (1 + c_delta(_least(gamma))) * _most(G) * d_1 / np.sqrt(T)
    return bound, {"the step is Polyak's, with the true R*": None} | _known(G, gamma)


# Algorithm 2: repeated


def _as_many_as_rounds() -> dict[str, Holds]:
    return {"K_t = t projections in round t": None}


@theorem("Theorem H", AVERAGE, MEASURED)
def theorem_h(step: Numbers, h: Numbers, left: Numbers, D: Numbers) -> Any:
    """(1/T) [D²/2η_T + ½Ση_t‖h_t‖² + Σd_t‖r_t‖], r_t = g_t − h_t, whatever the number of projections."""
    total = _most(D) ** 2 / (2 * step) + _sum(step * h**2) / 2 + _sum(D * left)
    return total / _t(step), _descending(step) | _within(D)


@theorem("Theorem H", AVERAGE, A_PRIORI)
def theorem_h_a_priori(
    step: Numbers, D: Numbers, G: Numbers, gamma: Numbers, rescaled: Numbers = True
) -> Any:
    """D²/2√T + (G²/√T)(1 + E/√T) + DGc_Δ/T for η_t = 1/√t; E = 0 where h_t is rescaled (Algorithm 2')."""
    T, D_, G_, least = _t(step), _most(D), _most(G), _least(gamma)
    c = c_delta(least)
    E = np.where(rescaled != 0, 0.0, c + contraction(least) ** 2 / (2 * least**2))
    bound = (D_**2 / 2 + G_**2 * (1 + E / np.sqrt(T))) / np.sqrt(T) + D_ * G_ * c / T
    assumes = _is("1/√t", step, 1 / np.sqrt(T)) | _within(D) | _known(G, gamma)
    return bound, assumes | _as_many_as_rounds()


def _repeated_step(step: Array, strong_convexity: Array) -> dict[str, Holds]:
    return _strongly(strong_convexity) | _is("2/(λt)", step, 2 / (strong_convexity * _t(step)))


@theorem("Theorem H, strongly convex", AVERAGE, MEASURED)
def theorem_h_strong(step: Numbers, h: Numbers, left: Numbers, strong_convexity: Numbers) -> Any:
    """(1/λT) [Σ‖h_t‖²/t + Σ‖r_t‖²] for η_t = 2/(λt)."""
    t = _t(step)
    total = _sum(h**2 / t) + _sum(left**2)
    return total / (strong_convexity * t), _repeated_step(step, strong_convexity)


@theorem("Theorem H, strongly convex", AVERAGE, A_PRIORI)
def theorem_h_strong_a_priori(
    step: Numbers, G: Numbers, gamma: Numbers, strong_convexity: Numbers, rescaled: Numbers = True
) -> Any:
    """(G²/λT) [1 + ln T + (1 − γ²)/γ²], plus 2 ln 1/(1−s) + ln 1/γ² inside where h_t is not rescaled."""
    T, least = _t(step), _least(gamma)
    plain = 2 * np.log1p(c_delta(least)) - 2 * np.log(least)
    factor = 1 + np.log(T) + (1 - least**2) / least**2 + np.where(rescaled != 0, 0.0, plain)
    assumes = _repeated_step(step, strong_convexity) | _known(G, gamma) | _as_many_as_rounds()
    return _most(G) ** 2 * factor / (strong_convexity * T), assumes


def _repeated_radius(step: Array, travelled: Array, d_1: Array, G: Array, gamma: Array) -> Array:
    """M = 2ηc_ΔG + √(d_1² + η²Σ‖h_t‖²)."""
    M: Array = 2 * step * c_delta(_least(gamma)) * _most(G) + np.sqrt(d_1**2 + travelled)
    return M


@theorem("Theorem H, constant step", AVERAGE, MEASURED)
def theorem_h_constant(step: Numbers, h: Numbers, d_1: Numbers, G: Numbers, gamma: Numbers) -> Any:
    """d_1²/2ηT + (η/2T)Σ‖h_t‖² + Mc_ΔG/T: no bound on the iterates."""
    travelled = _sum((step * h) ** 2)
    M, T = _repeated_radius(step, travelled, d_1, G, gamma), _t(step)
    lost = M * c_delta(_least(gamma)) * _most(G)
    assumes = _constant(step) | _known(G, gamma) | _as_many_as_rounds()
    return ((d_1**2 + travelled) / (2 * step) + lost) / T, assumes


@theorem("Theorem H, constant step", AVERAGE, A_PRIORI)
def theorem_h_constant_a_priori(step: Numbers, d_1: Numbers, G: Numbers, gamma: Numbers) -> Any:
    """The same with ‖h_t‖ ≤ G, which the rescaling of Algorithm 2' guarantees."""
    T = _t(step)
    travelled = (step * _most(G)) ** 2 * T
    M = _repeated_radius(step, travelled, d_1, G, gamma)
    lost = M * c_delta(_least(gamma)) * _most(G)
    assumes = _constant(step) | _known(G, gamma) | _as_many_as_rounds() | {"h_t is rescaled": None}
    return ((d_1**2 + travelled) / (2 * step) + lost) / T, assumes


# Algorithm 1: naive


def _exact_step(step: Array, smoothness: Array) -> dict[str, Holds]:
    known = None if np.all(np.isnan(step)) else _close(np.atleast_1d(step), 1 / smoothness)
    return {"the step is 1/Λ, or an exact line search": known}


@theorem("Theorem I", LAST, MEASURED)
def theorem_i(
    gamma: Numbers, first: Numbers, smoothness: Numbers, strong_convexity: Numbers, step: Numbers = np.nan
) -> Any:
    """Π(1 − γ_t²λ/Λ) · (R(f_0) − R*), where `first` is that gap; leave `step` out for a line search."""
    factors = np.cumprod(1 - np.atleast_1d(gamma) ** 2 * strong_convexity / smoothness)
    assumes = _smooth(smoothness) | _strongly(strong_convexity) | _exact_step(step, smoothness)
    return factors * first, assumes


@theorem("Theorem I'", LAST, MEASURED)
def theorem_i_prime(
    gamma: Numbers, first: Numbers, D: Numbers, smoothness: Numbers, step: Numbers = np.nan
) -> Any:
    """1/(1/gap_1 + Σγ_t²/2ΛD²); R falls, so the radius of the level set of f_0 will do as D."""
    curvature = 2 * smoothness * _most(D) ** 2
    assumes = _smooth(smoothness) | _exact_step(step, smoothness) | _within(D)
    return 1 / (1 / first + _sum(gamma**2) / curvature), assumes


@theorem("Theorem I'", LAST, A_PRIORI)
def theorem_i_prime_a_priori(
    T: Numbers, gamma: Numbers, D: Numbers, smoothness: Numbers, step: Numbers = np.nan
) -> Any:
    """2ΛD²/γ²T.  With D in the atomic norm of H, γ may be 1."""
    curvature = 2 * smoothness * _most(D) ** 2
    assumes = _smooth(smoothness) | _exact_step(step, smoothness) | _within(D)
    return curvature / (_least(gamma) ** 2 * T), assumes


@theorem("Theorem J", AVERAGE, MEASURED)
def theorem_j(step: Numbers, h: Numbers, G: Numbers, gamma: Numbers, D: Numbers) -> Any:
    """(1/T) [D²/2η_T + ½Ση_t‖h_t‖² + Σd_t√(1−γ_t²)‖g_t‖]: the last term is a floor that stays."""
    total = _most(D) ** 2 / (2 * step) + _sum(step * h**2) / 2 + _sum(D * contraction(gamma) * G)
    return total / _t(step), _descending(step) | _within(D)


# As printed in the paper


@theorem("Theorem 3", LAST, PRINTED)
def printed_3(
    T: Numbers,
    gamma: Numbers,
    first: Numbers,
    smoothness: Numbers,
    strong_convexity: Numbers,
    step: Numbers = np.nan,
) -> Any:
    """(1 − γ²λ/Λ)^T (R(f_0) − R*): naive, smooth and strongly convex.  True."""
    rate = 1 - _least(gamma) ** 2 * strong_convexity / smoothness
    assumes = _smooth(smoothness) | _strongly(strong_convexity) | _exact_step(step, smoothness)
    return rate**T * first, assumes


@theorem("Theorem 4", AVERAGE, PRINTED)
def printed_4(step: Numbers, G: Numbers, gamma: Numbers, strong_convexity: Numbers) -> Any:
    """(G²/λT)(1 + ln T + (1−γ²)/γ²): repeated, strongly convex.  Its proof has 4(1 + ln T)."""
    T, least = _t(step), _least(gamma)
    factor = 1 + np.log(T) + (1 - least**2) / least**2
    assumes = _repeated_step(step, strong_convexity) | _known(G, gamma) | _as_many_as_rounds()
    return _most(G) ** 2 * factor / (strong_convexity * T), assumes


def _printed_step(step: Array) -> dict[str, Holds]:
    return _is("1/√t", step, 1 / np.sqrt(_t(step)))


@theorem("Theorem 5", AVERAGE, PRINTED)
def printed_5(step: Numbers, D: Numbers, G: Numbers, gamma: Numbers) -> Any:
    """F²/2√T + G²/√T + 2FG(1−γ²)/γ², F := D: repeated.  A 1/T and a root are missing at the end."""
    root, F, G_, square = np.sqrt(_t(step)), _most(D), _most(G), _least(gamma) ** 2
    bound = (F**2 / 2 + G_**2) / root + 2 * F * G_ * (1 - square) / square
    return bound, _printed_step(step) | _within(D) | _known(G, gamma) | _as_many_as_rounds()


@theorem("Theorem 6", AVERAGE, PRINTED)
def printed_6(step: Numbers, G: Numbers, gamma: Numbers, strong_convexity: Numbers) -> Any:
    """(2c²G²/λT)(1 + ln T + 2/T), c = 2/γ²: residual, strongly convex."""
    T = _t(step)
    energy = 2 * (printed_c(_least(gamma)) * _most(G)) ** 2 * (1 + np.log(T) + 2 / T)
    return energy / (strong_convexity * T), _inverse_time(step, strong_convexity) | _known(G, gamma)


@theorem("Theorem 7", AVERAGE, PRINTED)
def printed_7(step: Numbers, D: Numbers, G: Numbers, gamma: Numbers) -> Any:
    """F²/2√T + c²G²/√T + c²G²/2T√T, F := D: residual."""
    T, energy = _t(step), (printed_c(_least(gamma)) * _most(G)) ** 2
    bound = (_most(D) ** 2 / 2 + energy + energy / (2 * T)) / np.sqrt(T)
    return bound, _printed_step(step) | _within(D) | _known(G, gamma)


@theorem("proof of Theorem 7, other steps", AVERAGE, PRINTED)
def printed_7_steps(step: Numbers, D: Numbers, G: Numbers, gamma: Numbers) -> Any:
    """(1/T) [F²/2η_T + ½c²G²Ση_t + ½c²G²η_T]: where the paper's proof arrives without η_t = 1/√t."""
    energy = (printed_c(_least(gamma)) * _most(G)) ** 2
    total = _most(D) ** 2 / step + energy * (_sum(step) + step)
    return total / (2 * _t(step)), _descending(step) | _within(D) | _known(G, gamma)


# All bounds of a run


@dataclass(frozen=True)
class Measurements:
    """What was measured in T rounds; one entry per round where not said otherwise."""

    algorithm: str  #: "naive", "repeated", "residual", "dual_averaging" or "error_feedback"
    step: Numbers
    h: Numbers  #: ‖h_t‖; in error feedback the length of the move
    G: Numbers  #: ‖g_t‖
    gamma: Numbers  #: edges inside span(H); in `repeated` the smallest of the round
    D: Numbers  #: ‖x_t − f*‖, or one bound on it
    delta: Numbers = np.nan  #: ‖Δ_t‖, or only ‖Δ_T‖; ‖e_t‖ in error feedback
    left: Numbers = np.nan  #: ‖g_t − h_t‖, of `repeated`
    gap: Numbers = None  #: R(x_1) − R*, …, R(x_{T+1}) − R*, where R* is known
    certificate: Numbers = None  #: a certified bound on the average gap
    d_1: float | None = None  #: ‖f_0 − f*‖; by default the first D
    strong_convexity: float = 0.0
    smoothness: float = np.inf
    decay: Numbers = 1.0  #: of `residual`: β_t, by which Δ is multiplied before round t
    rescaled: bool = True  #: of `repeated`: Algorithm 2'
    line_search: bool = False  #: of `naive`: the steps come from an exact line search


def bounds_of(run: Measurements, every: bool = False) -> list[Bound]:
    """Return the bounds that apply to a run: measured gap, certificate, measured, a priori, printed.

    Bounds of one theorem rise in this order, and they stand above the measured gap (and the certificate) of
    the same average.  `every`: also those of the algorithm whose assumption fails, to see which one it is.
    """
    theorems = _THEOREMS[run.algorithm](run)
    found = [bound for bound in theorems if every or not (bound.failed or np.isnan(bound.value))]
    if run.certificate is not None:
        found.append(_bound("certificate", AVERAGE, CERTIFICATE, run.certificate, {}))
    if run.gap is not None:
        found += [_measured_gap(run, on) for on in dict.fromkeys([AVERAGE, *(b.on for b in found)])]
    return sorted(found, key=lambda bound: KINDS.index(bound.kind))


def _measured_gap(run: Measurements, on: str) -> Bound:
    gap = np.asarray(run.gap, float)
    here, step = gap[:-1], np.broadcast_to(np.asarray(run.step, float), gap[:-1].shape)
    t = _t(here)
    weights = {AVERAGE: np.ones_like(t), WEIGHTED: step, T_WEIGHTED: t}
    if on in weights:
        curve = _sum(weights[on] * here) / _sum(weights[on])
    else:
        curve = gap[1:] if on == LAST else np.minimum.accumulate(here)
    return _bound("measured gap", on, GAP, curve, {})


def _d_1(run: Measurements) -> float:
    return float(np.ravel(run.D)[0]) if run.d_1 is None else run.d_1


def _residual(run: Measurements) -> list[Bound]:
    step, h, delta, D, G, gamma, d_1 = run.step, run.h, run.delta, run.D, run.G, run.gamma, _d_1(run)
    lam = run.strong_convexity
    if np.any(np.asarray(run.decay) < 1.0):
        return [theorem_k(step, h, delta, D, run.decay), theorem_k_a_priori(step, D, G, gamma, run.decay)]
    return [
        theorem_c(step, h, delta, lam),
        theorem_c_a_priori(step, G, gamma, lam),
        printed_6(step, G, gamma, lam),
        theorem_c_prime(step, h, delta, lam),
        theorem_c_prime_a_priori(step, G, gamma, lam),
        theorem_g(step, d_1, gamma, run.smoothness),
        theorem_b(step, h, delta, d_1),
        theorem_b_a_priori(step, d_1, G, gamma),
        theorem_a_second(step, h, delta, D),
        theorem_a(step, h, delta, D),
        theorem_a_a_priori(step, D, G, gamma),
        printed_7(step, D, G, gamma),
        printed_7_steps(step, D, G, gamma),
        theorem_a_prime(step, h, d_1, G, gamma),
        theorem_a_prime_a_priori(step, d_1, G, gamma),
    ]


def _dual_averaging(run: Measurements) -> list[Bound]:
    return [
        theorem_e(run.step, run.h, run.delta, _d_1(run)),
        theorem_e_a_priori(run.step, _d_1(run), run.G, run.gamma),
        printed_7_steps(run.step, run.D, run.G, run.gamma),
    ]


def _error_feedback(run: Measurements) -> list[Bound]:
    return [
        theorem_f(run.step, run.h, run.delta, _d_1(run)),
        theorem_f_a_priori(run.step, _d_1(run), run.G, run.gamma),
    ]


def _repeated(run: Measurements) -> list[Bound]:
    step, h, left, D, G, gamma, d_1 = run.step, run.h, run.left, run.D, run.G, run.gamma, _d_1(run)
    lam, rescaled = run.strong_convexity, run.rescaled
    return [
        theorem_h_strong(step, h, left, lam),
        theorem_h_strong_a_priori(step, G, gamma, lam, rescaled),
        printed_4(step, G, gamma, lam),
        theorem_h_constant(step, h, d_1, G, gamma),
        *([theorem_h_constant_a_priori(step, d_1, G, gamma)] if rescaled else []),
        theorem_h(step, h, left, D),
        theorem_h_a_priori(step, D, G, gamma, rescaled),
        printed_5(step, D, G, gamma),
    ]


def _naive(run: Measurements) -> list[Bound]:
    lam, smoothness, T = run.strong_convexity, run.smoothness, _t(np.asarray(run.step))
    first = np.nan if run.gap is None else float(np.ravel(run.gap)[0])
    step = np.nan if run.line_search else run.step
    return [
        theorem_i(run.gamma, first, smoothness, lam, step),
        printed_3(T, run.gamma, first, smoothness, lam, step),
        theorem_i_prime(run.gamma, first, run.D, smoothness, step),
        theorem_i_prime_a_priori(T, run.gamma, run.D, smoothness, step),
        theorem_j(run.step, run.h, run.G, run.gamma, run.D),
    ]


_THEOREMS: dict[str, Callable[[Measurements], list[Bound]]] = {
    "naive": _naive,
    "repeated": _repeated,
    "residual": _residual,
    "dual_averaging": _dual_averaging,
    "error_feedback": _error_feedback,
}
