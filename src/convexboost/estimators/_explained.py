"""What a fitted model says about its features, its trees and its predictions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from convexboost.core.model import AdditiveModel
from convexboost.core.nodes import Nodes
from convexboost.core.space import Array
from convexboost.estimators._input import EstimatorInput
from convexboost.inspection import trees
from convexboost.inspection.trees import Naming, ShapeFunction


class ExplainedModel(EstimatorInput):
    """Importances, contributions, curves and trees of a fitted model, in the columns of X."""

    model_: AdditiveModel

    @property
    def feature_importances_(self) -> Array:
        """The gain of all splits on each feature; they add up to 1.

        Trees: how much the splits lower the squared error of the targets of each tree.  Stumps and
        "additive": the variance of each feature's curve over the training rows.  Other learners have none.
        """
        check_is_fitted(self)
        try:
            total = self.importances("total_gain")
        except ValueError as error:
            raise AttributeError(f"`feature_importances_`: {error}") from None
        return np.asarray(total / max(total.sum(), 1e-300))

    def importances(self, kind: str = "gain", *, X: Any = None) -> Array:
        """Return a number for each feature.

        For the loss of a score when a feature is shuffled see `sklearn.inspection.permutation_importance`.

        Parameters
        ----------
        kind : {"gain", "total_gain", "splits", "cover", "total_cover", "contribution"}
            "total_gain" is the gain of all splits on a feature, "gain" that of one on average; "splits" is
            their number; "total_cover" counts the training rows at all splits, "cover" those at one on
            average; "contribution" is the mean absolute contribution to a score at the rows of `X`.
        X : optional
            For "contribution".

        """
        check_is_fitted(self)
        if (kind == trees.CONTRIBUTION) != (X is not None):
            raise ValueError(f"`X` goes with kind='contribution', got kind={kind!r}")
        if X is not None:
            found = np.abs(self.predict_contributions(X)[:, :-1]).mean(axis=0)
            return np.asarray(found if found.ndim == 1 else found.mean(axis=1))
        return trees.importances(self._nodes(), self.n_features_in_, kind)

    def predict_contributions(self, X: Any, *, background: Any = None) -> Array:
        """Return what each feature adds to the score of each row: exact Shapley values.

        Scores are those of `decision_function`, or predictions before the link of the loss (the logarithm,
        for "poisson").

        Parameters
        ----------
        X
            As in `predict`.
        background : optional
            Rows like `X`.  With them a feature that is not known has its values in these rows
            (interventional values).  Without, a row whose feature is not known goes both ways at a split, in
            the proportion of the training rows (path-dependent values).

        Returns
        -------
        array of shape (n_samples, n_features + 1), or (n_samples, n_features + 1, n_outputs)
            Last is the mean score, over the `background` or the training rows.  A row adds up to its score.

        """
        check_is_fitted(self)
        rows = None
        if background is not None:
            rows = _dense(self._check_inputs(background, parameter="background"))
        found = self.model_.contributions(self._check_inputs(X), rows)
        return _one_output(self._combined(found))

    def predict_interactions(self, X: Any) -> Array:
        """Return the contributions of pairs of features: exact Shapley interaction values.

        Returns
        -------
        array of shape (n_samples, n_features + 1, n_features + 1), or with n_outputs last
            Symmetric.  Its rows add up to `predict_contributions(X)`; on the diagonal is what a feature adds
            by itself, and last the mean score.

        """
        check_is_fitted(self)
        return _one_output(self._combined(self.model_.interactions(self._check_inputs(X))))

    def explain(self, X: Any, *, background: Any = None) -> Any:
        """Return the contributions as a `shap.Explanation`, for the plots of the package shap.

        Arguments are those of `predict_contributions`.

        """
        try:
            import shap
        except ModuleNotFoundError as error:
            raise ImportError("`explain` needs shap: pip install shap") from error
        found = self.predict_contributions(X, background=background)
        naming = self._naming()
        return shap.Explanation(
            values=np.ascontiguousarray(found[:, :-1]),
            base_values=np.ascontiguousarray(found[:, -1]),
            data=_dense(self._check_inputs(X)),
            display_data=np.asarray(X, object) if hasattr(X, "columns") else None,
            feature_names=list(naming.features),
            output_names=list(naming.outputs) if found.ndim == 3 else None,
        )

    def shape_functions(self) -> list[ShapeFunction]:
        """Return the exact curve of each feature, for models that are sums of such curves.

        These are models of "stump", "sign_stump", "class_stump" and "additive", and of trees with two leaves.
        Features without influence have no curve.  The value of a curve at a row is the feature's entry in
        `predict_contributions`.

        """
        return trees.shape_functions(self._nodes(), self._naming())

    def apply(self, X: Any) -> NDArray[np.int32]:
        """Return the number, in its tree, of the leaf of each row: (n_samples, n_trees).

        With stumps and "additive" there is a tree for each feature; its leaves are the pieces of the curve.

        """
        nodes = self._nodes()
        before: NDArray[np.intp] = (np.cumsum(nodes.is_leaf) - nodes.is_leaf)[
            nodes.roots
        ]  # leaves of the trees before
        return np.asarray(nodes.leaf[nodes.apply(_dense(self._check_inputs(X)))] - before, np.int32)

    def tree_text(self, tree: int = 0) -> str:
        """Return a tree as text: at each split the condition to go left, then what is left, then right."""
        nodes = self._nodes()
        if nodes.n_trees == 0:
            raise ValueError("the model is a constant: it has no trees")
        if not 0 <= tree < nodes.n_trees:
            raise ValueError(f"`tree` must lie between 0 and {nodes.n_trees - 1}, got {tree!r}")
        return trees.tree_text(nodes, self._naming(), tree)

    def trees_to_dataframe(self) -> Any:
        """Return all nodes of all trees as a pandas data frame."""
        return trees.tree_frame(self._nodes(), self._naming())

    def _nodes(self) -> Nodes:
        """Return the nodes; their values add up to the scores that a user sees."""
        check_is_fitted(self)
        nodes = self.model_.nodes()
        return replace(nodes, values=self._combined(nodes.values), start=self._combined(nodes.start))

    def _naming(self) -> Naming:
        """Return what the user calls columns, levels and outputs."""
        names = vars(self).get("feature_names_in_")
        features = [f"x{j}" for j in range(self.n_features_in_)] if names is None else names
        labels = {j: list(encoder) for j, encoder in self._columns.encoders.items()}
        return Naming(tuple(map(str, features)), self._output_names(), labels)

    def _output_names(self) -> tuple[str, ...]:
        """Return the names of the outputs, as far as they have any."""
        return tuple(map(str, range(len(self.model_.start))))

    def _combined(self, contributions: Array) -> Array:
        """Return contributions to the scores that a user sees; the outputs of the model are last."""
        return contributions


def _one_output(contributions: Array) -> Array:
    return contributions[..., 0] if contributions.shape[-1] == 1 else contributions


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, float)
