"""Trees as an operator of ONNX.

`TreeEnsemble` (ai.onnx.ml 5) computes in doubles and knows sets of categories, but a leaf has one number:
with several outputs the trees are written once for each.  `TreeEnsembleRegressor` (ai.onnx.ml 3) has a
vector in each leaf, compares and adds doubles, and rounds the sum to a float.  It has no sets, and chains of
comparisons, which would stand for them, gave other scores in onnxruntime 1.31.  Hence vectors are written
for inputs that are floats where there are several outputs and no splits on categories, numbers elsewhere.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, helper, numpy_helper

from convexboost.core.nodes import Nodes
from convexboost.core.space import Array

#: The domain of the operators.
ML = "ai.onnx.ml"
#: Numbers of the modes of `TreeEnsemble`.
LEQ, MEMBER = 0, 6


class Tests(NamedTuple):
    """What each split asks; the answer "yes" leads to `true`."""

    is_set: NDArray[np.bool_]  #: whether it asks for a set of categories, else for a number up to `cut`
    cut: Array
    sets: list[Array]  #: of each split; empty where there is a cut
    true: NDArray[np.int64]
    false: NDArray[np.int64]
    missing_true: NDArray[np.bool_]


def constant_of(nodes: Nodes) -> Array:
    """Return the start plus the trees that are one leaf."""
    alone = nodes.leaf[nodes.roots]
    return np.asarray(nodes.start + nodes.values[alone[alone >= 0]].sum(axis=0))


def has_vectors(nodes: Nodes) -> bool:
    """Return whether leaves can be vectors, in `TreeEnsembleRegressor`."""
    return nodes.values.shape[1] > 1 and not (nodes.level_set >= 0).any()


def ensemble(nodes: Nodes, source: str, target: str, uses_vectors: bool) -> NodeProto:
    """Return the operator that adds up the trees that have splits."""
    return (_with_vectors if uses_vectors else _with_numbers)(nodes, source, target)


def _tests(nodes: Nodes, splits: NDArray[np.intp]) -> Tests:
    """Say what the splits ask.  Sets hold known categories, so that unseen ones answer "no"."""
    is_set = nodes.level_set[splits] >= 0
    sets, swapped = [], np.zeros(len(splits), bool)
    for i, node in enumerate(splits):
        if not is_set[i]:
            sets.append(np.empty(0))
            continue
        going_left = nodes.levels_of(int(node))
        swapped[i] = nodes.unseen_left[node]
        sets.append(
            np.setdiff1d(nodes.levels[int(nodes.column[node])], going_left) if swapped[i] else going_left
        )
    never = is_set & np.array([len(one) == 0 for one in sets], bool)
    left, right = (side[splits].astype(np.int64) for side in (nodes.left, nodes.right))
    return Tests(
        is_set=is_set & ~never,
        cut=np.where(is_set, -np.inf, nodes.cut[splits]),  # no number is below −∞: nothing is in an empty set
        sets=sets,
        true=np.where(swapped, right, left),
        false=np.where(swapped, left, right),
        missing_true=nodes.missing_left[splits] != swapped,
    )


def _with_numbers(nodes: Nodes, source: str, target: str) -> NodeProto:
    """Write the trees once for each output."""
    splits, leaves = np.flatnonzero(~nodes.is_leaf), np.flatnonzero(nodes.is_leaf)
    n_outputs = nodes.values.shape[1]
    place = np.empty(len(nodes), np.int64)
    place[splits], place[leaves] = np.arange(len(splits)), np.arange(len(leaves))
    tests = _tests(nodes, splits)
    sets = [part for one, s in zip(tests.is_set, tests.sets, strict=True) if one for part in (s, [np.nan])]
    members = {"membership_values": numpy_helper.from_array(np.tile(np.concatenate([*sets, []]), n_outputs))}
    roots = nodes.roots

    def copies(numbers: NDArray[Any], size: int) -> list[int]:
        """Return the places of the first output, then those of the others, `size` further each."""
        return (np.arange(n_outputs)[:, None] * size + numbers).ravel().tolist()

    def children(ends: NDArray[np.int64]) -> list[int]:
        sizes = np.where(nodes.is_leaf[ends], len(leaves), len(splits))
        return (np.arange(n_outputs)[:, None] * sizes + place[ends]).ravel().tolist()

    return helper.make_node(
        "TreeEnsemble",
        [source],
        [target],
        domain=ML,
        n_targets=n_outputs,
        aggregate_function=1,  # sum
        post_transform=0,  # none
        tree_roots=copies(place[roots[~nodes.is_leaf[roots]]], len(splits)),
        nodes_modes=numpy_helper.from_array(
            np.tile(np.where(tests.is_set, MEMBER, LEQ), n_outputs).astype(np.uint8)
        ),
        nodes_splits=numpy_helper.from_array(np.tile(np.where(tests.is_set, 0.0, tests.cut), n_outputs)),
        nodes_featureids=copies(nodes.column[splits], 0),
        nodes_truenodeids=children(tests.true),
        nodes_trueleafs=copies(nodes.is_leaf[tests.true].astype(int), 0),
        nodes_falsenodeids=children(tests.false),
        nodes_falseleafs=copies(nodes.is_leaf[tests.false].astype(int), 0),
        nodes_missing_value_tracks_true=copies(tests.missing_true.astype(int), 0),
        leaf_targetids=np.repeat(np.arange(n_outputs), len(leaves)).tolist(),
        leaf_weights=numpy_helper.from_array(
            np.ascontiguousarray(nodes.values[nodes.leaf[leaves]].T).ravel()
        ),
        **(members if sets else {}),
    )


def _with_vectors(nodes: Nodes, source: str, target: str) -> NodeProto:
    """Write the trees once; a leaf has a number for each output."""
    n_outputs = nodes.values.shape[1]
    is_alone = np.zeros(len(nodes), bool)
    is_alone[nodes.roots] = nodes.is_leaf[nodes.roots]
    kept, leaves = np.flatnonzero(~is_alone), np.flatnonzero(nodes.is_leaf & ~is_alone)
    is_leaf = nodes.is_leaf[kept]
    place = np.cumsum(~is_alone) - 1  # numbers must be below that of all nodes

    def of_splits(values: NDArray[Any]) -> list[int]:
        return np.where(is_leaf, 0, values[kept]).tolist()

    return helper.make_node(
        "TreeEnsembleRegressor",
        [source],
        [target],
        domain=ML,
        n_targets=n_outputs,
        aggregate_function="SUM",
        post_transform="NONE",
        nodes_treeids=nodes.tree[kept].tolist(),
        nodes_nodeids=place[kept].tolist(),
        nodes_modes=np.where(is_leaf, "LEAF", "BRANCH_LEQ").tolist(),
        nodes_values_as_tensor=numpy_helper.from_array(np.where(is_leaf, 0.0, nodes.cut[kept])),
        nodes_featureids=of_splits(nodes.column),
        nodes_truenodeids=of_splits(place[nodes.left]),
        nodes_falsenodeids=of_splits(place[nodes.right]),
        nodes_missing_value_tracks_true=of_splits(nodes.missing_left.astype(int)),
        target_treeids=np.repeat(nodes.tree[leaves], n_outputs).tolist(),
        target_nodeids=np.repeat(place[leaves], n_outputs).tolist(),
        target_ids=np.tile(np.arange(n_outputs), len(leaves)).tolist(),
        target_weights_as_tensor=numpy_helper.from_array(nodes.values[nodes.leaf[leaves]].ravel()),
    )
