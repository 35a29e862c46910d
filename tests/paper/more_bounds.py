"""Theorems that no report shows: see `convexboost.paper.bounds`, whose words these are."""

from __future__ import annotations

from typing import Any

import numpy as np

from convexboost.paper.bounds import (
    A_PRIORI,
    AVERAGE,
    CLOSE,
    MEASURED,
    Numbers,
    _as_many_as_rounds,
    _constant,
    _descending,
    _final,
    _is,
    _known,
    _least,
    _most,
    _radius,
    _repeated_radius,
    _repeated_step,
    _smooth,
    _strongly,
    _sum,
    _t,
    _within,
    c_delta,
    contraction,
    kappa,
    theorem,
)

# What is bounded.
DISTANCE = "distance to the optimum"
VIRTUAL = "squared distance of x − ηΔ to the optimum"
GRADIENT = "norm of the subgradients"
COUNT = "projections in a round"


@theorem("Theorem A'", DISTANCE, MEASURED)
def theorem_a_prime_radius(step: Numbers, h: Numbers, d_1: Numbers, G: Numbers, gamma: Numbers) -> Any:
    """M_T = η_1c_ΔG + √((η_1c_ΔG)² + d_1² + Ση_t²‖h_t‖²) bounds ‖x_{t+1} − f*‖: a D for Theorem A."""
    _, M = _radius(step, _sum((step * h) ** 2), d_1, G, gamma)
    return M, _descending(step) | _known(G, gamma)


@theorem("Theorem C (iii)", GRADIENT, A_PRIORI)
def theorem_c_gradient(T: Numbers, L: Numbers, gamma: Numbers) -> Any:
    """G ≤ 2L + max v_t, v_1 = sL, v_t = s v_{t−1} + 2sL/t: a loss that is L-Lipschitz, plus a ridge."""
    s, v = float(contraction(gamma)), [0.0]
    for t in range(1, int(T) + 1):
        v.append(s * v[-1] + (2 if t > 1 else 1) * s * float(L) / t)
    assumes = {"R is an L-Lipschitz loss + (λ/2)‖f − f_0‖²": None, "the step is 1/(λt)": None}
    return 2 * L + _most(np.array(v[1:])), assumes | _known(L, gamma)


@theorem("Theorem D", AVERAGE, MEASURED)
def theorem_d(step: Numbers, h: Numbers, delta: Numbers, active: Numbers, D: Numbers) -> Any:
    """Theorem A + (1/T) ½Σ_active η_t‖Δ_t‖²: x is projected on a convex set, where `active` it moved."""
    delta = _final(delta, step)
    pulled = _sum(np.where(active != 0, step * delta**2, 0.0))
    total = _most(D) ** 2 / step + _sum(step * h**2) + pulled + step * delta**2
    return total / (2 * _t(step)), _descending(step) | _within(D) | {"the set contains f*": None}


@theorem("Theorem D", AVERAGE, A_PRIORI)
def theorem_d_a_priori(step: Numbers, D: Numbers, G: Numbers, gamma: Numbers) -> Any:
    """(1/T) [D²/2η_T + ½(κ + c_Δ²)G²Ση_t]: 1/γ⁴, so do not project in Algorithm 3."""
    least = _least(gamma)
    energy = (kappa(least) + c_delta(least) ** 2) * _most(G) ** 2
    assumes = _descending(step) | _within(D) | _known(G, gamma) | {"the set contains f*": None}
    return (_most(D) ** 2 / step + energy * _sum(step)) / (2 * _t(step)), assumes


@theorem("Theorem G'", VIRTUAL, A_PRIORI)
def theorem_g_prime(
    step: Numbers, d_1: Numbers, gamma: Numbers, smoothness: Numbers, strong_convexity: Numbers
) -> Any:
    """(1 − γ²λ/18Λ)^T d_1² for η = γ²/9Λ, on a smooth and strongly convex objective."""
    rate = 1 - gamma**2 * strong_convexity / (18 * smoothness)
    assumes = _smooth(smoothness) | _strongly(strong_convexity)
    assumes |= _is("γ²/9Λ", step, gamma**2 / (9 * smoothness)) | {"the edges are at least γ": None}
    return rate ** _t(step) * d_1**2, assumes


@theorem("Theorem H, constant step", DISTANCE, MEASURED)
def theorem_h_constant_radius(step: Numbers, h: Numbers, d_1: Numbers, G: Numbers, gamma: Numbers) -> Any:
    """M = 2ηc_ΔG + √(d_1² + η²Σ‖h_t‖²) bounds ‖x_{t+1} − f*‖."""
    M = _repeated_radius(step, _sum((step * h) ** 2), d_1, G, gamma)
    return M, _constant(step) | _known(G, gamma) | _as_many_as_rounds()


# Algorithm 2 with a threshold (Section 7.1): the inner loop ends when ‖r‖ ≤ τ, then h_t is rescaled


@theorem("inner loop", COUNT, A_PRIORI)
def threshold_projections(G: Numbers, tau: Numbers, gamma: Numbers) -> Any:
    """⌈ln(‖g_t‖²/τ²)/−ln(1 − γ²)⌉ projections are enough."""
    ratio = np.log(np.maximum(G / tau, 1.0)) / -np.log(contraction(gamma))
    assumes = {"γ lies in (0, 1]": (gamma > 0) & (gamma <= 1), "the edges are at least γ": None}
    return np.ceil(ratio), assumes


@theorem("threshold, constant step", AVERAGE, A_PRIORI)
def threshold_constant(T: Numbers, step: Numbers, tau: Numbers, d_1: Numbers, G: Numbers) -> Any:
    """1.43 d_1G/√T after T rounds with τ = G/4√T, η = d_1/(G√T); all ‖x_t − f*‖ ≤ 1.69 d_1."""
    assumes = _is("d_1/(G√T)", step, d_1 / (G * np.sqrt(T)))
    assumes |= {"τ ≤ G/4√T": tau <= G / (4 * np.sqrt(T)) * (1 + CLOSE), "‖g_t‖ ≤ G": None}
    return 1.43 * d_1 * G / np.sqrt(T), assumes


@theorem("threshold, bounded domain", AVERAGE, MEASURED)
def threshold_bounded(step: Numbers, h: Numbers, D: Numbers, accuracy: Numbers) -> Any:
    """(1/T) [D²/2η_T + ½Ση_t‖h_t‖²] + accuracy/2 with τ = accuracy/2D."""
    total = _most(D) ** 2 / (2 * step) + _sum(step * h**2) / 2
    assumes = _descending(step) | _within(D) | {"‖r_t‖ ≤ accuracy/2D": None}
    return total / _t(step) + accuracy / 2, assumes


@theorem("threshold, strongly convex", AVERAGE, MEASURED)
def threshold_strong(step: Numbers, h: Numbers, accuracy: Numbers, strong_convexity: Numbers) -> Any:
    """(1/λT)Σ‖h_t‖²/t + accuracy/2 with τ = √(λ accuracy/2)."""
    t = _t(step)
    assumes = _repeated_step(step, strong_convexity) | {"‖r_t‖ ≤ √(λ accuracy/2)": None}
    return _sum(h**2 / t) / (strong_convexity * t) + accuracy / 2, assumes


@theorem("threshold that falls, strongly convex", AVERAGE, A_PRIORI)
def threshold_strong_a_priori(step: Numbers, G: Numbers, strong_convexity: Numbers) -> Any:
    """2G²(1 + ln T)/λT with τ_t = ‖g_t‖/√t."""
    T = _t(step)
    assumes = _repeated_step(step, strong_convexity) | {"‖r_t‖ ≤ ‖g_t‖/√t": None}
    return 2 * _most(G) ** 2 * (1 + np.log(T)) / (strong_convexity * T), assumes
