"""Trees with vector leaves, grown on binned columns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from convexboost.core.space import FunctionSpace
from convexboost.learners._bins import MAX_BINS, BinMapper, as_columns, categorical_mask
from convexboost.learners._learner import MORE_LEVELS, Defaults, Learner
from convexboost.learners._tree_function import RowMapper, TreeFunction
from convexboost.learners._tree_set import TreeSet

#: Leaves of a tree by default, and in classifiers with one output.
LEAVES, FEW_LEAVES = 31, 15


@dataclass(frozen=True)
class Tree(Learner):
    """A tree grown best leaf first, with one vector per leaf for all outputs.

    A split on a number sends the values up to a cut left, and missing values to the better side.  A split on
    a categorical column sends a set of categories left; "missing" is one of the categories.  Categories are
    sorted by their mean targets and cut once; rare ones are moved to the middle (`cat_smooth`).  For one
    output and ``cat_smooth=0`` this finds the best set of all, unless `min_samples_leaf` forbids some of the
    cuts.  With several outputs categories are sorted along the direction in which their means differ most,
    and a better set may exist.

    Sets of many categories fit noise.  A column with ten categories or more (or with more than `max_bins`)
    becomes a number: the mean of the loss's gradient over the rows of a category, when training begins, with
    ten rows of the mean of all rows added.  A training row never sees its own target: rows are dealt into
    five parts by a hash of their inputs, and a row gets the mean of the other parts.  Where a category
    determines all inputs, and categories are not rare, it is the mean of all its rows.  Categories that were
    not seen in training have the mean of all rows; missing values go to the better side.  A loss with several
    outputs has up to three such numbers for a column, along the directions in which the means differ most.
    The objective in training is that at the numbers of the other parts: at the training rows predictions
    have another one.

    Parameters
    ----------
    max_leaves : int or "auto", default="auto"
        Number of leaves at most.  "auto" is 15 for two classes, 31 otherwise.
    max_depth : int, default=None
        Number of splits on the way to a leaf at most.  None: no limit but `max_leaves`.
    min_samples_leaf : float, default=10
        Number of rows in a leaf at least.  A row counts as often as its sample weight says; weights whose
        mean is below 1, such as shares, are first scaled to mean 1.  Weights that are multiples of a common
        unit (whole numbers, say) are counted exactly, so a row of weight 2 is the row twice.  Other weights
        are rounded to nine digits of their sum.
    reg_lambda : float, default=0.0
        L2 penalty on the values of leaves, in rows: a leaf's value is the sum of its targets divided by its
        number of rows plus `reg_lambda`.  Small leaves are shrunken most.
    min_split_gain : float, default=0.0
        Decrease of the weighted squared error that a split must bring at least.
    newton : bool, default=True
        Whether a split gains what Newton steps in its leaves bring, the squared sum of the gradients divided
        by the sum of the second derivatives, as in XGBoost and LightGBM; else what means bring, the squared
        sum divided by the number of rows.  Only where leaves are refitted (``step="refit"``) and the loss has
        second derivatives (logistic, softmax, exponential, Poisson).  In `min_samples_leaf`, `reg_lambda` and
        `cat_smooth` a row then counts by its second derivative, relative to the mean of all rows, between 0.1
        and 4: a leaf of rows that the model is sure of must be larger.
    cat_smooth : float, default=10.0
        Rows of a node's mean that are added to each of its categories before they are sorted; the same
        number is added to `reg_lambda` when a split on categories is compared with others.
    splits : {"auto", "best", "random", "mixed"}, default="auto"
        "best": the best of all cuts.  "random": for each column of a node one cut is drawn, and the best of
        these is taken (extremely randomised trees).  "mixed": a quarter of the trees, drawn by lot, have the
        best cuts, the others random ones.  "auto" is "mixed".
    subsample : float, default=1.0
        Share of the rows that a tree is grown on, drawn anew for each tree; a ranker draws whole queries.
        Copies of a row are drawn together.  The values of the leaves are those of all rows.
    colsample_bytree : float, default=1.0
        Share of the columns that a tree is grown on, drawn anew for each tree.
    max_bins : int, default=255
        Number of bins of a column at most, without the one for missing values; 255 is the most.  Sparse
        inputs are written out, one byte per entry.
    monotone_constraints : dict or sequence, default=None
        For each column 1 (predictions must not fall when it rises), -1 (must not rise) or 0.  A dict may
        leave columns out, and its keys may be names or numbers of columns.  Constraints hold exactly, for any
        loss and any values of the other columns; not for missing values, nor for categorical columns.

    Examples
    --------
    >>> from convexboost import ConvexBoostRegressor
    >>> from convexboost.learners import Tree
    >>> model = ConvexBoostRegressor(learner=Tree(max_leaves=15, subsample=0.8))
    >>> model.get_params()["learner__max_leaves"]
    15

    """

    max_leaves: int | str = "auto"
    max_depth: int | None = None
    min_samples_leaf: float = 10
    reg_lambda: float = 0.0
    min_split_gain: float = 0.0
    newton: bool = True
    cat_smooth: float = 10.0
    splits: str = "auto"
    subsample: float = 1.0
    colsample_bytree: float = 1.0
    max_bins: int = MAX_BINS
    monotone_constraints: Any = None

    name: ClassVar[str] = "tree"
    #: docs/generalisation.md has the evidence.  Losses that reweight rows must be allowed to rise at times,
    #: to leave a kink.
    auto = Defaults(
        step="refit:0.1",
        steps_of_members={
            "classification": "refit:0.15",
            "ranking": "refit:0.15",
            "regression": "refit:0.2",
        },
        reweighting_step="polyak:0.05",
        early_patience=5,
        decay=0.7,
        envelopes={"classification": 3.0, "regression": 10.0},
    )
    allows_missing = allows_sparse = True
    uses_categories = uses_targets = spreads_rows = True
    mapper_type = RowMapper
    hypothesis_types = (TreeFunction,)

    def __post_init__(self) -> None:
        def need(name: str, fine: bool, wanted: str) -> None:
            if not fine:
                raise ValueError(f"`{name}` of a tree must be {wanted}, got {getattr(self, name)!r}")

        need("newton", isinstance(self.newton, bool), "True or False")
        leaves, depth, bins = self.max_leaves, self.max_depth, self.max_bins
        fine = leaves == "auto" if isinstance(leaves, str) else isinstance(leaves, Integral) and leaves >= 2
        need("max_leaves", fine, "an integer of at least 2, or 'auto'")
        fine = depth is None or (isinstance(depth, Integral) and depth >= 1)
        need("max_depth", fine, "a positive integer or None")
        for name in ("min_samples_leaf", "reg_lambda", "min_split_gain", "cat_smooth"):
            value = getattr(self, name)
            fine = isinstance(value, Real) and 0 <= float(value) < math.inf
            need(name, fine, "a number that is not negative")
        for name in ("subsample", "colsample_bytree"):
            value = getattr(self, name)
            need(name, isinstance(value, Real) and 0 < float(value) <= 1, "in (0, 1]")
        fine = self.splits in ("auto", "best", "random", "mixed")
        need("splits", fine, "'auto', 'best', 'random' or 'mixed'")
        fine = isinstance(bins, Integral) and 2 <= bins <= MAX_BINS
        need("max_bins", fine, f"between 2 and {MAX_BINS}")
        given = self.monotone_constraints
        fine = given is None or isinstance(given, Mapping) or np.ndim(given) == 1
        signs = given.values() if isinstance(given, Mapping) else () if given is None or not fine else given
        fine = fine and all(isinstance(sign, Integral) and int(sign) in (-1, 0, 1) for sign in signs)
        wanted = "a dict from columns, or a sequence with an entry for each, to -1, 0 or 1"
        need("monotone_constraints", fine, wanted)

    def settled(self, task: str, n_outputs: int) -> Self:
        """Return the learner with `max_leaves` and `splits` settled.

        Random cuts and small trees make better probabilities.  Where classes have sharp borders some trees
        need the best cuts, and a tree that serves several outputs needs more leaves.  (Figures:
        docs/decisions.md, Trees.)
        """
        leaves = FEW_LEAVES if task == "classification" and n_outputs == 1 else LEAVES
        return replace(
            self,
            max_leaves=leaves if self.max_leaves == "auto" else self.max_leaves,
            splits="mixed" if self.splits == "auto" else self.splits,
        )

    def stronger(self) -> Tree:
        """Return the learner of trees that are some levels deeper."""
        leaves = 2**MORE_LEVELS * self.n_leaves
        depth = None if self.max_depth is None else int(self.max_depth) + MORE_LEVELS
        return replace(self, max_leaves=leaves, max_depth=depth)

    @property
    def n_leaves(self) -> int:
        """Return the number of leaves at most."""
        return LEAVES if isinstance(self.max_leaves, str) else int(self.max_leaves)

    def weaker(self) -> str:
        """Return stumps."""
        return "stump"

    def signs(self, categorical: NDArray[np.bool_], names: Any = None) -> NDArray[np.int64]:
        """Return how the *gradient* must move along each feature: against the predictions."""

        def need(fine: bool, text: str) -> None:
            if not fine:
                raise ValueError(f"`monotone_constraints` of a tree {text}")

        given, n_features = self.monotone_constraints, len(categorical)
        signs = np.zeros(n_features, np.int64)
        if given is None:
            return signs
        if not isinstance(given, Mapping):
            need(len(given) == n_features, f"must have {n_features} entries, got {len(given)}")
        numbers = {} if names is None else {name: j for j, name in enumerate(names)}
        seen = set()
        for column, sign in given.items() if isinstance(given, Mapping) else enumerate(given):
            if isinstance(column, str):
                need(column in numbers, f"names column {column!r}, which `X` does not have")
            j = numbers[column] if isinstance(column, str) else column
            fine = isinstance(j, Integral) and 0 <= int(j) < n_features
            need(fine, f"must name columns between 0 and {n_features - 1}, got {j!r}")
            name = str(j) if names is None else repr(str(names[j]))
            need(sign == 0 or not categorical[j], f"names column {name}, which is categorical")
            need(j not in seen, f"names column {name} twice: by name and by number")
            seen.add(j)
            signs[j] = -sign
        return signs

    def mapper(self, X: Any, space: FunctionSpace, categorical: Any = None, n_threads: int = 1) -> RowMapper:
        """Choose the bins of the columns."""
        X = as_columns(X)
        mask = categorical_mask(categorical, X.shape[1])
        return RowMapper(BinMapper.fit(X, space, self.max_bins, mask, n_threads))

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
        targets: Any = None,
    ) -> TreeSet:
        """Bin the training inputs, anew or by the `mapper` of a model.

        `monotone_constraints` may use the `names`; with `groups` `subsample` draws whole groups.  With
        `targets` categorical columns with many levels become numbers; these are added to the `mapper`, if
        one is given, and trees do not split statistics that it already has.
        """
        X = as_columns(X)
        if mapper is None:
            mapper = self.mapper(X, space, categorical, n_threads)
        if targets is None:
            return TreeSet(self, mapper, mapper.encode(X, n_threads), space, groups, names)
        mapper, inputs, usable = mapper.with_statistics(X, targets, space, self.max_bins, n_threads, groups)
        return TreeSet(self, mapper, inputs, space, groups, names, usable)
