"""Any scikit-learn classifier as weak learner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier

from convexboost.core.space import Array, FunctionSpace
from convexboost.learners._sklearn import EstimatorSet, Fitted, Wrapper, fit_weighted, seeded


@dataclass(frozen=True, eq=False)
class Classification(Fitted):
    """A fitted classifier: ±1 for one output, the h' of Theorem 2 for several."""

    estimator: Any
    n_outputs: int

    def evaluate(self, X: Any) -> Array:
        """Return ±1, or 1 for the predicted class and −1/(K−1) for the others."""
        labels = np.asarray(self.estimator.predict(X), int)
        if self.n_outputs == 1:
            return labels[:, None].astype(float)
        values = np.full((len(labels), self.n_outputs), -1.0 / (self.n_outputs - 1))
        values[np.arange(len(labels)), labels] = 1.0
        return values


class ClassifierSet(EstimatorSet):
    """Classifiers fitted to a weighted classification problem (eq. projinnerprod of the paper).

    One output: labels sgn Δ, weights |Δ|.  Several: the label is the largest component of Δ, weighted by how
    far it stands above the row's mean.
    """

    def fit(self, values: Array, rng: np.random.Generator) -> Classification:
        """Fit a fresh copy to labels and weights read off Δ."""
        values = -values  # the same line; −∇ points to the right class, ∇ only away from the wrong ones
        n_outputs = values.shape[1]
        if n_outputs == 1:
            labels, importance = np.where(values[:, 0] >= 0, 1, -1), np.abs(values[:, 0])
        else:
            labels = np.argmax(values, axis=1)
            importance = values.max(axis=1) - values.mean(axis=1)
        weighty = importance > 0
        if len(np.unique(labels[weighty])) < 2:
            label = labels[np.argmax(importance)]  # all labels agree: there is nothing to classify
            constant = DummyClassifier(strategy="constant", constant=label)
            return Classification(constant.fit(self.inputs.X[:1], [label]), n_outputs)
        estimator = seeded(clone(self.estimator), rng)
        weight = (self.space.weight * importance)[weighty]
        # The learner's own penalty, if it has one, sees weights of the usual size.
        weighted = FunctionSpace(weight / weight.sum(), self.space.total, rows=self.space.n_rows)
        return Classification(
            fit_weighted(estimator, self.inputs.X[weighty], labels[weighty], weighted), n_outputs
        )


@dataclass(frozen=True)
class Classifier(Wrapper):
    """Any scikit-learn classifier that takes sample weights.

    Parameters
    ----------
    estimator : scikit-learn estimator
        It is copied and fitted in every round.

    """

    kind = ClassifierSet
