"""Costs learned from demonstrated paths."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from convexboost.boosting.options import Options
from convexboost.boosting.training import boost
from convexboost.core.atomic import fitting
from convexboost.core.model import AdditiveModel
from convexboost.core.space import Array
from convexboost.learners._specs import as_learner
from convexboost.planning.demonstrations import agreement, check_softness
from convexboost.planning.loss import Scene, maximum_margin
from convexboost.planning.maps import Map
from convexboost.planning.planners import Cell, Monotone, Path, Planner
from convexboost.registry import NamedParts

Demonstrations = Sequence[Sequence[Path]]


class MaxMarginPlanner(NamedParts, BaseEstimator):
    """Imitation of demonstrated paths: learns what a cell costs from its features.

    The demonstrated paths shall be cheaper than all others, by a margin that is the larger the further off
    those are; boosting minimises the convex objective of maximum margin planning over sums of weak learners.

    Parameters
    ----------
    planner : Planner or None, default=None
        Which paths there are, and how the cheapest is found: `Monotone` (None means this one), `Horizon`, or
        `Dijkstra`, which has no guarantees.
    learner : str, learner or scikit-learn estimator, default="network"
        The weak learner.  Only the cells on paths have a gradient that is not 0; the network draws half of
        the rows that it is trained on where the gradient is long.  ``Network(max_rows=6_000)`` is a little
        slower and better.
    algorithm : str or Algorithm, default="residual"
        "naive", "repeated", "residual" (Algorithms 1, 2 and 3 of Grubb and Bagnell), "dual_averaging" or
        "error_feedback".  The last two train as the theorems ask with every learner, trees too: the whole
        residual, no leaf refit, no envelope (docs/theory.md says what is proved, and what it costs).
    n_rounds : int, default=100
        The number of rounds.
    max_weak_learners : int or None, default=None
        The largest number of weak learners to train; None is no limit.  "repeated" trains t of them in round
        t, the other algorithms one per round.
    step : str or Step, default="auto"
        How far to go in a round: "constant", "inverse_sqrt", "inverse_time", "polyak", "adanorm",
        "line_search" or "refit"; a scale may follow ("inverse_sqrt:0.5").  "auto" is a decaying step that
        finds its scale by itself.
    output : {"best", "last", "average"}, default="best"
        Which iterate becomes the model: the best one (by validation where there is one that decides, else by
        the training objective), the last one, or the average of all.
    l2 : float, default=0.0
        Adds l2/2 ‖f − start‖² to the objective: a penalty on the costs of the cells.
    softness : float, default=1.0
        Cells nearer than this to a demonstrated path count as partly right; with 1 only its own cells are
        right.
    random_state : int, RandomState or None, default=None
        For learners that draw random numbers.  Give a number to get the same model again.
    callbacks : list of callables or None, default=None
        Each is called with a `Record` after every round (and for the start).  A true return value stops
        training; a string becomes `stop_reason_`.  Some are in `convexboost.callbacks`.

    Attributes
    ----------
    planner_ : Planner
        The planner that `planner` stands for.
    model_ : AdditiveModel
        The learned costs.
    history_ : dict of arrays
        One entry per round, entry 0 being the start; "objective" is R, "validation" is R on the validation
        maps.
    n_rounds_ : int
        The number of rounds that were trained.
    best_round_ : int
        The round with the best validation loss, or objective where there is no validation.
    stop_reason_ : str
        Why training stopped, in words.  Ctrl-C ends training too: the finished rounds are the model.
    stop_kind_ : str
        The same for programs: "rounds", "budget", "minimum", "gap", "converged", "no_change", "callback",
        "interrupted", "diverged" or "not_a_number".
    n_features_in_ : int
        The number of features of a cell.
    feature_names_in_ : array of str
        The names of the features.

    """

    def __init__(
        self,
        planner: Planner | None = None,
        *,
        learner: Any = "network",
        algorithm: Any = "residual",
        n_rounds: int = 100,
        max_weak_learners: int | None = None,
        step: Any = "auto",
        output: str = "best",
        l2: float = 0.0,
        softness: float = 1.0,
        random_state: Any = None,
        callbacks: Any = None,
    ) -> None:
        self.planner = planner
        self.learner = learner
        self.algorithm = algorithm
        self.n_rounds = n_rounds
        self.max_weak_learners = max_weak_learners
        self.step = step
        self.output = output
        self.l2 = l2
        self.softness = softness
        self.random_state = random_state
        self.callbacks = callbacks

    def fit(
        self,
        maps: Sequence[Map],
        demonstrations: Demonstrations,
        *,
        maps_val: Sequence[Map] | None = None,
        demonstrations_val: Demonstrations | None = None,
    ) -> Self:
        """Learn costs.

        Parameters
        ----------
        maps : sequence of Map
            With the same features.
        demonstrations : sequence of sequences of Path
            The paths demonstrated on each map.
        maps_val, demonstrations_val : optional
            Validation data: R is recorded there too, and "best" means best there.

        """
        with fitting(self):
            self._fit(maps, demonstrations, maps_val, demonstrations_val)
        return self

    def _fit(self, maps: Any, demonstrations: Any, maps_val: Any, demonstrations_val: Any) -> None:
        self._check_parameters()
        learner, options = as_learner(self.learner), self._options()
        self.planner_ = Monotone() if self.planner is None else self.planner
        self.feature_names_in_ = np.array(_sequence(maps, "maps")[0].names, dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        scenes = self._scenes(maps, demonstrations)
        if (maps_val is None) != (demonstrations_val is None):
            missing = "demonstrations_val" if demonstrations_val is None else "maps_val"
            raise ValueError(f"`maps_val` and `demonstrations_val` go together, but `{missing}` is missing")
        rng = check_random_state(self.random_state)

        objective = maximum_margin(scenes, self.planner_).with_l2(float(self.l2))
        hypotheses = learner.bind(np.concatenate([scene.features for scene in scenes]), objective.space)
        start, validation = objective.start(), None
        if maps_val is not None and demonstrations_val is not None:
            held_out = self._scenes(maps_val, demonstrations_val, "_val")
            inputs = hypotheses.mapper.prepare(np.concatenate([scene.features for scene in held_out]))
            validation = maximum_margin(held_out, self.planner_).scores(inputs, start)
        result = boost(
            objective,
            hypotheses,
            options,
            start=start,
            validation=validation,
            callbacks=self.callbacks or [],
            random_state=rng.randint(2**31),
        )
        if result.stop.is_failure:
            warnings.warn(
                f"{result.stop.message}. The best iterate is kept.", ConvergenceWarning, stacklevel=3
            )
        self.model_: AdditiveModel = result.model
        self.history_ = result.history
        self.stop_kind_, self.stop_reason_ = result.stop
        self.best_round_ = result.best_round
        self.n_rounds_ = len(result.records) - 1

    def costs(self, map: Map) -> Array:
        """Return the learned cost of every cell; infinity where it is blocked."""
        check_is_fitted(self, "model_")
        self._check_maps([map], "map")
        return map.grid(self.model_.predict(map.rows)[:, 0])

    def plan(self, map: Map, start: Cell, goal: Cell) -> Path:
        """Return the cheapest path for the learned costs."""
        return self.planner_.plan(self.costs(map), start, goal)

    def imitate(self, maps: Sequence[Map], demonstrations: Demonstrations) -> list[list[Path]]:
        """Plan between the ends of each demonstration."""
        check_is_fitted(self, "model_")
        self._check_demonstrations(maps, demonstrations)
        return [
            _imitations(self.planner_, self.costs(map), paths)
            for map, paths in zip(maps, demonstrations, strict=True)
        ]

    def score(self, maps: Sequence[Map], demonstrations: Demonstrations) -> float:
        """Return the mean fraction of the demonstrated cells that the plans between the same ends visit."""
        return _mean_agreement(self.imitate(maps, demonstrations), demonstrations)

    def staged_score(self, maps: Sequence[Map], demonstrations: Demonstrations) -> Iterator[float]:
        """Yield the score after each round, from round 1."""
        check_is_fitted(self, "model_")
        self._check_maps(maps)
        self._check_demonstrations(maps, demonstrations)
        ends = np.cumsum([map.rows.shape[0] for map in maps])[:-1]
        for scores in self.model_.staged_predict(np.concatenate([map.rows for map in maps])):
            costs = [map.grid(part) for map, part in zip(maps, np.split(scores[:, 0], ends), strict=True)]
            found = [
                _imitations(self.planner_, grid, paths)
                for grid, paths in zip(costs, demonstrations, strict=True)
            ]
            yield _mean_agreement(found, demonstrations)

    def objective(self, maps: Sequence[Map], demonstrations: Demonstrations) -> float:
        """Return R of the learned costs, without the ridge term."""
        check_is_fitted(self, "model_")
        scenes = self._scenes(maps, demonstrations)
        F = self.model_.predict(np.concatenate([scene.features for scene in scenes]))
        return maximum_margin(scenes, self.planner_).value(F)

    def save(self, path: Any) -> None:
        """Refuse: model files hold no planners."""
        raise ValueError(
            "a model file cannot hold a MaxMarginPlanner: pickle it, or keep the learned costs as plain "
            "arrays (`model_.to_plain()`)"
        )

    # -- input -------------------------------------------------------------------------------------

    def _scenes(self, maps: Any, demonstrations: Any, suffix: str = "") -> list[Scene]:
        self._check_maps(maps, f"maps{suffix}")
        self._check_demonstrations(maps, demonstrations, suffix)
        return [
            Scene.of(map, paths, self.planner_, float(self.softness))
            for map, paths in zip(maps, demonstrations, strict=True)
        ]

    def _check_maps(self, maps: Any, parameter: str = "maps") -> None:
        names = tuple(self.feature_names_in_)
        for map in _sequence(maps, parameter):
            if map.names != names:
                raise ValueError(
                    f"`{parameter}` must have the features {', '.join(names)}, got {', '.join(map.names)}"
                )

    def _check_demonstrations(self, maps: Any, demonstrations: Any, suffix: str = "") -> None:
        name = f"demonstrations{suffix}"
        if len(demonstrations) != len(maps):
            raise ValueError(
                f"`{name}` must have {len(maps)} entries like `maps{suffix}`, got {len(demonstrations)}"
            )
        for number, (map, paths) in enumerate(zip(maps, demonstrations, strict=True)):
            if isinstance(paths, Path) or len(paths) == 0:
                raise ValueError(f"`{name}`[{number}] must be paths on the map, got {_short(paths)}")
            for path in paths:
                inside = ((path.cells >= 0) & (path.cells < map.shape)).all()
                if not inside or not map.free[tuple(path.cells.T)].all():
                    raise ValueError(
                        f"`{name}`[{number}] has a path that leaves the map or enters blocked cells"
                    )
                if not self.planner_.allows(path):
                    raise ValueError(
                        f"`{name}`[{number}] has a path from {path.start} to {path.goal} that "
                        f"{self.planner_} could never return"
                    )

    def _options(self) -> Options:
        return Options(
            algorithm=self.algorithm,
            step=self.step,
            n_rounds=self.n_rounds,
            max_weak_learners=self.max_weak_learners,
            output=self.output,
        )

    def _check_parameters(self) -> None:
        def need(name: str, fine: bool, what: str) -> None:
            if not fine:
                raise ValueError(f"`{name}` must be {what}, got {getattr(self, name)!r}")

        need("planner", self.planner is None or hasattr(self.planner, "plan"), "None or a planner")
        need("l2", isinstance(self.l2, Real) and 0.0 <= self.l2 < np.inf, "a number of at least 0")
        check_softness(self.softness)


def _imitations(planner: Planner, costs: Array, paths: Sequence[Path]) -> list[Path]:
    return [planner.plan(costs, path.start, path.goal) for path in paths]


def _mean_agreement(found: Demonstrations, demonstrations: Demonstrations) -> float:
    return float(
        np.mean(
            [
                agreement(path, shown)
                for paths, all_shown in zip(found, demonstrations, strict=True)
                for path, shown in zip(paths, all_shown, strict=True)
            ]
        )
    )


def _sequence(maps: Any, parameter: str) -> Sequence[Map]:
    if isinstance(maps, Map) or len(maps) == 0 or not all(isinstance(map, Map) for map in maps):
        raise ValueError(f"`{parameter}` must be a sequence of maps, got {_short(maps)}")
    return maps


def _short(value: Any) -> str:
    return repr(value) if isinstance(value, list | tuple) and len(value) == 0 else type(value).__name__
