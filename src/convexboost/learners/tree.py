"""Trees with vector leaves, grown on binned columns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from convexboost.core.space import FunctionSpace
from convexboost.learners._bins import MAX_BINS, BinMapper, categorical_mask
from convexboost.learners._learner import MORE_LEVELS, Auto, Learner
from convexboost.learners._tree_function import RowMapper
from convexboost.learners._tree_set import CLASS_LEAVES, LEAVES, TreeSet


@dataclass(frozen=True)
class Tree(Learner):
    """A tree grown best leaf first, one vector per leaf for all outputs.

    A split on a number sends those up to a cut left, and missing values to the better side.  A split on a
    categorical column sends a set of categories left, missing values being one of them: the categories are
    sorted by their mean targets and cut once.  For one output no set of categories is better, as long as
    `min_samples_leaf` forbids none.  With several outputs they are sorted along one direction, that in which
    a category differs most, and a better set may exist; so it may where `min_samples_leaf` forbids cuts.

    Parameters
    ----------
    max_leaves : int, optional
        By default 31; 64 in a classifier that draws cuts at random.
    max_depth : int, optional
    min_samples_leaf : float
        Least number of rows in a leaf; a row counts as often as its sample weight says (weights with a mean
        below 1, such as shares, are brought to 1 first).  Weights that are multiples of a common unit (whole
        numbers, say) are counted exactly, so that a row of weight 2 is the row twice; others are rounded to
        nine digits of their sum.
    leaf_l2 : float
        A leaf's value is the sum of its targets over its weight plus this (in rows): the smaller the leaf,
        the more it is shrunken.
    min_gain : float
        Least squared length that a split must add.
    splits : {"auto", "best", "random"}
        "random": one cut drawn for each feature and node (extremely randomised trees), the best of these.
        "auto" means that in classifiers and rankers, and in regressors for losses that are not smooth
        (where the `envelope` is not 0); else, and without an estimator, "best".
    row_share, column_share : float
        The share of rows (for a ranker, of queries) and columns that a tree is grown on, drawn anew for each;
        the values of its leaves are those of all rows.  Copies of a row are drawn together.
    max_bins : int
        At most 255.  Sparse inputs are written out, a byte per number.
    monotone : dict or sequence, optional
        Column → 1 (predictions must not fall), −1 (must not rise) or 0: exact, whatever the loss and the
        other columns.  Columns are numbers or, in a dict, names; not categorical.  Nothing is said about
        missing values.

    """

    max_leaves: int | None = None
    max_depth: int | None = None
    min_samples_leaf: float = 10
    leaf_l2: float = 0.0
    min_gain: float = 0.0
    splits: str = "auto"
    row_share: float = 1.0
    column_share: float = 1.0
    max_bins: int = MAX_BINS
    monotone: Any = None

    name: ClassVar[str] = "tree"
    #: docs/generalisation.md has the evidence.  Losses that reweight rows must be allowed to rise at times,
    #: to leave a kink.
    auto = Auto(
        step="refit:0.05",
        reweighting_step="polyak:0.05",
        decay=0.7,
        envelopes={"classification": 3.0, "regression": 10.0},
        finds_rounds=True,
    )
    allows_missing = allows_sparse = True
    uses_categories = True

    def __post_init__(self) -> None:
        def need(name: str, fine: bool, wanted: str) -> None:
            if not fine:
                raise ValueError(f"`{name}` of a tree must be {wanted}, got {getattr(self, name)!r}")

        need(
            "max_leaves",
            self.max_leaves is None or (isinstance(self.max_leaves, Integral) and self.max_leaves >= 2),
            "an integer of at least 2",
        )
        depth = self.max_depth
        need(
            "max_depth",
            depth is None or (isinstance(depth, Integral) and depth >= 1),
            "a positive integer or None",
        )
        for name in ("min_samples_leaf", "leaf_l2", "min_gain"):
            value = getattr(self, name)
            need(
                name,
                isinstance(value, Real) and 0 <= float(value) < math.inf,
                "a number that is not negative",
            )
        for name in ("row_share", "column_share"):
            value = getattr(self, name)
            need(name, isinstance(value, Real) and 0 < float(value) <= 1, "in (0, 1]")
        need("splits", self.splits in ("auto", "best", "random"), "'auto', 'best' or 'random'")
        need(
            "max_bins",
            isinstance(self.max_bins, Integral) and 2 <= self.max_bins <= MAX_BINS,
            f"between 2 and {MAX_BINS}",
        )
        given = self.monotone
        fine = given is None or isinstance(given, Mapping) or np.ndim(given) == 1
        signs = given.values() if isinstance(given, Mapping) else () if given is None or not fine else given
        fine = fine and all(isinstance(sign, Integral) and int(sign) in (-1, 0, 1) for sign in signs)
        need("monotone", fine, "a dict from columns, or a sequence with an entry for each, to -1, 0 or 1")

    def settled(self, task: str, smoothed: bool) -> Self:
        """Return the learner with "auto" settled (docs/generalisation.md has the evidence).

        Random cuts, but the best ones in regression where gradients are not those of an envelope: for smooth
        losses which of the two is better depends on the data.
        """
        random = self.splits == "random" or (self.splits == "auto" and (task != "regression" or smoothed))
        leaves = CLASS_LEAVES if random and task == "classification" else LEAVES
        return replace(self, splits="random" if random else "best", max_leaves=self.max_leaves or leaves)

    def stronger(self) -> Tree:
        """Return the learner of trees that are some levels deeper."""
        leaves = 2**MORE_LEVELS * (self.max_leaves or LEAVES)
        depth = None if self.max_depth is None else int(self.max_depth) + MORE_LEVELS
        return replace(self, max_leaves=leaves, max_depth=depth)

    def weaker(self) -> str:
        """Return stumps."""
        return "stump"

    def signs(self, categorical: NDArray[np.bool_], names: Any = None) -> NDArray[np.int64]:
        """Return how the *gradient* must move along each feature: against the predictions."""
        given, n_features = self.monotone, len(categorical)
        signs = np.zeros(n_features, np.int64)
        if given is None:
            return signs
        if not isinstance(given, Mapping) and len(given) != n_features:
            raise ValueError(f"`monotone` of a tree must have {n_features} entries, got {len(given)}")
        numbers = {} if names is None else {name: j for j, name in enumerate(names)}
        seen = set()
        for column, sign in given.items() if isinstance(given, Mapping) else enumerate(given):
            if isinstance(column, str) and column not in numbers:
                raise ValueError(f"`monotone` of a tree names column {column!r}, which `X` does not have")
            j = numbers[column] if isinstance(column, str) else column
            if not isinstance(j, Integral) or not 0 <= int(j) < n_features:
                raise ValueError(
                    f"`monotone` of a tree must name columns between 0 and {n_features - 1}, got {j!r}"
                )
            name = str(j) if names is None else repr(str(names[j]))
            if sign != 0 and categorical[j]:
                raise ValueError(f"`monotone` of a tree names column {name}, which is categorical")
            if j in seen:
                raise ValueError(f"`monotone` of a tree names column {name} twice: by name and by number")
            seen.add(j)
            signs[j] = -sign
        return signs

    def bind(
        self,
        X: Any,
        space: FunctionSpace,
        categorical: Any = None,
        n_threads: int = 1,
        *,
        mapper: Any = None,
        names: Any = None,
        groups: Any = None,
    ) -> TreeSet:
        """Bin the training inputs; with `groups` (numbers) `row_share` draws whole groups.

        `names` are those of the columns, which `monotone` may use.
        """
        if mapper is None:
            mask = categorical_mask(categorical, X.shape[1])
            if sp.issparse(X):
                X = sp.csc_array(X, copy=not X.has_canonical_format)
                X.sum_duplicates()
            else:
                X = np.asarray(X, float)
            mapper = RowMapper(BinMapper.fit(X, space, self.max_bins, mask, n_threads))
        return TreeSet(self, mapper, mapper.encode(X, n_threads), space, groups, names)
