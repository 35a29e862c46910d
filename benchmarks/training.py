"""B1: seconds to the training error that XGBoost has with depth 1 after 300 rounds.

    python benchmarks/training.py

Ours: multiclass hinge, residual, `Additive(smooth=False)` (all stumps at once, the setting that fits a
training set fastest), stopped by a callback that looks at the training error after every round; where
the hinge does not get there, softmax, to XGBoost's log-loss.  Also timed: `additive` at its defaults and one
`stump` a round.  A peer is timed for the smallest number of rounds that gets there, known beforehand.  All
from raw X, binning included.  The test errors say what the fitted models are worth.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numba import njit

import common
import peers
from common import geometric_mean, median, number, spread, table
from convexboost import ConvexBoostClassifier
from convexboost.boosting.training import Record
from convexboost.learners.additive import Additive
from convexboost.losses.multiclass_hinge import MulticlassHinge
from peers import PEERS, XGBOOST, Problem, Setting

DATA = ("letter", "connect4", "pendigits", "satimage")
TEST = ("letter", "pendigits", "satimage")  #: sets that come with a test set
MEAN_GOAL, LEAST_GOAL = 10.0, 4.0
OURS = "convexboost"
SMOOTH, STUMPS, PLAIN = f"{OURS}, additive", f"{OURS}, stump", f"{OURS}, plain fit of as many rounds"
LEARNERS = {OURS: Additive(smooth=False), SMOOTH: "additive", STUMPS: "stump"}
EVERY = {OURS: 1, SMOOTH: 1, STUMPS: 10}  #: rounds between two looks at the training error
LIMITS = {OURS: 10_000, SMOOTH: 500, STUMPS: 10_000}  #: rounds


# -- ours ------------------------------------------------------------------------------------------------


class ObjectiveWithScores:
    """An objective whose training scores are kept in the loss."""

    def __init__(self, objective: Any, loss: HingeWithScores) -> None:
        self._objective, self._loss = objective, loss

    def __getattr__(self, name: str) -> Any:
        return getattr(self._objective, name)

    def with_l2(self, l2: float) -> ObjectiveWithScores:
        return ObjectiveWithScores(self._objective.with_l2(l2), self._loss)

    def with_envelope(self, envelope: float) -> ObjectiveWithScores:
        return ObjectiveWithScores(self._objective.with_envelope(envelope), self._loss)

    def scores(self, *arguments: Any, **options: Any) -> Any:
        self._loss.scores = self._objective.scores(*arguments, **options)
        return self._loss.scores


class HingeWithScores(MulticlassHinge):
    """The multiclass hinge, with the training scores for a callback (which gets only a `Record`)."""

    scores: Any = None

    def bind(self, *arguments: Any, **options: Any) -> Any:
        return ObjectiveWithScores(super().bind(*arguments, **options), self)


@njit(cache=True, nogil=True)
def more_errors_than(F: np.ndarray, y: np.ndarray, limit: int) -> bool:
    """Return whether more than `limit` rows are misclassified; stops counting as soon as it knows."""
    errors = 0
    for n in range(len(y)):
        own = F[n, y[n]]
        for k in range(F.shape[1]):
            if F[n, k] > own or (F[n, k] == own and k < y[n]):
                errors += 1
                break
        if errors > limit:
            return True
    return False


@dataclass
class StopAtError:
    """A callback that stops when the training error is at most `target`."""

    loss: HingeWithScores
    y: np.ndarray
    target: float
    every: int

    def __call__(self, record: Record) -> bool:
        if record.round % self.every:
            return False
        limit = int(self.target * len(self.y) + 1e-9)
        return not more_errors_than(self.loss.scores.F, self.y, limit)


@dataclass(frozen=True)
class Goal:
    """What has to be reached: training error at most `value` (hinge), or log-loss (softmax)."""

    measure: str
    value: float
    limit: int  #: rounds

    @property
    def loss(self) -> str:
        return "multiclass_hinge" if self.measure == "error" else "softmax"

    def fit(self, problem: Problem, threads: int, which: str = OURS) -> ConvexBoostClassifier:
        """Train ours until it is there."""
        limit = min(self.limit, LIMITS[which])
        if self.measure == "error":
            loss = HingeWithScores()
            stop = StopAtError(loss, problem.y, self.value, EVERY[which])
            return classifier(problem, loss, limit, threads, which, stop)
        return classifier(problem, self.loss, limit, threads, which, lambda r: r.objective <= self.value)

    def reached(self, model: Any, X: Any, y: np.ndarray) -> bool:
        """Return whether a trained model is there, from its own predictions."""
        if self.measure == "error":
            return bool(np.mean(np.ravel(model.predict(X)) != y) <= self.value)
        P = model.predict_proba(X)[np.arange(len(y)), y]
        return bool(-np.mean(np.log(P)) <= self.value * (1 + 1e-5))  # peers keep float32


def classifier(
    problem: Problem, loss: Any, rounds: int, threads: int, which: str = OURS, callback: Any = None
) -> ConvexBoostClassifier:
    """Fit ours; nothing is set but the loss, the learner, the rounds and the threads."""
    model = ConvexBoostClassifier(
        loss,
        learner=LEARNERS[which],
        algorithm="residual",
        n_rounds=rounds,
        output="last",
        early_stopping=False,
        categorical_features=problem.categorical,
        n_jobs=threads,
        callbacks=[callback] if callback else None,
    )
    return model.fit(problem.X, problem.y)


# -- the comparison --------------------------------------------------------------------------------------


def target(problem: Problem, rounds: int, threads: int) -> tuple[float, float, str]:
    """Return XGBoost's lowest training error after so many rounds, its log-loss there, and how it got it."""
    found = []
    for encoding in peers.encodings(XGBOOST, problem):
        for rate in XGBOOST.rates:
            curves = problem.curves(XGBOOST, encoding, rate, rounds, threads)
            how = f"rate {rate}" + f", {encoding}" * bool(problem.categorical)
            found.append((float(curves["error"][-1]), float(curves["log-loss"][-1]), how))
    return min(found)


def goal_for(problem: Problem, error: float, log_loss: float, limit: int, threads: int) -> tuple[Goal, int]:
    """Return what to reach, and the rounds ours needs for it (0: not within the limit)."""
    for goal in (Goal("error", error, limit), Goal("log-loss", log_loss, limit)):
        model = goal.fit(problem, threads)
        common.note(f"{problem.name}, {goal.loss}: {model.n_rounds_} rounds, {model.stop_reason_}")
        if goal.reached(model, problem.X, problem.y):
            return goal, model.n_rounds_
    return Goal("error", error, limit), 0


def compare(problem: Problem, arguments: argparse.Namespace) -> dict[str, Any]:
    """Run one data set and return all that the page says of it."""
    threads = arguments.threads
    known = common.load(arguments.out)["training"]["data"][problem.name] if arguments.reuse else None
    if known:
        error, log_loss, how = (known["target"][key] for key in ("error", "log_loss", "how"))
    else:
        error, log_loss, how = target(problem, arguments.rounds, threads)
    goal, rounds = goal_for(problem, error, log_loss, arguments.limit, threads)
    if known:
        settings = [Setting(**setting) for setting in known["settings"].values()]
    else:
        settings = [
            peers.search(peer, problem, goal.measure, goal.value, threads, _cap(peer, arguments))
            for peer in PEERS.values()
        ]
    settings = [checked(goal, s, problem, threads) if s.reached else s for s in settings]
    tasks: dict[str, Any] = {}
    for which in LEARNERS if rounds else ():
        if goal.reached(goal.fit(problem, threads, which), problem.X, problem.y):
            tasks[which] = lambda which=which: goal.fit(problem, threads, which)
    for setting in filter(lambda s: s.reached, settings):
        tasks[setting.peer] = lambda s=setting: peers.fit(s, problem, threads)
    if rounds:
        tasks[PLAIN] = lambda: classifier(problem, goal.loss, rounds, threads)
    kept: dict[str, Any] = {}
    seconds = common.alternate(
        {label: lambda label=label, task=task: kept.update({label: task()}) for label, task in tasks.items()},
        arguments.repeats,
    )
    encodings = {s.peer: s.encoding for s in settings}
    return {
        "target": {"error": error, "log_loss": log_loss, "how": how, "rounds": arguments.rounds},
        "goal": asdict(goal),
        "loss": goal.loss,
        "rounds": rounds,
        "own_rounds": {which: kept[which].n_rounds_ for which in LEARNERS if which in kept},
        "test_errors": test_errors(problem, kept, encodings) if problem.name in TEST else {},
        "settings": {s.peer: asdict(s) for s in settings},
        "seconds": seconds,
        **ratios(seconds),
    }


def test_errors(problem: Problem, models: dict[str, Any], encodings: dict[str, str]) -> dict[str, float]:
    """Return the share of wrong answers on the test set for each model."""
    test = Problem.load(problem.name, test=True)
    inputs = {label: problem.encode(test.X, encodings.get(label, peers.NUMBERS)) for label in models}
    return {
        label: float(np.mean(np.ravel(model.predict(inputs[label])) != test.y))
        for label, model in models.items()
    }


def _cap(peer: peers.Peer, arguments: argparse.Namespace) -> int:
    return arguments.rounds if peer is XGBOOST else arguments.peer_rounds


def checked(goal: Goal, setting: Setting, problem: Problem, threads: int) -> Setting:
    """Make sure that a peer's predictions are as good as its curve said; rounding may cost it a round."""
    X = problem.encoded(setting.encoding)
    for extra in range(10):
        longer = replace(setting, rounds=setting.rounds + extra)
        if goal.reached(peers.fit(longer, problem, threads), X, problem.y):
            return longer
    raise RuntimeError(f"{setting.peer} on {problem.name}: predictions contradict the training curve")


def ratios(seconds: common.Seconds) -> dict[str, Any]:
    """Return peer seconds / ours for each peer, and for the fastest."""
    if OURS not in seconds:
        return {"ratios": {}, "fastest": None, "ratio": None}
    own = median(seconds[OURS])
    found = {name: median(s) / own for name, s in seconds.items() if name in PEERS}
    fastest = min(found, key=found.__getitem__)
    return {"ratios": found, "fastest": fastest, "ratio": found[fastest]}


# -- the page --------------------------------------------------------------------------------------------


def summary(found: dict[str, Any]) -> str:
    rows = []
    for name, one in found.items():
        measure, value = one["goal"]["measure"], one["goal"]["value"]
        goal = f"training error {value:.3%}" if measure == "error" else f"log-loss {value:.4f}"
        got_there = one["ratio"] is not None
        rows.append(
            [
                name,
                f"{goal} ({one['target']['how']})",
                f"{one['loss']}, {one['rounds']} rounds" if got_there else "not reached",
                spread(one["seconds"][OURS]) if got_there else "",
                spread(one["seconds"][PLAIN]) if got_there else "",
                f"{one['fastest']}, {number(median(one['seconds'][one['fastest']]))}" if got_there else "",
                f"**{number(one['ratio'])}**" if got_there else "",
            ]
        )
    header = ("data", "target", "ours", "seconds", "plain fit, s", "fastest peer there, s", "ratio")
    return table(header, rows)


def details(found: dict[str, Any]) -> str:
    rows = []
    for name, one in found.items():
        tested = {label: f"{error:.2%}" for label, error in one["test_errors"].items()}
        for label in LEARNERS:
            rounds = one["own_rounds"].get(label, f"not reached in {LIMITS[label]}")
            seconds = spread(one["seconds"][label]) if label in one["seconds"] else ""
            rows.append([name, label, "", "", "", rounds, seconds, "", tested.get(label, "")])
        for peer, s in one["settings"].items():
            rates = ", ".join(f"{rate:g}" for rate in sorted(PEERS[peer].rates))
            measure = one["goal"]["measure"]
            value = f"{s['value']:.3%}" if measure == "error" else f"{s['value']:.4f}"
            there = (
                f"{s['rounds']}" if s["reached"] else f"not reached: {measure} {value} after {s['rounds']}"
            )
            seconds = spread(one["seconds"][peer]) if s["reached"] else ""
            ratio = number(one["ratios"][peer]) if peer in one["ratios"] else ""
            test = tested.get(peer, "")
            rows.append([name, peer, s["encoding"], rates, f"{s['rate']:g}", there, seconds, ratio, test])
    header = ("data", "library", "inputs as", "rates searched", "chosen", "rounds", "seconds", "ratio")
    return table((*header, "test error"), rows)


def page(found: dict[str, Any], results: dict[str, Any], arguments: argparse.Namespace) -> str:
    caps = ", ".join(f"{p.name} {min(p.max_rounds, _cap(p, arguments))}" for p in PEERS.values())
    reached = results["mean"] is not None
    goal = (
        f"Geometric mean of the ratios {number(results['mean'])} (goal {MEAN_GOAL:g}: "
        f"{common.verdict(results['mean'] >= MEAN_GOAL)}), least {number(results['least'])} "
        f"(goal {LEAST_GOAL:g}: {common.verdict(results['least'] >= LEAST_GOAL)})."
        if reached
        else "Ours did not reach the target on every set, so there is no mean (**missed**)."
    )
    return "\n\n".join(
        [
            f"Seconds until the training error is at most that of XGBoost with `max_depth=1` after "
            f"{arguments.rounds} rounds, with the learning rate that makes it lowest. Ratio: seconds of the "
            f"fastest peer that gets there / ours. {goal}",
            summary(found),
            "Ours is `ConvexBoostClassifier` with `algorithm='residual'`, `step='auto'` and, for the ratios, "
            f"`learner={LEARNERS[OURS]!r}`: all stumps at once, the same for every set; at most "
            f"{arguments.limit} rounds. It is the setting for a small training error, and it memorises: "
            "the test errors below show that `additive` at its defaults is the one to use on other data "
            "(B2 measures that). A callback looks at the training error after every round (`stump`: every "
            "10), and its time counts. Where the hinge does not get there: softmax, and XGBoost's log-loss "
            "is the target.",
            details(found),
            "A peer is timed for a plain fit of the smallest number of rounds that gets there; the searches "
            f"for rate, rounds and form of the categories are not timed. Rounds allowed: {caps}. Trees have "
            "one split; other parameters are the peers' defaults, except that CatBoost runs without "
            "bootstrap and random strength, which helps it here. AdaBoost has one thread only. All times are "
            "from the matrix X (binning included; one-hot and category columns are made beforehand), medians "
            "of alternating runs; a fit beforehand compiles the Numba kernels or reads them from the cache.",
        ]
    )


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=DATA)
    parser.add_argument("--rounds", type=int, default=300, help="of XGBoost: they set the target (300)")
    parser.add_argument("--peer-rounds", type=int, default=10_000, help="no other peer may use more")
    parser.add_argument("--limit", type=int, default=10_000, help="rounds ours may use (10,000)")
    parser.add_argument("--reuse", action="store_true", help="the peers' settings that an earlier run found")
    arguments = common.parse(parser, data=["pendigits"], rounds=30, peer_rounds=100, limit=2000)
    found = {}
    for name in arguments.data:
        problem = Problem.load(name)
        for which in LEARNERS:
            Goal("error", 0.0, 2 * EVERY[which]).fit(problem, arguments.threads, which)  # compiles
        found[name] = compare(problem, arguments)
    all_ratios = [one["ratio"] for one in found.values()]
    there = None not in all_ratios
    results = {
        "data": found,
        "mean": geometric_mean(all_ratios) if there else None,
        "least": min(all_ratios) if there else None,
        "goal": {"mean": MEAN_GOAL, "least": LEAST_GOAL},
    }
    common.publish(
        arguments, "training", "B1: seconds to a training error", page(found, results, arguments), results
    )


if __name__ == "__main__":
    main()
