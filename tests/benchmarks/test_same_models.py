"""The comparison of models before and after a change: it finds what differs."""

import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def bench():
    pytest.importorskip("pandas")
    sys.path.insert(0, str(BENCHMARKS))
    try:
        return __import__("same_models")
    finally:
        sys.path.remove(str(BENCHMARKS))


def test_every_configuration_can_be_built(bench):
    assert len(bench.CONFIGURATIONS) == 40
    for build in bench.CONFIGURATIONS.values():
        model, data, _ = build()
        assert data.X.shape[0] == len(data.y)
        assert data.X_new.shape[0] == bench.N_NEW
        assert model.random_state == 0


def result(predictions="a", history="b", values=((0.0, 2.0),)):
    return {"predictions": predictions, "history": history, "values": [list(row) for row in values]}


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (result(), "same"),
        (result(history="c"), "**history different**"),
        (result(predictions="c", values=((0.0, 1.5),)), "**different** 2.5e-01"),
        (result(predictions="c", values=((0.0,),)), "**different** (not of the same shape)"),
        ({"error": "ValueError: no"}, "**error** after"),
    ],
)
def test_the_verdict(bench, after, expected):
    assert bench.verdict(result(), after) == expected


def test_the_smallest_difference_changes_the_hash(bench):
    assert bench.digest([[1.0, 2.0]]) == bench.digest([[1.0, 2.0]])
    assert bench.digest([[1.0, 2.0]]) != bench.digest([[1.0, 2.0 + 5e-16]])
    assert bench.digest([[1.0, 2.0]]) != bench.digest([[1.0], [2.0]])
    assert bench.digest([[float("nan")]]) == bench.digest([[-float("nan")]])


def test_old_names_of_parameters(bench):
    def old(row_share=1.0):
        return row_share

    def new(subsample=1.0):
        return subsample

    assert bench.make(old, subsample=0.5) == bench.make(new, subsample=0.5) == 0.5
