"""Draw the pictures of the guide into docs/guide/images/.

    python docs/guide/pictures.py

The data and the models of a picture are those of its page: the blocks of the
page run first.
"""

import re
import tempfile
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np

from convexboost import ShapeFunctionDisplay, losses

HERE = Path(__file__).parent
GREY, TEAL, RED, AMBER, INK = (
    "#6c757d",
    "#00798c",
    "#d1495b",
    "#e69f00",
    "#1f2328",
)
LOOK = {
    "axes.prop_cycle": matplotlib.cycler(color=[TEAL, RED, AMBER, GREY]),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.grid": True,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "grid.alpha": 0.2,
    "grid.linewidth": 0.5,
    "font.size": 9,
    "figure.constrained_layout.use": True,
}


def names_of(page: str, until: str) -> dict[str, Any]:
    """Run a page up to the block that holds `until`, and return its names."""
    names: dict[str, Any] = {"__name__": "page"}
    with (
        tempfile.TemporaryDirectory() as folder,
        chdir(folder),
        redirect_stdout(StringIO()),
    ):
        for block in re.findall(
            r"^```python\n(.*?)^```", (HERE / page).read_text(), re.M | re.S
        ):
            exec(block, names)
            if until in block:
                break
    return names


def save(fig: Any, name: str) -> None:
    """Write a picture."""
    out = HERE / "images" / f"{name}.png"
    out.parent.mkdir(exist_ok=True)
    fig.savefig(out, dpi=130)
    plt.close(fig)
    print(out)


def losses_regression() -> None:
    """Six losses of a number, over the prediction, with the target at 3."""
    drawn = {
        "half_squared": (losses.HalfSquared(), "the mean"),
        "absolute": (losses.Absolute(), "the median"),
        "huber:1": (losses.Huber(1.0), "between mean and median"),
        "epsilon_insensitive:1": (
            losses.EpsilonInsensitive(1.0),
            "small errors are free",
        ),
        "quantile:0.9": (
            losses.Quantile(0.9),
            "too low costs nine times as much",
        ),
        "poisson": (losses.Poisson(), "the mean of counts"),
    }
    fig, axes = plt.subplots(2, 3, figsize=(8.4, 4.2), sharey=True)
    prediction, y = np.linspace(0.05, 6, 600), 3.0
    for ax, (name, (loss, text)) in zip(axes.flat, drawn.items(), strict=True):
        scores = np.log(prediction) if name == "poisson" else prediction
        values, _ = loss.evaluate(scores[:, None], np.full((len(scores), 1), y))
        ax.plot(prediction, values - values.min(), color=TEAL, lw=2)
        ax.axvline(y, ymax=0.8, color=GREY, lw=0.8, ls=":")
        ax.set_title(name)
        ax.text(
            0.5,
            0.93,
            text,
            transform=ax.transAxes,
            ha="center",
            va="top",
            color=GREY,
            fontsize=8.5,
        )
        ax.set(
            ylim=(-0.1, 4),
            xlim=(0, 6),
            xticks=[0, 3, 6],
            xticklabels=["0", "target 3", "6"],
        )
    for ax in axes[:, 0]:
        ax.set_ylabel("loss")
    for ax in axes[1]:
        ax.set_xlabel("prediction")
    save(fig, "losses-regression")


def losses_classification() -> None:
    """Four losses of two classes, over the margin, all 1 at margin 0."""
    drawn = {
        "logistic": (losses.Logistic(), TEAL, "-"),
        "hinge": (losses.Hinge(), RED, "-"),
        "squared_hinge": (losses.SquaredHinge(), AMBER, "--"),
        "exponential": (losses.Exponential(), GREY, "-."),
    }
    fig, ax = plt.subplots(figsize=(8.4, 3.0))
    margin = np.linspace(-2, 3, 600)
    ax.step([-2, 0, 3], [1, 1, 0], where="pre", color=INK, lw=0.8)
    ax.text(-1.97, 0.8, "0/1 error", color=INK, fontsize=8.5)
    for name, (loss, colour, style) in drawn.items():
        values, _ = loss.evaluate(
            margin[:, None], np.ones(len(margin), np.int64)
        )
        at_border, _ = loss.evaluate(np.zeros((1, 1)), np.ones(1, np.int64))
        ax.plot(
            margin, values / at_border, style, color=colour, lw=2, label=name
        )
    ax.legend(frameon=False, loc="upper right")
    ax.set(
        ylim=(-0.05, 4),
        xlim=(-2, 3),
        ylabel="loss / loss at the border",
        xlabel="score of the true class",
    )
    ax.axvline(0, color=GREY, lw=0.8, ls=":")
    ax.text(-0.04, 3.9, "wrong", ha="right", va="top", color=GREY)
    ax.text(0.04, 3.9, "right", ha="left", va="top", color=GREY)
    save(fig, "losses-classification")


def intervals() -> None:
    """Intervals of new rows, sorted by their median."""
    page = names_of("prediction-intervals.md", "new rows inside")
    order = np.argsort(page["median"])
    low, median, high, y = (
        page[name][order] for name in ("low", "median", "high", "y_test")
    )
    inside = (low <= y) & (y <= high)
    fig, ax = plt.subplots(figsize=(8.4, 3.4))
    place = np.arange(len(y))
    ax.fill_between(
        place,
        low,
        high,
        color=TEAL,
        alpha=0.2,
        lw=0,
        label="between the 10 % and the 90 % quantile",
    )
    ax.plot(place, median, color=TEAL, lw=1.5, label="median")
    ax.plot(
        place[inside],
        y[inside],
        ".",
        color=GREY,
        ms=4,
        label=f"inside: {inside.mean():.0%}",
    )
    ax.plot(
        place[~inside],
        y[~inside],
        "x",
        color=RED,
        ms=4,
        label=f"outside: {1 - inside.mean():.0%}",
    )
    ax.legend(frameon=False, fontsize=8.5, loc="upper left")
    ax.set(
        xlabel="new patients, sorted by the predicted median",
        ylabel="progression of the disease",
    )
    ax.set_xlim(0, len(y) - 1)
    save(fig, "intervals")


def fairness() -> None:
    """Errors of both groups with both losses."""
    page = names_of("fairness-and-tails.md", 'compare("tree")')
    fig, axes = plt.subplots(1, 2, figsize=(8.4, 3.0), sharex=True, sharey=True)
    for ax, learner in zip(axes, ("additive", "tree"), strict=True):
        for name, loss, needs, colour in (
            ("trained on the mean", "absolute", {}, GREY),
            (
                "trained on the worst group",
                losses.WorstGroup("absolute"),
                {"groups": page["group"]},
                TEAL,
            ),
        ):
            model = page["ConvexBoostRegressor"](loss, learner, random_state=0)
            error = np.abs(
                model.fit(page["X"], page["y"], **needs).predict(page["X_new"])
                - page["y_new"]
            )
            means = [
                error[page["group_new"] == g].mean()
                for g in ("minority", "majority")
            ] + [error.mean()]
            shift = 0.19 if colour == GREY else -0.19
            ax.barh(
                np.arange(3)[::-1] + shift,
                means,
                height=0.34,
                color=colour,
                label=name,
            )
            for place, mean in zip(
                np.arange(3)[::-1] + shift, means, strict=True
            ):
                ax.text(
                    mean + 0.02,
                    place,
                    f"{mean:.2f}",
                    va="center",
                    color=colour,
                    fontsize=8.5,
                )
        ax.set_title(f'learner="{learner}"')
        ax.set(
            yticks=[2, 1, 0],
            yticklabels=["minority", "majority", "all"],
            xlim=(0, 1.8),
        )
        ax.set_xlabel("mean absolute error of new rows")
        ax.grid(visible=False, axis="y")
    fig.legend(
        *axes[0].get_legend_handles_labels(),
        frameon=False,
        ncols=2,
        loc="outside lower center",
    )
    save(fig, "fairness")


def survival() -> None:
    """Kaplan-Meier curves of thirds of the predicted risk."""
    page = names_of("survival.md", "the true risk")
    y, score = (
        page["y"][page["test"]],
        page["cox"].predict(page["X"][page["test"]]),
    )
    third = np.digitize(score, np.quantile(score, [1 / 3, 2 / 3]))
    fig, ax = plt.subplots(figsize=(8.4, 3.2))
    for k, (name, colour) in enumerate(
        (("low", TEAL), ("medium", AMBER), ("high", RED))
    ):
        rows = y[third == k]
        rows = rows[np.argsort(np.abs(rows))]
        at_risk = len(rows) - np.arange(len(rows))
        alive = np.cumprod(1 - (rows > 0) / at_risk)
        ax.step(
            np.append(0, np.abs(rows)),
            np.append(1, alive),
            where="post",
            color=colour,
            lw=2,
            label=name,
        )
    ax.legend(frameon=False, title="predicted risk", alignment="left")
    ax.set(
        xlim=(0, 2.2),
        ylim=(0, 1.02),
        xlabel="time",
        ylabel="share without an event (Kaplan-Meier)",
    )
    save(fig, "survival")


def shape_functions() -> None:
    """Four curves of the glass box."""
    page = names_of("glass-box.md", "ShapeFunctionDisplay")
    model, columns = page["model"], page["X"].columns
    top = [columns[j] for j in np.argsort(-model.feature_importances_)[:4]]
    fig, axes = plt.subplots(1, 4, figsize=(8.4, 2.6), sharey=True)
    for ax, name in zip(axes, top, strict=True):
        ShapeFunctionDisplay.from_estimator(model, name, ax=ax)
        ax.set(title=name, xlabel="", ylabel="")
    axes[0].set_ylabel("adds to the log-odds of malignant")
    save(fig, "shape-functions")


def certificate() -> None:
    """The objective comes from above, the lower bound from below."""
    model = names_of("certificates.md", "certificate=True")["model"]
    history = model.history_
    rounds = history["round"]
    objective = np.minimum.accumulate(history["objective"])
    bound = np.maximum.accumulate(history["lower_bound"])
    fig, ax = plt.subplots(figsize=(8.4, 3.2))
    ax.fill_between(rounds, bound, objective, color=TEAL, alpha=0.15, lw=0)
    ax.plot(rounds, objective, color=TEAL, lw=2)
    ax.plot(rounds, bound, color=RED, lw=2)
    ax.text(
        620,
        objective[600] + 0.8,
        "training objective, the lowest so far",
        color=TEAL,
    )
    ax.text(
        620,
        bound[600] - 1.5,
        "certified lower bound: no sum of stumps gets below",
        color=RED,
    )
    ax.annotate(
        f"at most {model.certificate_.gap():.2f} above the optimum",
        (rounds[-1], (objective[-1] + bound[-1]) / 2),
        (1350, 56),
        arrowprops={"arrowstyle": "->", "color": INK},
        color=INK,
    )
    ax.set(
        ylim=(44, 64),
        xlim=(0, rounds[-1]),
        xlabel="round",
        ylabel="mean absolute error + l2 penalty",
    )
    save(fig, "certificate")


if __name__ == "__main__":
    with plt.rc_context(LOOK):
        for draw in (
            losses_regression,
            losses_classification,
            intervals,
            fairness,
            survival,
            shape_functions,
            certificate,
        ):
            draw()
