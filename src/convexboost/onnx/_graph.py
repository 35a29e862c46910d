"""A whole model in ONNX: from the user's columns to scores, predictions, probabilities and labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, checker, helper, numpy_helper

from convexboost.core.nodes import Nodes
from convexboost.onnx._trees import ML, constant_of, ensemble, has_vectors

#: Versions of the operators, those for trees of numbers and of vectors, and of the format.
OPSET, ML_NUMBERS, ML_VECTORS, IR_VERSION = 21, 5, 3, 10
#: Categories up to this number stand for themselves in sets.
MOST_CATEGORIES = 2**24


@dataclass(frozen=True)
class Input:
    """A column of X that is an input of its own."""

    name: str
    is_float: bool = True  #: an ordinary number; times need doubles
    categories: Sequence[str] | None = None  #: text, numbered in this order


@dataclass
class Graph:
    """Operators and constants, one after the other."""

    taken: frozenset[str]  #: names of inputs and outputs, which nothing inside may have
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)

    def add(
        self, operator: str, *inputs: str, name: str | None = None, domain: str = "", **arguments: Any
    ) -> str:
        """Append an operator; return the name of its output."""
        name = name or self.free(f"{operator.lower()}_{len(self.nodes)}")
        self.nodes.append(helper.make_node(operator, list(inputs), [name], domain=domain, **arguments))
        return name

    def constant(self, value: Any) -> str:
        """Add a constant; return its name."""
        name = self.free(f"constant_{len(self.constants)}")
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def free(self, name: str) -> str:
        """Return a name like this one that no input or output has."""
        while name in self.taken:
            name += "_"
        return name


def model_of(
    nodes: Nodes,
    *,
    n_features: int,
    inputs: Sequence[Input] | None,
    dtype: str,
    steps: Sequence[tuple[Any, ...]] | None,
    classes: Any = None,
    metadata: Mapping[str, str],
) -> ModelProto:
    """Return the model.

    `inputs` are columns with names and types; None: one matrix "X" of `dtype`.  `steps` lead from scores to
    predictions or probabilities (`Loss.link_steps`); None: there are only scores.  `classes` are the labels.
    """
    number = TensorProto.FLOAT if dtype == "float32" else TensorProto.DOUBLE
    n_outputs = len(nodes.start)
    linked_name = "prediction" if classes is None else "probabilities"
    names = [
        *(["label"] if classes is not None else []),
        *([linked_name] if steps is not None else []),
        "scores",
    ]
    graph = Graph(_distinct(inputs or [], names))
    if inputs is None:
        given = [helper.make_tensor_value_info("X", number, [None, n_features])]
        X = graph.add("Cast", "X", to=TensorProto.DOUBLE)
    else:
        given, X = _columns(graph, inputs, number)
    X, nodes = _numbered(graph, nodes, X, n_features)
    uses_vectors = dtype == "float32" and has_vectors(nodes)
    scores = _scores(graph, nodes, X, uses_vectors)
    outputs = []
    if classes is not None:
        label, kind = _labels(graph, scores, n_outputs, classes)
        outputs.append(helper.make_tensor_value_info(label, kind, [None]))
    if steps is not None:
        linked = scores
        for step, *arguments in steps:
            linked = _STEPS[step](graph, linked, *arguments)
        graph.add("Identity", linked, name=linked_name)
        width = n_outputs if classes is None else len(classes)
        outputs.append(helper.make_tensor_value_info(linked_name, TensorProto.DOUBLE, [None, width]))
    outputs.append(helper.make_tensor_value_info(scores, TensorProto.DOUBLE, [None, n_outputs]))
    proto = helper.make_graph(graph.nodes, "convexboost", given, outputs, graph.constants)
    version = ML_VECTORS if uses_vectors else ML_NUMBERS
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(ML, version)]
    model = helper.make_model(proto, opset_imports=opsets, ir_version=IR_VERSION, producer_name="convexboost")
    helper.set_model_props(model, dict(metadata))
    checker.check_model(model)
    return model


def _distinct(inputs: Sequence[Input], outputs: Sequence[str]) -> frozenset[str]:
    """Return the names of inputs and outputs, which must differ."""
    for one in inputs:
        if not one.name or one.name in outputs:
            raise ValueError(
                f"column {one.name!r} needs another name for ONNX: names must not be empty, nor those of the "
                f"outputs ({', '.join(outputs)})"
            )
    return frozenset([*(one.name for one in inputs), *outputs])


def _columns(graph: Graph, inputs: Sequence[Input], number: int) -> tuple[list[Any], str]:
    """Return the inputs, and the name of the matrix that they make."""
    given, columns = [], []
    for one in inputs:
        if one.categories is None:
            kind = number if one.is_float else TensorProto.DOUBLE
            columns.append(graph.add("Cast", one.name, to=TensorProto.DOUBLE))
        else:
            kind = TensorProto.STRING
            codes = graph.add(
                "LabelEncoder",
                one.name,
                domain=ML,
                keys_strings=list(one.categories),
                values_floats=np.arange(len(one.categories), dtype=float).tolist(),
                default_float=float("nan"),
            )
            columns.append(graph.add("Cast", codes, to=TensorProto.DOUBLE))
        given.append(helper.make_tensor_value_info(one.name, kind, [None, 1]))
    return given, graph.add("Concat", *columns, axis=1)


def _numbered(graph: Graph, nodes: Nodes, X: str, n_features: int) -> tuple[str, Nodes]:
    """Number the categories that a set cannot hold, in further columns; return these and the nodes for them.

    onnxruntime takes small whole numbers only.
    """
    has_set = nodes.level_set >= 0
    column, sets, levels = nodes.column.copy(), list(nodes.level_sets), dict(nodes.levels)
    more: list[str] = []
    for j in np.unique(nodes.column[has_set]).tolist():
        known = nodes.levels[j]
        if ((known == np.floor(known)) & (known >= 0) & (known < MOST_CATEGORIES)).all():
            continue
        own = has_set & (nodes.column == j)
        place = n_features + len(more)
        number = np.arange(len(known), dtype=float)
        codes = graph.add(
            "LabelEncoder",
            graph.add("Gather", X, graph.constant(np.array([j])), axis=1),
            domain=ML,
            keys_tensor=numpy_helper.from_array(np.append(known, np.nan)),
            values_tensor=numpy_helper.from_array(np.append(number, np.nan)),
            default_tensor=numpy_helper.from_array(np.array([-1.0])),  # not seen in training: in no set
        )
        more.append(codes)
        column[own], levels[place] = place, number
        for one in np.unique(nodes.level_set[own]):
            sets[one] = number[known.searchsorted(sets[one])]
    if not more:
        return X, nodes
    numbered = replace(nodes, column=column, level_sets=tuple(sets), levels=levels)
    return graph.add("Concat", X, *more, axis=1), numbered


def _scores(graph: Graph, nodes: Nodes, X: str, uses_vectors: bool) -> str:
    constant = graph.constant(constant_of(nodes))
    if nodes.is_leaf.all():  # as many zeros as there are rows
        first = graph.add("Gather", X, graph.constant(np.array([0])), axis=1)
        missing = graph.add("IsNaN", first)
        zeros = graph.add(
            "Mul", graph.add("Cast", missing, to=TensorProto.DOUBLE), graph.constant(np.zeros(1))
        )
        return graph.add("Add", zeros, constant, name="scores")
    trees = graph.free("trees")
    graph.nodes.append(ensemble(nodes, X, trees, uses_vectors))
    return graph.add("Add", graph.add("Cast", trees, to=TensorProto.DOUBLE), constant, name="scores")


def _labels(graph: Graph, scores: str, n_outputs: int, classes: Any) -> tuple[str, int]:
    """Return the name and type of the labels."""
    labels = _plain_labels(classes)
    if n_outputs == 1:
        positive = graph.add("Greater", scores, graph.constant(np.zeros(1)))
        winner = graph.add(
            "Squeeze", graph.add("Cast", positive, to=TensorProto.INT64), graph.constant(np.array([1]))
        )
    else:
        winner = graph.add("ArgMax", scores, axis=1, keepdims=0)
    kind = helper.np_dtype_to_tensor_dtype(labels.dtype)
    return graph.add("Gather", graph.constant(labels), winner, name="label"), kind


def _plain_labels(classes: Any) -> Any:
    """Return the labels as an array that ONNX has a type for."""
    values = np.asarray(classes).tolist()
    for kinds, dtype in (((bool,), bool), ((int,), np.int64), ((float, int), float), ((str,), object)):
        if all(type(value) in kinds for value in values):
            return np.array(values, dtype)
    raise ValueError(f"labels must be text, numbers or truth values for ONNX, got {values[0]!r}")


def _affine(graph: Graph, scores: str, A: Any, b: Any) -> str:
    if np.ndim(A) == 0:
        scores = graph.add("Mul", scores, graph.constant(np.array([float(A)])))
    else:
        scores = graph.add("MatMul", scores, graph.constant(np.ascontiguousarray(np.transpose(A), float)))
    return graph.add("Add", scores, graph.constant(np.atleast_1d(np.asarray(b, float))))


def _sigmoid(graph: Graph, scores: str) -> str:
    """Return the probabilities of two classes, from the score of the second."""
    return graph.add("Sigmoid", graph.add("Concat", graph.add("Neg", scores), scores, axis=1))


def _sort(graph: Graph, scores: str) -> str:
    shape = graph.add("Shape", scores, start=1)
    name, order = (graph.free(f"{what}_{len(graph.nodes)}") for what in ("sorted", "order"))
    node = helper.make_node("TopK", [scores, shape], [name, order], axis=1, largest=0, sorted=1)
    graph.nodes.append(node)
    return name


_STEPS: dict[str, Any] = {
    "affine": _affine,
    "times": lambda graph, scores, factor: graph.add(
        "Mul", scores, graph.constant(np.array([float(factor)]))
    ),
    "sigmoid": _sigmoid,
    "softmax": lambda graph, scores: graph.add("Softmax", scores, axis=1),
    "exp": lambda graph, scores: graph.add("Exp", scores),
    "sort": _sort,
}
