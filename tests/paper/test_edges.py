"""Theorems 1 and 2: the edge in L²(P) and the edges of weak classifiers, corrected (theory 6)."""

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from sklearn.tree import DecisionTreeClassifier

from convexboost.core.gradients import Gradient
from convexboost.core.space import FunctionSpace
from convexboost.learners.class_stump import ClassStump
from convexboost.learners.classifier import Classifier
from convexboost.learners.finite import FiniteSet
from convexboost.learners.sign_stump import SignStump
from convexboost.learners.stump import Stump
from tests.paper.problems import orthonormal, smallest_error_edge

pytestmark = pytest.mark.one_in(2)  # the others: make test-slow

TREE = DecisionTreeClassifier(max_depth=2)


def project(H, v):
    """The library's projection of v: the direction, and the values of its one hypothesis."""
    target = H.zero(v.shape[1])
    target.add(Gradient(v, FunctionSpace.of(len(v))))
    found = target.project(np.random.default_rng(0))
    ((_, h),) = found.terms
    values = np.zeros_like(v)
    h.add_to(values, H.inputs, 1.0)
    return found, values


def random_classifier(rng, v):
    """One random ±1 function, or one random h′ of Theorem 2."""
    if v.shape[1] == 1:
        values = rng.choice([-1.0, 1.0], size=v.shape)
    else:
        values = class_output(rng.integers(0, v.shape[1], len(v)), v.shape[1])
    return FiniteSet(values[None], FunctionSpace.of(len(v)))


def class_output(classes, K):
    """h′(x)_k = 1 for the class, −1/(K−1) for the others."""
    return np.where(np.eye(K, dtype=bool)[classes], 1.0, -1 / (K - 1))


def bound_set(kind, rng, v):
    if kind == "random":
        return random_classifier(rng, v)
    X = rng.normal(size=(len(v), 3))
    learner = {"stump": SignStump() if v.shape[1] == 1 else ClassStump(), "tree": Classifier(TREE)}[kind]
    return learner.bind(X, FunctionSpace.of(len(v)))


@pytest.mark.parametrize("kind", ["random", "stump", "tree"])
@pytest.mark.parametrize("seed", range(30))
def test_theorem_1(kind, seed):
    """γ = δ ‖w‖₁/(√N ‖w‖₂), hence δ/√N ≤ γ ≤ δ, with w = |v| and labels y = sgn v."""
    rng = np.random.default_rng([1, seed])
    N = int(rng.integers(2, 30))
    w, y = rng.exponential(size=N) ** rng.integers(1, 6), rng.choice([-1.0, 1.0], N)
    v = (w * y)[:, None]
    found, h = project(bound_set(kind, rng, v), v)
    assert np.all(np.abs(h) == 1)
    delta = abs(np.sum(w * y * h[:, 0])) / np.sum(w)
    assert found.edge == pytest.approx(
        delta * np.sum(w) / (np.sqrt(N) * np.linalg.norm(w)), rel=1e-12, abs=1e-12
    )
    assert delta / np.sqrt(N) <= found.edge * (1 + 1e-12)
    assert found.edge <= delta * (1 + 1e-12)


@pytest.mark.parametrize("kind", ["random", "stump", "tree"])
@pytest.mark.parametrize("seed", range(30))
def test_theorem_2(kind, seed):
    """γ = δ √(K/(K−1)) Σm_n/(√N ‖W‖_F), hence δ/((K−1)√N) ≤ γ ≤ δ, for zero row sums."""
    rng = np.random.default_rng([2, seed])
    N, K = int(rng.integers(2, 30)), int(rng.integers(2, 7))
    W = rng.normal(size=(N, K)) ** rng.choice([1, 3])
    W -= W.mean(axis=1, keepdims=True)
    found, h = project(bound_set(kind, rng, W), W)
    assert np.allclose(h, class_output(h.argmax(axis=1), K))
    m = np.sum(W.max(axis=1))
    delta = abs(np.sum(W[np.arange(N), h.argmax(axis=1)])) / m
    identity = delta * np.sqrt(K / (K - 1)) * m / (np.sqrt(N) * np.linalg.norm(W))
    assert found.edge == pytest.approx(identity, rel=1e-12, abs=1e-12)
    assert delta / ((K - 1) * np.sqrt(N)) <= found.edge * (1 + 1e-12)
    assert found.edge <= delta * (1 + 1e-12)


@pytest.mark.parametrize(("K", "edge"), [(2, 1.0), (3, 1 / 2), (5, 1 / 4), (10, 1 / 9)])
def test_theorem_2_worst_case(K, edge):
    """N = 1, δ = 1 and γ = 1/(K−1): the printed δ/√N = 1 is false for K ≥ 3 (erratum 12)."""
    W = np.append(np.ones(K - 1), -(K - 1.0))[None]
    found, _ = project(FiniteSet(class_output([0], K)[None], FunctionSpace.of(1)), W)
    assert found.edge == pytest.approx(edge, abs=1e-12)


@pytest.mark.parametrize("K", [2, 3, 5])
def test_theorem_2_upper_end_is_tight(K):
    """Rows ∝ (1, −1/(K−1), …) of equal norm: γ = δ = 1 for the classifier that is always right."""
    W = class_output(np.arange(8) % K, K)
    found, _ = project(FiniteSet(W[None], FunctionSpace.of(8)), W)
    assert found.edge == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("learner", [SignStump(), Stump()], ids=["sign_stump", "stump"])
def test_stumps_find_the_longest_projection(learner):
    """Both beat every split tried by hand; a regression stump also beats the ±1 stump."""
    rng = np.random.default_rng(3)
    X, v = rng.integers(0, 6, size=(40, 3)).astype(float), rng.normal(size=(40, 1))
    found, _ = project(learner.bind(X, FunctionSpace.of(40)), v)
    splits = [X[:, j] <= c for j in range(3) for c in range(6)]
    by_hand = max(abs(np.mean(v[:, 0] * np.where(left, 1, -1))) for left in splits)
    if isinstance(learner, SignStump):
        assert found.norm == pytest.approx(by_hand, rel=1e-12)
    assert found.norm >= by_hand * (1 - 1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_theorem_1_for_a_class(seed):
    """δ*/√N ≤ γ* ≤ δ*: γ* by Qhull, δ* by one LP per labelling; the worst v has edge γ* in the library."""
    rng = np.random.default_rng([4, seed])
    N, space = 4, FunctionSpace.of(4)
    signs = rng.choice([-1.0, 1.0], size=(int(rng.integers(6, 9)), N))
    assert len(orthonormal(signs[:, :, None], space)) == N  # H spans everything, so that γ* > 0
    facets = ConvexHull(np.vstack([signs, -signs]) / np.sqrt(N)).equations
    worst = facets[np.argmax(facets[:, -1])]
    gamma, delta = -worst[-1], smallest_error_edge(signs)
    H = FiniteSet(signs[:, :, None], space)
    assert project(H, worst[:N, None])[0].edge == pytest.approx(gamma, abs=1e-9)
    assert min(project(H, rng.normal(size=(N, 1)))[0].edge for _ in range(200)) >= gamma - 1e-9
    assert delta / np.sqrt(N) - 1e-9 <= gamma <= delta + 1e-9


def test_fixed_labels_are_not_enough():
    """Erratum 8: H = {y, −y} has δ = 1 for every weighting of the labels y, and no edge on v ⟂ y."""
    y = np.array([1.0, -1.0, 1.0, 1.0])
    H = FiniteSet(y[None, :, None], FunctionSpace.of(4))
    v = np.array([1.0, 1.0, 1.0, -1.0])[:, None]
    target = H.zero(1)
    target.add(Gradient(v, H.space))
    assert target.project(np.random.default_rng(0)).norm == 0.0
    assert smallest_error_edge(y[None]) == pytest.approx(0.0, abs=1e-9)
    w = np.random.default_rng(0).exponential(size=4)
    assert abs(np.sum(w * y * y)) / np.sum(w) == pytest.approx(1.0)


def test_constant_rows_have_no_edge():
    """Erratum 11: every h′ has zero row sums, so ∇ = c(x)·1 is orthogonal to all of them."""
    rng = np.random.default_rng(5)
    H = ClassStump().bind(rng.normal(size=(20, 2)), FunctionSpace.of(20))
    target = H.zero(3)
    target.add(Gradient(np.repeat(rng.normal(size=(20, 1)), 3, axis=1), FunctionSpace.of(20)))
    assert target.project(rng).norm == pytest.approx(0.0, abs=1e-12)
