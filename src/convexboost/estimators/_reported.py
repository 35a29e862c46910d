"""A page about a fitted model: `report`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from convexboost.boosting.training import Stop
from convexboost.estimators._frames import naming, unmasked
from convexboost.estimators._input import EstimatorInput, check_weight, n_rows
from convexboost.reports.content import Block, Facts, Line, LineFigure, Report, Section, Table, Text
from convexboost.reports.environment import environment, now
from convexboost.reports.page import write_alone

if TYPE_CHECKING:
    from convexboost.estimators._measures import Measured

MOST_COLUMNS = 40  #: of the table of columns
#: What training measures of the iterate of a round, and how a page calls it.
MEASURED = {"objective": "training objective", "validation": "validation loss", "score": "score"}
#: What may be on the horizontal axis besides rounds.
AXES = {"weak_learners": "weak learners", "seconds": "seconds"}
#: Of the curves of training: words that have their colours in every report.
COLOURS = {
    **{"objective": "residual", "validation": "repeated", "lower_bound": "naive", "score": "repeated"},
    **{"edge": "residual", "intrinsic_edge": "naive"},
}


class ReportedModel(EstimatorInput):
    """`report`."""

    def report(
        self, path: Any, X: Any = None, y: Any = None, sample_weight: Any = None, *, qid: Any = None
    ) -> Path:
        """Write a page about the model: one HTML file that needs no network.

        It shows the settings, how training went, the certificate and the diagnosis, and the importances of
        the features.  Models that are sums of functions of one feature also get the curves of these.

        Parameters
        ----------
        path
            The file to write; one that is there is replaced.
        X : optional
            Rows, best such that the model was not trained on.  With them there are curves of other models
            (partial dependence) and some predictions that are taken apart.
        y, sample_weight : optional
            Their targets and weights: how good the model is on them, with its calibration and confusion or
            its residuals.
        qid : optional
            Their queries, for a ranker.

        """
        # They import sklearn.metrics and model_selection, which no fit needs.
        from convexboost.estimators import _report_features as features
        from convexboost.estimators import _report_rows as rows

        check_is_fitted(self)
        if find_spec("plotly") is None:
            raise ImportError("`report` needs plotly: pip install 'convexboost[plot]'")
        given = self._rows_to_report(X, y, sample_weight, qid)
        sections = [_overview(self), _training(self), _judgement(self)]
        sections += features.sections(self, X)
        sections += rows.sections(self, X, given)
        lead = _lead(self) if X is not None else f"{_lead(self)}\n\n{rows.HINT}"
        footer = {"made": now(), **environment()}
        return write_alone(Report(type(self).__name__, sections, lead=lead, footer=footer), Path(path))

    def _round_of_model(self) -> int | None:
        """Return the round that the model is the iterate of; None: it is the mean of many."""
        fitted: Any = self
        output = fitted._settled.options.output
        if output == "best" or Stop(fitted.stop_kind_, fitted.stop_reason_).is_failure:
            return int(fitted.best_round_)
        return int(fitted.n_rounds_) if output == "last" else None

    def _losses_of_model(self) -> dict[str, float]:
        """Return what training measured of the model itself; nothing of a mean, which is not measured."""
        fitted: Any = self
        of_model = self._round_of_model()
        if of_model is None:
            return {}
        found = {name: float(fitted.history_[name][of_model]) for name in MEASURED}
        return {name: value for name, value in found.items() if not np.isnan(value)}

    def _rows_to_report(self, X: Any, y: Any, sample_weight: Any, qid: Any) -> Measured | None:
        """Check the rows before any work."""
        from convexboost.estimators._measures import Measured

        for name, value in (("y", y), ("sample_weight", sample_weight), ("qid", qid)):
            if value is not None and X is None:
                raise ValueError(f"`{name}` would be ignored: `X` is missing")
        if X is not None:
            self._check_inputs(X)
        if y is None:
            if sample_weight is not None:
                raise ValueError("`sample_weight` would be ignored: `y` is missing")
            return None
        if self._task == "ranking" and qid is None:
            raise ValueError("`qid` is needed with `y`: the queries of the rows of a ranker")
        with naming("y"):
            self._encode_validation_targets(unmasked(y), "y")
        targets = np.asarray(y)
        if len(targets) != n_rows(X):
            raise ValueError(f"`y` must have {n_rows(X)} rows like `X`, got {len(targets)}")
        weight = None if sample_weight is None else check_weight(sample_weight, X)
        return Measured(X, targets, weight, None if qid is None else np.asarray(qid))


def _lead(model: Any) -> str:
    """Say in a sentence what the model is."""
    classes = f" of {len(model.classes_)} classes" if "classes_" in vars(model) else ""
    learner = model._settled.settled_learner
    n_rounds = model.model_.n_rounds
    return (
        f"A model for {model._task}{classes} from {model.n_features_in_} columns: {n_rounds} rounds of "
        f"`{learner!r}` for the loss `{model.loss_}`."
    )


# --- the sections that need no rows ------------------------------------------------------------------------


def _overview(model: Any) -> Section:
    history = model.history_
    facts: list[tuple[str, Any]] = [
        ("columns", model.n_features_in_),
        ("rounds in the model", model.model_.n_rounds),
        ("weak learners trained", int(history["weak_learners"][-1])),
    ]
    facts += [(MEASURED[name], value) for name, value in model._losses_of_model().items()]
    facts.append(("seconds", float(history["seconds"][-1])))
    return Section("The model", [Facts(facts), _settings(model), *_columns(model)])


def _settings(model: Any) -> Table:
    settled = model._settled
    options = settled.options if model.n_members_ == 1 else settled.ensemble_options
    learner = settled.settled_learner
    rows = [
        ("loss", str(model.loss_)),
        ("learner", repr(learner)),
        ("algorithm", options.algorithm.name),
        ("step", options.step.name),
        ("rounds at most", str(options.n_rounds)),
        ("output", options.output),
        ("members", "1" if model.n_members_ == 1 else f"{model.n_members_}, one for each fold"),
        ("stopped", model.stop_reason_),
    ]
    if "classes_" in vars(model):
        names = ", ".join(map(str, model.classes_[:20]))
        rows.insert(0, ("classes", names if len(model.classes_) <= 20 else f"{names}, …"))
    shown = {name for name, _ in rows} | {"n_rounds"}
    for name, value in sorted(model.get_params(deep=False).items()):
        if name not in shown and model._is_given(name):
            rows.append((name, repr(value)[:200]))
    return Table(("setting", "value"), rows)


def _columns(model: Any) -> list[Block]:
    columns = model._columns
    if "feature_names_in_" not in vars(model):
        return []
    if columns.plain and not columns.categorical.any():
        names = ", ".join(map(str, columns.names[:MOST_COLUMNS]))
        more = ", …" if len(columns.names) > MOST_COLUMNS else ""
        return [Text(f"All columns hold numbers: {names}{more}.")]
    rows = []
    for j, (name, kind) in enumerate(zip(columns.names, columns.kinds, strict=True)):
        levels = [str(value) for value in columns.encoders.get(j, {})]
        words = ", ".join(levels[:6]) + (f", … ({len(levels)})" if len(levels) > 6 else "")
        what = "categories" if columns.categorical[j] else kind or "nothing but missing values"
        rows.append((str(name), what, words))
    caption = f"The first {MOST_COLUMNS} of {len(rows)} columns." if len(rows) > MOST_COLUMNS else ""
    return [Table(("column", "holds", "levels"), rows[:MOST_COLUMNS], caption)]


def _training(model: Any) -> Section:
    history = model.history_

    def line(name: str, words: str) -> list[Line]:
        """Return the rounds in which it is known: some have no edge."""
        if name not in history:
            return []
        known = ~np.isnan(history[name])
        others = {words: history[key][known] for key, words in AXES.items()}
        rounds, values = history["round"][known], history[name][known]
        return [Line(words, rounds, values, COLOURS[name], other_x=others)] if known.any() else []

    objective, validation = line("objective", "training objective"), line("validation", "validation loss")
    where = "validation" if validation and not model._never_stops else "training"
    of_model = model._round_of_model()
    if of_model is None:
        caption = f"The model is the mean of rounds 0 to {model.n_rounds_ - 1}."
    elif model._settled.options.output == "last" and of_model == model.n_rounds_:
        caption = f"The model is that of round {of_model}, the last."
    else:
        caption = f"The model is that of round {of_model}, the best by the {where} loss."
    if model.n_members_ > 1:
        caption += f" Curves are means over {model.n_members_} folds."
    figures = [
        LineFigure(
            "Learning curve",
            [*objective, *validation, *line("lower_bound", "lower bound")],
            "round",
            "loss",
            caption=caption,
        )
    ]
    if score := line("score", "validation score"):
        figures.append(LineFigure("Validation score", score, "round", "score"))
    if edges := [*line("edge", "edge"), *line("intrinsic_edge", "intrinsic edge")]:
        words = "How much of the target of a round the weak learner finds: 1 is all of it."
        figures.append(LineFigure("Edges", edges, "round", "edge", caption=words))
    return Section("Training", figures)


def _judgement(model: Any) -> Section:
    blocks: list[Block] = []
    certificate = model.certificate_
    if certificate is not None:
        blocks.append(Facts([("certified gap to the optimum", float(certificate.gap()))]))
        blocks.append(Text("\n\n".join(str(certificate).splitlines())))
    diagnosis = model.diagnose()
    warned = {finding.title for finding in diagnosis.warnings}
    lines = []
    for line in diagnosis.lines:
        title, colon, rest = line.partition(": ")
        mark = "⚠ " if title in warned else ""
        lines.append(f"{mark}**{title}**: {rest}" if colon else line)
    blocks.append(Text("\n\n".join(lines)))
    return Section("Certificate and diagnosis" if certificate is not None else "Diagnosis", blocks)
