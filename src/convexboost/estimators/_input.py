"""From what a user gives to fit and predict (X, y, weights, groups, offsets) to checked arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Real
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import get_tags
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    _num_samples,
    check_array,
    check_consistent_length,
    check_random_state,
    validate_data,
)

from convexboost.core.communicator import ALONE, Communicator
from convexboost.core.space import Array, FunctionSpace, in_range
from convexboost.core.sums import total
from convexboost.estimators import _validation
from convexboost.estimators._frames import (
    Cells,
    Columns,
    column_names,
    has_times,
    is_frame,
    is_missing,
    naming,
    unmasked,
)
from convexboost.estimators._parameters import EstimatorParameters
from convexboost.kernels.hashing import signature
from convexboost.losses._groups import Groups
from convexboost.losses._loss import Loss
from convexboost.losses._objective import BoundLoss


class Given(NamedTuple):
    """The arguments of `fit`, as they were given."""

    X: Any
    y: Any
    sample_weight: Any = None
    X_val: Any = None
    y_val: Any = None
    offset: Any = None
    groups: Any = None
    groups_val: Any = None
    sample_weight_val: Any = None
    offset_val: Any = None
    eval_set: Any = None
    communicator: Communicator = ALONE  #: where the rows are spread over processes, the way to the others


class UnseenRows(NamedTuple):
    """Rows that are not trained on, as they were given."""

    named: Callable[[str], str]  #: from an argument of `fit` to what the user calls it for these rows
    X: Any
    y: Any
    sample_weight: Any = None
    offset: Any = None
    groups: Any = None


class Rows(NamedTuple):
    """What has one entry per sample."""

    X: Any
    y: Any
    weight: Array | None
    offset: Array | None
    groups: Groups | None = None
    sample_weight: Array | None = None  #: `weight` without the weights of classes
    rows_per_weight: float = 1.0  #: how many rows a weight of 1 counts as
    communicator: Communicator = ALONE  #: the way to other rows

    def take(self, which: Any) -> Rows:
        """Return some of the rows."""
        found = (None if part is None else part[which] for part in self[:-2])
        return Rows(*found, *self[-2:])  # type: ignore[arg-type, call-arg]

    def that_count(self) -> Rows:
        """Return the rows with a weight."""
        return self if self.weight is None or (self.weight > 0).all() else self.take(self.weight > 0)

    def weighed(self, share: Array) -> Rows:
        """Return the rows with these shares of their weights, without those that have none.

        `share` has one entry per row, or one row of such entries for each of several parts, whose rows come
        one after the other.
        """
        rows = self.take(np.nonzero(share)[-1])
        part = share[share > 0.0]
        if not self.communicator.any((part != 1.0).any()):
            return rows
        return rows._replace(
            weight=part if rows.weight is None else rows.weight * part,
            sample_weight=part if rows.sample_weight is None else rows.sample_weight * part,
        )

    def bind(self, loss: Loss, n_classes: int | None) -> BoundLoss:
        """Make the objective on these rows."""
        space = FunctionSpace.of(self.X.shape[0], self.weight, self.rows_per_weight, self.communicator)
        return loss.bind(self.y, space, n_classes, self.groups)

    def signature(self, columns: Any) -> int:
        """Return a number that tells these inputs with some columns from others; order does not matter."""
        here = np.array([signature(self.X, columns)], np.uint64)
        return int(self.communicator.add(here)[0])

    def counted(self) -> Rows:
        """Let weights that are below 1 on average, which are shares, count as a row on average."""
        if self.weight is None:
            return self
        n_rows = total(np.array([len(self.weight)]), self.communicator)
        return self._replace(rows_per_weight=max(1.0, n_rows / total(self.weight, self.communicator)))


class Data(NamedTuple):
    """The rows of a fit."""

    whole: Rows  #: all of them
    train: Rows  #: those to train on
    held_out: Rows | None  #: those to validate on
    n_classes: int | None
    seed: int  #: of what is drawn in training
    watched: Mapping[str, Rows] = MappingProxyType({})  #: the sets of `eval_set`


class EstimatorInput(EstimatorParameters):
    """Reads and checks what `fit`, `predict` and `certify` are given; the subclasses say what targets are."""

    _columns: Columns
    _group_parameter = "groups"
    _positional: tuple[str, ...] = ("X", "y", "sample_weight")  #: arguments of `fit`, in a set of `eval_set`

    def _read(self, given: Given, loss: Loss, random_state: Any) -> Data:
        """Check the arguments of `fit`, and hold out rows where `early_stopping` says so."""
        groups = self._groups(loss, given.groups, given.X)
        whole, n_classes = self._training_rows(given, groups)
        with naming("random_state"):
            rng = check_random_state(random_state)
        train, held_out = whole, None
        validation = self._validation_arguments(given)
        if validation is not None:
            held_out = self._unseen_rows(validation, whole, loss)
        elif self._holds_out:
            train, held_out = self._hold_out(whole, loss, rng)
        watched = {
            name: self._unseen_rows(rows, whole, loss) for name, rows in self._sets_of(given.eval_set).items()
        }
        return Data(whole, train, held_out, n_classes, rng.randint(2**31), watched)

    def _training_rows(self, arguments: Given, groups: Groups | None) -> tuple[Rows, int | None]:
        """Check everything that has a row per sample; rows of zero weight are not part of the space."""
        X, y, communicator = arguments.X, arguments.y, arguments.communicator
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        X = as_columns(X)
        self._columns, cells = Columns.learn(X, self.categorical_features, communicator)
        X = self._check_inputs(X, reset=True, cells=cells)
        with naming("y"):
            y = self._check_targets(unmasked(y))
            check_consistent_length(X, y)
        given = offset = None
        if arguments.sample_weight is not None:
            given = check_weight(arguments.sample_weight, X, communicator=communicator)
        if arguments.offset is not None:
            offset = check_offset(arguments.offset, X.shape[0])
        self._learn_class_weights(y, given, communicator)
        weight = self._weigh_classes(y, given)
        rows = Rows(X, y, weight, offset, groups, given, communicator=communicator).that_count()
        targets, n_classes = self._encode_targets(rows.y, communicator)
        return rows._replace(y=targets).counted(), n_classes

    def _validation_arguments(self, given: Given) -> UnseenRows | None:
        """Return what ends with `_val`; None where there is no `X_val`."""
        found = UnseenRows(
            "{}_val".format,
            given.X_val,
            given.y_val,
            given.sample_weight_val,
            given.offset_val,
            given.groups_val,
        )
        if (given.X_val is None) != (given.y_val is None):
            missing = "y_val" if given.y_val is None else "X_val"
            raise ValueError(f"`X_val` and `y_val` go together, but `{missing}` is missing")
        if given.X_val is not None:
            return found
        for name, value in (
            ("sample_weight", found.sample_weight),
            ("offset", found.offset),
            (self._group_parameter, found.groups),
        ):
            if value is not None:
                raise ValueError(f"`{name}_val` would be ignored: `X_val` is missing")
        return None

    def _sets_of(self, eval_set: Any) -> dict[str, UnseenRows]:
        """Return the sets of `eval_set` by name."""
        if isinstance(eval_set, list | tuple):
            sets = {f"validation_{k}": (f"eval_set[{k}]", rows) for k, rows in enumerate(eval_set)}
        elif isinstance(eval_set, dict):
            sets = {name: (f"eval_set[{name!r}]", rows) for name, rows in eval_set.items()}
        elif eval_set is None:
            return {}
        else:
            raise ValueError(
                "`eval_set` must be a list of sets or a dict of names and sets, got "
                f"{type(eval_set).__name__}"
            )
        return {name: self._set_of(label, rows) for name, (label, rows) in sets.items()}

    def _set_of(self, label: str, rows: Any) -> UnseenRows:
        known = dict.fromkeys((*self._positional, "offset", self._group_parameter))
        if isinstance(rows, tuple) and 2 <= len(rows) <= len(self._positional):
            rows = dict(zip(self._positional, rows, strict=False))
        elif not isinstance(rows, dict):
            got = f"{len(rows)} entries" if isinstance(rows, tuple) else type(rows).__name__
            raise ValueError(
                f"`{label}` must be a tuple ({', '.join(self._positional)}), of which the first two are "
                f"needed, or a dict with these names, got {got}"
            )
        for name in rows:
            if name not in known:
                raise ValueError(f"`{label}` must hold {', '.join(known)}, got {name!r}")
        for name in ("X", "y"):
            if rows.get(name) is None:
                raise ValueError(f"`{label}` needs `{name}`")
        rows = known | rows
        return UnseenRows(
            lambda name: f"{name} of {label}",
            rows["X"],
            rows["y"],
            rows["sample_weight"],
            rows["offset"],
            rows[self._group_parameter],
        )

    def _unseen_rows(self, given: UnseenRows, whole: Rows, loss: Loss) -> Rows:
        """Check rows that are not trained on; they need all that the training rows have, but for weights."""
        named = given.named
        for name, value, trained in (
            ("offset", given.offset, whole.offset),
            (self._group_parameter, given.groups, whole.groups),
        ):
            if value is not None and trained is None:
                raise ValueError(f"`{named(name)}` would be ignored: `{name}` is missing")
            if value is None and trained is not None:
                raise ValueError(f"`{named(name)}` is missing: `{name}` of the rows in `{named('X')}`")
        X = self._check_inputs(given.X, parameter=named("X"))
        with naming(named("y")):
            targets = self._encode_validation_targets(unmasked(given.y), named("y"))
        n_samples = X.shape[0]
        if n_samples != len(targets):
            raise ValueError(
                f"`{named('y')}` must have {n_samples} rows like `{named('X')}`, got {len(targets)}"
            )
        weight = offset = groups = None
        if given.sample_weight is not None:
            weight = check_weight(given.sample_weight, X, named("sample_weight"), whole.communicator)
        if given.offset is not None:
            offset = check_offset(given.offset, n_samples, named("offset"), named("X"))
        if given.groups is not None:
            groups = self._groups(loss, given.groups, X, named)
        weights = self._weigh_classes(given.y, weight)
        rows = Rows(X, targets, weights, offset, groups, weight, communicator=whole.communicator)
        return rows.that_count()

    def _hold_out(self, rows: Rows, loss: Loss, rng: Any) -> tuple[Rows, Rows]:
        """Hold out rows, or whole groups where the rows of a group only make sense together."""
        if rows.groups is not None and loss.whole_groups:
            held = _validation.held_out_groups(rows.groups.numbers, self.validation_fraction, rng)
        else:
            classes = rows.y if self._task == "classification" else None
            held = _validation.held_out_rows(len(rows.y), self.validation_fraction, classes, rng)
        return rows.take(held[0]), rows.take(held[1])

    def _groups_that_count(self, rows: Rows) -> NDArray[np.bool_]:
        """Return for each group number whether the group can validate."""
        assert rows.groups is not None
        return np.ones(int(rows.groups.numbers.max(initial=-1)) + 1, bool)

    def _has_whole_groups(self, rows: Rows, loss: Loss) -> bool:
        return rows.groups is not None and (self._task == "ranking" or loss.whole_groups)

    def _check_inputs(
        self, X: Any, *, reset: bool = False, parameter: str = "X", cells: list[Cells] | None = None
    ) -> Any:
        """Return X as numbers; `cells` are its columns, if they have been read."""
        if not reset and self._is_checked(X):
            return X
        tags = get_tags(self).input_tags
        options: dict[str, Any] = {
            "accept_sparse": ["csr", "csc"] if tags.sparse else False,
            "dtype": np.float64,
            "ensure_all_finite": "allow-nan" if tags.allow_nan else True,
        }
        X = as_columns(X, parameter)
        with naming(parameter):
            return self._read_inputs(X, parameter, reset, options, cells)

    def _is_checked(self, X: Any) -> bool:
        """Return whether X is an array of finite floats, as wide as that of the fit: no check can fail.

        scikit-learn's checks take longer than the prediction of a row.
        """
        if type(X) is not np.ndarray or X.dtype != np.float64 or X.ndim != 2 or len(X) == 0:
            return False
        if X.shape[1] != self.n_features_in_ or "feature_names_in_" in vars(self) or not self._columns.plain:
            return False
        with np.errstate(over="ignore", invalid="ignore"):
            return bool(np.isfinite(X.sum()))

    def _read_inputs(
        self, X: Any, parameter: str, reset: bool, options: dict[str, Any], cells: list[Cells] | None
    ) -> Any:
        if self._columns.plain and not is_frame(X) and not has_times(X):
            if parameter == "X":
                return validate_data(self, X, reset=reset, **options)
            _check_feature_names(self, X, reset=False)
            if X.shape[1] != self.n_features_in_:
                raise ValueError(f"`{parameter}` must have {self.n_features_in_} features, got {X.shape[1]}")
            return check_array(X, estimator=self, input_name=parameter, **options)
        column_names(X)
        _check_feature_names(self, X, reset=reset)
        _check_n_features(self, X, reset=reset)
        encoded = self._columns.encode(X, parameter, cells)
        return check_array(encoded, estimator=self, input_name=parameter, **options)

    def _groups(self, loss: Loss, groups: Any, X: Any, named: Callable[[str], str] = str) -> Groups | None:
        """Check the labels of the groups; a loss that needs none must not be given any, and vice versa."""
        name = named(self._group_parameter)
        if groups is None:
            if loss.needs_groups:
                raise ValueError(f"`{name}` is needed by the loss {loss}: one label per row")
            return None
        if not loss.takes_groups:
            raise ValueError(f"`{name}` was given, but the loss {loss} does not use it")
        return Groups(check_labels(groups, name, n_rows(X)))

    def _n_classes(self) -> int | None:
        return None

    def _weigh_classes(self, y: Any, weight: Any) -> Any:
        """Multiply the weights of the rows by those of their classes, where there are such."""
        return weight

    def _learn_class_weights(self, y: Any, weight: Array | None, communicator: Communicator) -> None:
        """Find the weights of the classes from the training rows."""

    def _check_targets(self, y: Any) -> Any:
        raise NotImplementedError

    def _encode_targets(self, y: Any, communicator: Communicator) -> tuple[Any, int | None]:
        raise NotImplementedError

    def _encode_validation_targets(self, y: Any, parameter: str = "y_val") -> Any:
        raise NotImplementedError

    def _decode_targets(self, y: Any) -> Any:
        """Return encoded targets in the form in which they were given to `fit`."""
        raise NotImplementedError


def as_columns(X: Any, parameter: str = "X") -> Any:
    """Return lists and such as arrays; what has columns already stays as it is."""
    if is_frame(X) or sp.issparse(X) or (isinstance(X, np.ndarray) and X.ndim == 2):
        return unmasked(X)
    with naming(parameter):
        return check_array(X, dtype=None, ensure_all_finite=False, accept_sparse=True)


def n_rows(X: Any) -> int:
    with naming("X"):
        return int(_num_samples(X))


def check_weight(
    given: Any, X: Any, name: str = "sample_weight", communicator: Communicator = ALONE
) -> Array:
    n_samples, weight = n_rows(X), unmasked(given)
    with naming(name):
        if isinstance(weight, Real):
            weight = np.full(n_samples, float(weight))
        weight = check_array(weight, ensure_2d=False, dtype=np.float64, input_name=name)
    if weight.shape != (n_samples,):
        raise ValueError(f"`{name}` must have shape ({n_samples},) like the rows of `X`, got {weight.shape}")
    if (weight < 0).any():
        raise ValueError(f"`{name}` must not be negative, got {weight.min():g}")
    if not communicator.any((weight > 0).any()):
        raise ValueError(f"`{name}` must not be all zero")
    return in_range(weight, communicator)


def check_labels(given: Any, name: str, n_rows: int) -> NDArray[Any]:
    labels = np.asarray(given)
    if labels.shape != (n_rows,):
        raise ValueError(f"`{name}` must have shape ({n_rows},) like the rows of `X`, got {labels.shape}")
    if any(map(is_missing, labels)) if labels.dtype == object else (labels != labels).any():
        raise ValueError(f"`{name}` must not contain missing labels")
    return labels


def check_offset(offset: Any, n_samples: int, name: str = "offset", inputs: str = "X") -> Array:
    with naming(name):
        offset = check_array(unmasked(offset), ensure_2d=False, dtype=np.float64, input_name=name)
    if len(offset) != n_samples:
        raise ValueError(f"`{name}` must have {n_samples} rows like `{inputs}`, got {len(offset)}")
    return np.asarray(offset.reshape(n_samples, -1))


def check_columns(offset: Array | None, n_outputs: int, name: str = "offset") -> None:
    if offset is not None and offset.shape[1] != n_outputs:
        columns = "1 column" if n_outputs == 1 else f"{n_outputs} columns"
        raise ValueError(f"`{name}` must have {columns}, got {offset.shape[1]}")
