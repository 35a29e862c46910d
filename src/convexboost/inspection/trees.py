"""What can be read off the nodes of a model: importances, text, a data frame, curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from convexboost.core.nodes import Nodes
from convexboost.core.space import Array
from convexboost.core.text import brief

#: What an importance can be, and what the numbers mean.
KINDS = {
    "gain": "gain of a split, on average",
    "total_gain": "gain of all splits",
    "splits": "number of splits",
    "cover": "rows at a split, on average",
    "total_cover": "rows at all splits",
}
#: The importance that rows are needed for.
CONTRIBUTION = "contribution"
#: Levels that the text of a tree shows at most; of longer sets it shows the number.
SHOWN_LEVELS = 6


@dataclass(frozen=True)
class Naming:
    """What a user calls the columns, the levels of categories and the outputs."""

    features: tuple[str, ...]
    outputs: tuple[str, ...]
    #: labels of levels, by the number of the column and of the level; numbers stand for themselves
    labels: Mapping[int, Sequence[Any]] = field(default_factory=dict, repr=False)

    __repr__ = brief

    def level(self, column: int, number: float) -> Any:
        """Return what the user calls a level."""
        if column in self.labels:
            return self.labels[column][int(number)]
        return int(number) if number == int(number) else number


def importances(nodes: Nodes, n_columns: int, kind: str) -> Array:
    """Return the importance of each column, by the splits on it."""
    if kind not in KINDS:
        raise ValueError(f"`kind` must be one of {', '.join([*KINDS, CONTRIBUTION])}, got {kind!r}")
    split = ~nodes.is_leaf
    column = nodes.column[split]
    count = np.bincount(column, minlength=n_columns).astype(float)
    if kind == "splits":
        return count
    measured = nodes.gain if kind.endswith("gain") else nodes.cover
    total = np.asarray(np.bincount(column, measured[split], minlength=n_columns), float)
    return total if kind.startswith("total") else total / np.maximum(count, 1.0)


def tree_text(nodes: Nodes, naming: Naming, tree: int) -> str:
    """Return a tree as indented text."""
    lines: list[str] = []
    waiting = [(int(nodes.roots[tree]), 0)]
    while waiting:
        node, depth = waiting.pop()
        rows = f"{nodes.cover[node]:,.6g} rows"
        if nodes.column[node] < 0:
            values = ", ".join(f"{value:.6g}" for value in nodes.values[nodes.leaf[node]])
            lines.append(f"{'  ' * depth}leaf {_number(nodes, node)}: {values}  ({rows})")
            continue
        text = f"{condition(nodes, naming, node)}  (gain {nodes.gain[node]:.4g}, {rows})"
        lines.append("  " * depth + text)
        waiting += [(int(nodes.right[node]), depth + 1), (int(nodes.left[node]), depth + 1)]
    return "\n".join(lines)


def condition(nodes: Nodes, naming: Naming, node: int) -> str:
    """Return what a value must fulfil to go left."""
    column = int(nodes.column[node])
    name, missing = naming.features[column], bool(nodes.missing_left[node])
    if nodes.level_set[node] < 0:
        if np.isposinf(nodes.cut[node]):
            return f"{name} is missing" if missing else f"{name} is not missing"
        return f"{name} <= {nodes.cut[node]:.6g}" + (" or missing" if missing else "")
    levels = nodes.levels_of(node)
    more = [
        text
        for text, goes in (("missing", missing), ("not seen in training", nodes.unseen_left[node]))
        if goes
    ]
    shown = [str(naming.level(column, level)) for level in levels[:SHOWN_LEVELS]]
    if len(levels) > SHOWN_LEVELS:
        shown.append(f"… {len(levels) - SHOWN_LEVELS} more")
    return " or ".join([f"{name} in {{{', '.join(shown)}}}", *more])


def _number(nodes: Nodes, node: int) -> int:
    """Return the number of a leaf within its tree."""
    root = nodes.roots[nodes.tree[node]]
    return int(np.sum(nodes.is_leaf[root:node]))


def tree_frame(nodes: Nodes, naming: Naming) -> Any:
    """Return the nodes as a pandas data frame, a row for each."""
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        raise ImportError("trees_to_dataframe needs pandas: pip install pandas") from error
    split, root = ~nodes.is_leaf, nodes.roots[nodes.tree]
    at = np.arange(len(nodes))
    has_levels = nodes.level_set >= 0

    def levels(node: int) -> list[Any]:
        return [naming.level(int(nodes.column[node]), level) for level in nodes.levels_of(node)]

    return pd.DataFrame(
        {
            "tree": nodes.tree,
            "node": at - root,
            "feature": [naming.features[j] if j >= 0 else None for j in nodes.column],
            "cut": nodes.cut,
            "levels": [levels(node) if has else None for node, has in enumerate(has_levels)],
            "missing_left": np.where(split, nodes.missing_left, False),
            "unseen_left": np.where(has_levels, nodes.unseen_left, False),
            "left": np.where(split, nodes.left - root, -1),
            "right": np.where(split, nodes.right - root, -1),
            "gain": nodes.gain,
            "cover": nodes.cover,
            **{
                f"value_{name}" if len(naming.outputs) > 1 else "value": np.where(
                    split, np.nan, nodes.values[nodes.leaf, k] if len(nodes.values) else np.nan
                )
                for k, name in enumerate(naming.outputs)
            },
        }
    )


@dataclass(frozen=True, eq=False)
class ShapeFunction:
    """The exact curve of one feature: what it adds to the scores, around its mean over the training rows.

    Numbers: values[i] holds from cuts[i − 1] (excluded) to cuts[i].  Categories: values[i] is that of
    levels[i].  A row's contribution of the feature is the value of the curve.
    """

    feature: str
    column: int
    values: Array  #: (n_pieces, n_outputs)
    missing: Array  #: (n_outputs,): where the feature is missing
    #: whether it was missing in training rows; False also where trees never keep these apart from all others
    saw_missing: bool
    cuts: Array | None = None  #: sorted; one less than pieces
    levels: tuple[Any, ...] | None = None

    __repr__ = brief


def shape_functions(nodes: Nodes, naming: Naming) -> list[ShapeFunction]:
    """Return the curves of a model whose trees split one column each, in the order of the columns."""
    split = ~nodes.is_leaf
    pairs = np.unique(np.column_stack([nodes.tree[split], nodes.column[split]]), axis=0)
    trees, counts = np.unique(pairs[:, 0], return_counts=True)
    if (counts > 1).any():
        raise ValueError(
            "`shape_functions` needs trees that split one column each, as learner='stump' or 'additive' has; "
            f"tree {trees[counts > 1][0]} splits {counts.max()}"
        )
    found = []
    for j in np.unique(pairs[:, 1]).tolist():
        own = pairs[pairs[:, 1] == j, 0]
        cuts = np.unique(nodes.cut[split & (nodes.column == j) & np.isfinite(nodes.cut)])
        levels = nodes.levels.get(j)
        if levels is None:
            after = np.nextafter(cuts[-1:], np.inf) if len(cuts) else np.zeros(1)
            points = np.concatenate([cuts, after, [np.nan]])
        else:
            points = np.append(levels, np.nan)
        X = np.full((len(points), len(naming.features)), np.nan)
        X[:, j] = points
        ends = nodes.apply(X)[:, own]
        values = nodes.values[nodes.leaf[ends]].sum(axis=1) - _mean(nodes, own)
        is_own = (ends[:-1] != ends[-1]).all(axis=0)  # trees that keep missing values apart from all others
        saw_missing = bool((is_own & (nodes.cover[ends[-1]] > 0.0)).any())
        if levels is None:
            more: dict[str, Any] = {"cuts": cuts}
        else:
            more = {"levels": tuple(naming.level(j, level) for level in levels)}
        found.append(ShapeFunction(naming.features[j], j, values[:-1], values[-1], saw_missing, **more))
    return found


def _mean(nodes: Nodes, trees: Any) -> Array:
    """Return the sum of the means of trees over the training rows."""
    leaves = nodes.is_leaf & np.isin(nodes.tree, trees)
    share = nodes.cover[leaves] / nodes.cover[nodes.roots[nodes.tree[leaves]]]
    return np.asarray(share @ nodes.values[nodes.leaf[leaves]])
