"""A report with everything in it, for the tests."""

import numpy as np
from matplotlib.figure import Figure

from convexboost.reports.content import (
    Comparison,
    ImageFigure,
    Line,
    LineFigure,
    Report,
    Section,
    Table,
    Text,
    VerdictList,
    verdict,
)

HOSTILE = "<script>alert(1)</script> & \"quotes\" </script> 'x'"
T = np.arange(5000.0)


def picture():
    figure = Figure(figsize=(9, 3))
    figure.subplots().imshow(np.outer(np.arange(9), np.arange(30)), aspect="auto")
    return figure


def lines(name="residual"):
    wave = np.sin(T / 50) / (T + 1)
    return [
        Line("naive", T, 1 / (T + 1), other_x={"not everywhere": T}),
        Line(name, T, np.where(T % 7 == 3, np.nan, wave), "residual", "dash"),
        Line("never", T[:3], np.full(3, np.nan), "other", "dot"),
        Line("empty", [], []),
        Line("zero and infinity", T[:4], [0.0, 1.0, np.inf, 0.5]),
    ]


MEAN = Line("mean", T, 1 / (T + 2), "residual", band=(0.5 / (T + 2), 2 / (T + 2)))
WIDE = Table(
    [f"a long column name {i}" for i in range(12)],
    [["x" * 30, *np.linspace(-1e-7, 1e12, 11)], [HOSTILE, *[np.nan] * 11]],
    "A table wider than a phone",
)
YES, NO, OPEN = (
    verdict(
        f"{HOSTILE} {words}", Comparison("a value", v, "<", 1.0, "another"), source="Section 5", note="*why*"
    )
    for words, v in (("yes", 0.5), ("no", 2.0), ("open", np.nan))
)
REPORT = Report(
    f"A title with {HOSTILE}",
    [
        Section(HOSTILE, [Text(f"{HOSTILE}\n\n- **bold**\n- `code *star*`"), VerdictList([YES, NO, OPEN])]),
        Section(
            "Figures",
            [
                LineFigure("Log", lines(), "rounds", "gap", log_x=True, log_y=True),
                LineFigure("Log", lines(HOSTILE), "rounds", HOSTILE, caption="The same title again."),
                ImageFigure("A map", picture, "Wide."),
                Text("Between two grids."),
                LineFigure("Points", lines(), "rounds", "gap", kind="marker", log_y=True),
                WIDE,
                LineFigure("Band", [MEAN, *lines()[:1]], "rounds", "gap", log_x=True, log_y=True),
            ],
            level=2,
        ),
        Section("Averyveryverylongwordwithoutanyplacetobreakitwhichstandsinatitle" * 2, [Text("x" * 300)]),
    ],
    lead=HOSTILE,
    warning=f"**Partial**: `{'convexboost ' * 20}`",
    footer={"command": HOSTILE, "path": "/a" * 200},
)
