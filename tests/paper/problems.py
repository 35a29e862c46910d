"""Random problems whose optimum over f_0 + span(H) is known, in the library's own objects.

A function of f_0 + S, S = span(H), is written as its coordinates z in an orthonormal basis of S: the whole
theory runs in S (theory 1), and there ⟨·,·⟩ and ‖·‖ are the Euclidean ones.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linprog, minimize
from scipy.spatial import ConvexHull

from convexboost.core.space import FunctionSpace
from convexboost.learners._stumps import StumpSet
from convexboost.learners.additive import Additive
from convexboost.learners.class_stump import ClassStump
from convexboost.learners.finite import FiniteSet
from convexboost.learners.sign_stump import SignStump
from convexboost.learners.stump import Stump
from convexboost.losses._objective import Pointwise
from convexboost.losses.absolute import Absolute
from convexboost.losses.half_squared import HalfSquared
from convexboost.losses.multiclass_hinge import MulticlassHinge
from convexboost.losses.quantile import Quantile
from convexboost.losses.softmax import Softmax

LOSSES = {
    "absolute": Absolute(),
    "quantile": Quantile(0.8),
    "multiclass_hinge": MulticlassHinge(),
    "half_squared": HalfSquared(),
    "softmax": Softmax(),
}
N_CLASSES = 3
N_SAMPLES = 20

#: (loss, hypothesis set, seed[, λ])
CONVEX = [
    (loss, hypotheses, seed)
    for loss, sets in {
        "absolute": ("full_span", "low_rank", "coordinates", "stumps"),
        "multiclass_hinge": ("full_span", "low_rank", "stumps", "class_stumps"),
    }.items()
    for hypotheses in sets
    for seed in range(4)
]
STRONGLY_CONVEX = [
    ("absolute", "full_span", 0, 0.1),
    ("absolute", "low_rank", 1, 0.3),
    ("absolute", "stumps", 1, 1.0),
    ("multiclass_hinge", "full_span", 1, 0.3),
    ("multiclass_hinge", "low_rank", 0, 0.1),
    ("multiclass_hinge", "stumps", 0, 0.3),
    ("multiclass_hinge", "class_stumps", 1, 0.1),
    ("half_squared", "full_span", 0, 0.0),
    ("half_squared", "low_rank", 1, 0.0),
    ("half_squared", "stumps", 1, 0.5),
]


@dataclass(frozen=True)
class Problem:
    """min R over f_0 + span(H), solved."""

    X: np.ndarray  #: the inputs; row numbers for a finite set
    objective: Pointwise
    H: FiniteSet | StumpSet
    start: np.ndarray
    offset: np.ndarray
    basis: np.ndarray  #: orthonormal basis of S, shape (rank, n_samples, n_outputs)
    minimum: float = np.nan  #: R*, or a certified lower bound of it
    z_star: np.ndarray | None = None  #: f* − f_0 in the basis

    @property
    def f_0(self):
        return self.start + self.offset

    @property
    def space(self):
        return self.objective.space

    @property
    def strong_convexity(self):
        return self.objective.constants.strong_convexity

    @property
    def d_1(self):
        """‖f_0 − f*‖."""
        return np.linalg.norm(self.z_star)

    def scores(self):
        return self.objective.scores(self.H.inputs, self.start, self.offset)

    def coordinates(self, V):
        """Πv in the basis, for functions of shape (..., n_samples, n_outputs)."""
        return np.einsum("rnk,n,...nk->...r", self.basis, self.space.weight, V)

    def function(self, z):
        return self.f_0 + np.einsum("...r,rnk->...nk", z, self.basis)

    def value(self, z):
        scores = self.scores()
        scores.restore((self.function(z), []))
        return scores.value()

    def gradient(self, z):
        scores = self.scores()
        scores.restore((self.function(z), []))
        return self.coordinates(scores.gradient().values)


def make(loss, hypotheses, seed=0, l2=0.0, n_samples=N_SAMPLES, weighted=None):
    """Odd seeds have random sample weights and a random f_0, even ones the uniform measure and f_0 = 0."""
    rng = np.random.default_rng([seed, n_samples])
    weighted = seed % 2 == 1 if weighted is None else weighted
    space = FunctionSpace.of(n_samples, rng.uniform(0.2, 1.8, n_samples) if weighted else None)
    X = np.round(rng.normal(size=(n_samples, 4)), 1)
    score = X[:, 0] + np.sin(2 * X[:, 1]) + 0.5 * X[:, 2] * X[:, 3]
    if LOSSES[loss].task == "regression":
        y = score + 0.7 * rng.standard_t(3, size=n_samples)
        objective = LOSSES[loss].bind(y, space)
    else:
        y = np.digitize(score + 0.5 * rng.normal(size=n_samples), np.quantile(score, [1 / 3, 2 / 3]))
        objective = LOSSES[loss].bind(y, space, n_classes=N_CLASSES)
    K = objective.n_outputs
    offset = rng.normal(size=(n_samples, K)) if weighted else np.zeros((n_samples, K))
    H, atoms = SETS[hypotheses](X, space, K, rng)
    inputs = np.arange(n_samples) if isinstance(H, FiniteSet) else X
    return solve(Problem(inputs, objective.with_l2(l2), H, np.zeros(K), offset, orthonormal(atoms, space)))


def full_span(X, space, K, rng):
    atoms = rng.normal(size=(2 * space.n_samples * K, space.n_samples, K))
    return FiniteSet(atoms, space), atoms


def low_rank(X, space, K, rng):
    atoms = rng.normal(size=(7, space.n_samples, K))
    atoms[5:] = np.einsum("ij,jnk->ink", rng.normal(size=(2, 5)), atoms[:5])
    return FiniteSet(atoms, space), atoms


def coordinates(X, space, K, rng):
    atoms = np.eye(space.n_samples * K).reshape(-1, space.n_samples, K)
    return FiniteSet(atoms, space), atoms


def stumps(X, space, K, rng):
    H = Stump(max_bins=3).bind(X, space)
    return H, bin_functions(H, np.eye(K))


def sign_stumps(X, space, K, rng):
    """A split with everything on one side is among them, so they span what stumps do."""
    H = SignStump(max_bins=3).bind(X, space)
    return H, bin_functions(H, np.eye(K))


def additive(X, space, K, rng):
    H = Additive(max_bins=3).bind(X, space)
    return H, bin_functions(H, np.eye(K))


def class_stumps(X, space, K, rng):
    """Their span is that of the stumps times the zero-sum vectors (theory 4.5)."""
    H = ClassStump(max_bins=3).bind(X, space)
    return H, bin_functions(H, np.eye(K) - 1 / K)


SETS = {
    "full_span": full_span,
    "low_rank": low_rank,
    "coordinates": coordinates,
    "stumps": stumps,
    "class_stumps": class_stumps,
    "sign_stumps": sign_stumps,
    "additive": additive,
}


def bin_functions(H, outputs):
    """The indicator of each bin times each output vector."""
    columns = [H.sample.column(j) for j in range(H.sample.n_features)]
    indicators = [column == b for column in columns for b in np.unique(column)]
    return np.array([np.outer(one, u) for one in indicators for u in outputs])


def orthonormal(atoms, space):
    root = np.sqrt(space.weight)[:, None]
    _, singular, rows = np.linalg.svd((atoms * root).reshape(len(atoms), -1), full_matrices=False)
    rank = int(np.sum(singular > 1e-9 * singular[0]))
    return rows[:rank].reshape(rank, *atoms.shape[1:]) / root


def uniform_edge(problem):
    """γ_S = min over v in S of the best edge = the inradius of conv(± h/‖h‖) (theory 1)."""
    P = problem.coordinates(problem.H.atoms)
    P /= np.linalg.norm(P, axis=1, keepdims=True)
    rank = P.shape[1]
    if len(P) == rank and np.allclose(P @ P.T, np.eye(rank)):
        return 1 / np.sqrt(rank)
    return -ConvexHull(np.vstack([P, -P])).equations[:, -1].max()


# The optimum.  Absolute, quantile and multiclass hinge are l(f) = max_u ⟨u, f + c⟩ over the vertices u of a
# box or a shifted simplex, so −l*(u) = ⟨u, c⟩ on it (theory 4.4).


def polyhedral(problem):
    """(vertices, c): shapes (n_vertices, n_samples, n_outputs) and (n_samples, n_outputs)."""
    y, K = problem.objective.y, problem.objective.n_outputs
    if isinstance(problem.objective.loss, Absolute):
        return np.stack([np.ones_like(y), -np.ones_like(y)]), -y
    if isinstance(problem.objective.loss, Quantile):
        q = problem.objective.loss.quantile
        return np.stack([np.full_like(y, 1 - q), np.full_like(y, -q)]), -y
    own = np.eye(K)[y]
    return np.eye(K)[:, None, :] - own, 1.0 - own


def solve(problem):
    loss, l2 = problem.objective.loss, problem.objective.l2
    if isinstance(loss, HalfSquared):
        z = problem.coordinates(problem.objective.y - problem.f_0) / (1 + l2)
        return replace(problem, minimum=problem.value(z), z_star=z)
    if isinstance(loss, Softmax):
        return newton(problem)
    return fenchel(problem) if l2 > 0 else linear_program(problem)


def linear_program(problem):
    """min Σ p_n t_n subject to t_n ≥ ⟨u_n, f_n + c_n⟩ for every vertex u (theory 4.4), by HiGHS."""
    V, c = polyhedral(problem)
    rank, N = len(problem.basis), problem.space.n_samples
    left = np.einsum("unk,rnk->unr", V, problem.basis).reshape(-1, rank)
    A = np.hstack([left, -np.tile(np.eye(N), (len(V), 1))])
    b = -np.einsum("unk,nk->un", V, problem.f_0 + c).ravel()
    cost = np.concatenate([np.zeros(rank), problem.space.weight])
    found = linprog(cost, A_ub=A, b_ub=b, bounds=(None, None), method="highs")
    z = found.x[:rank]
    assert abs(problem.value(z) - found.fun) < 1e-7
    # The bounds hold for every comparator, so they hold exactly for this one and its own value.
    return replace(problem, minimum=problem.value(z), z_star=z)


def fenchel(problem, n_iterations=20_000):
    """Accelerated ascent on the dual: max ⟨u, c + f_0⟩ − ‖Πu‖²/(2λ).  `minimum` is a dual value, below R*."""
    lam = problem.objective.l2
    V, c = polyhedral(problem)
    is_box = len(V) == 2 and V.shape[2] == 1
    shift = 0.0 if is_box else V[0] - np.eye(V.shape[2])[0]
    nearest = (lambda u: u.clip(V[1], V[0])) if is_box else (lambda u: simplex(u - shift) + shift)
    linear = c + problem.f_0
    u = w = V.mean(axis=0)
    momentum = 1.0
    for iteration in range(n_iterations):
        z = -problem.coordinates(w) / lam
        after = nearest(w + lam * (linear + problem.function(z) - problem.f_0))
        momentum = 1.0 if np.sum((after - u) * (w - after)) > 0 else momentum
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        w = after + (momentum - 1) / following * (after - u)
        u, momentum = after, following
        if iteration % 100 == 99:
            z = -problem.coordinates(u) / lam
            dual = problem.space.inner(u, linear) - lam * np.sum(z**2) / 2
            if problem.value(z) - dual < 1e-10:
                break
    assert problem.value(z) - dual < 1e-7
    return replace(problem, minimum=dual, z_star=z)


def simplex(u):
    """The nearest point of the simplex, row by row."""
    descending = -np.sort(-u, axis=1)
    excess = np.cumsum(descending, axis=1) - 1
    count = np.sum(descending * np.arange(1, u.shape[1] + 1) > excess, axis=1)
    return np.maximum(u - (excess[np.arange(len(u)), count - 1] / count)[:, None], 0)


def newton(problem):
    found = minimize(
        problem.value, np.zeros(len(problem.basis)), jac=problem.gradient, method="BFGS", tol=1e-11
    )
    assert np.linalg.norm(found.jac) < 1e-6
    return replace(problem, minimum=found.fun, z_star=found.x)


def smallest_error_edge(signs):
    """δ* = min over weights and labels of max_h Σ w_n y_n h(x_n), one LP per labelling (theory 6)."""
    H = np.vstack([signs, -signs])
    n = H.shape[1]
    cost, total = np.append(np.zeros(n), 1.0), [np.append(np.ones(n), 0.0)]
    bounds = [(0, None)] * n + [(None, None)]
    values = []
    for labels in itertools.product((-1.0, 1.0), repeat=n):
        A = np.hstack([H * labels, -np.ones((len(H), 1))])
        values.append(linprog(cost, A_ub=A, b_ub=np.zeros(len(H)), A_eq=total, b_eq=[1.0], bounds=bounds).fun)
    return min(values)
