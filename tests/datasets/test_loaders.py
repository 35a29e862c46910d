"""The real files: shapes, class counts and splits as published."""

import dataclasses
import gzip
import inspect
import io
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from convexboost import datasets
from convexboost.datasets import _loaders, available, load
from convexboost.datasets._dataset import Dataset, drawn_split, five_folds


@pytest.fixture
def folder():
    if "CONVEXBOOST_DATA" not in os.environ:
        pytest.skip("set CONVEXBOOST_DATA to the folder with the data sets (letter/, pendigits/, ...)")
    return Path(os.environ["CONVEXBOOST_DATA"])


def table(folder, name, **options):
    """Read a file the slow, obvious way."""
    return pd.read_csv(io.BytesIO(content(folder, name)), **{"header": None, **options})


def content(folder, name):
    path = folder / name
    return path.read_bytes() if path.exists() else gzip.decompress((folder / f"{name}.gz").read_bytes())


#: rows, features, training rows, test rows
SHAPES = {
    "letter": (20_000, 16, 16_000, 4000),
    "pendigits": (10_992, 16, 7494, 3498),
    "satimage": (6435, 36, 4435, 2000),
    "connect4": (67_557, 42, 54_046, 13_511),
    "mq2008": (15_211, 46, 2933 + 3635 + 3062, 2874),
    "ohsumed": (16_140, 45, 2570 + 3076 + 3573, 3383),
    "lightgbm_rank": (3773, 300, 3005, 768),
    "california_housing": (20_640, 8, 16_512, 4128),
    "bike_sharing": (17_379, 12, 13_904, 3475),
    "abalone": (4177, 8, 3342, 835),
    "airfoil": (1503, 5, 1203, 300),
}


def test_every_set_is_available():
    assert set(available()) == set(SHAPES)
    assert all(getattr(datasets, f"load_{name}").__doc__ for name in available())


def test_unknown_name():
    with pytest.raises(ValueError, match=r"`name` must be one of abalone, airfoil, .*, got 'iris'"):
        load("iris")


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_and_split(folder, name):
    data = load(name)
    assert data.name == name
    assert (*data.X.shape, len(data.train), len(data.test)) == SHAPES[name]
    assert data.X.dtype == np.float64
    assert data.X.flags.c_contiguous
    assert np.isfinite(data.X).all()
    assert len(data.y) == len(data.X)
    assert len(set(data.feature_names)) == data.X.shape[1]
    assert not np.intersect1d(data.train, data.test).size
    if not data.folds:
        np.testing.assert_array_equal(np.union1d(data.train, data.test), np.arange(len(data.y)))
    X_train, X_test, y_train, y_test = data.split()
    np.testing.assert_array_equal(X_train, data.X[data.train])
    np.testing.assert_array_equal(X_test, data.X[data.test])
    np.testing.assert_array_equal(y_train, data.y[data.train])
    np.testing.assert_array_equal(y_test, data.y[data.test])
    assert str(len(data.X)) in repr(data)


def test_return_x_y(folder):
    assert "return_X_y" in inspect.signature(datasets.load_airfoil).parameters
    X, y = datasets.load_airfoil(return_X_y=True)
    data = datasets.load_airfoil()
    np.testing.assert_array_equal(X, data.X)
    np.testing.assert_array_equal(y, data.y)


def counts(y):
    return np.bincount(y.astype(int)).tolist()


def test_letter(folder):
    data, raw = load("letter"), table(folder, "letter/letter-recognition.data")
    assert (min(counts(data.y)), max(counts(data.y))) == (734, 813)
    np.testing.assert_array_equal(np.array(data.target_names)[data.y], raw[0])
    np.testing.assert_array_equal(data.X, raw.iloc[:, 1:])


def test_pendigits(folder):
    data = load("pendigits")
    _, _, train, test = data.split()
    assert counts(train) == [780, 779, 780, 719, 780, 720, 720, 778, 719, 719]
    assert counts(test) == [363, 364, 364, 336, 364, 335, 336, 364, 336, 336]
    np.testing.assert_array_equal(data.X[data.test], table(folder, "pendigits/pendigits.tes").iloc[:, :-1])


def test_satimage(folder):
    data, raw = load("satimage"), table(folder, "satimage/sat.trn", sep=r"\s+")
    _, _, train, test = data.split()
    assert data.target_names == ("1", "2", "3", "4", "5", "7")
    assert counts(train) == [1072, 479, 961, 415, 470, 1038]
    assert counts(test) == [461, 224, 397, 211, 237, 470]
    np.testing.assert_array_equal(np.array(data.target_names, int)[train], raw[36])
    np.testing.assert_array_equal(data.X[data.train], raw.iloc[:, :-1])


def test_connect4(folder):
    data, raw = load("connect4"), table(folder, "connect4/connect-4.data")
    assert dict(zip(data.target_names, counts(data.y), strict=True)) == {
        "draw": 6449,
        "loss": 16635,
        "win": 44473,
    }
    assert data.categorical == tuple(range(42))
    np.testing.assert_array_equal(np.array(list("box"))[data.X.astype(int)], raw.iloc[:, :-1].astype(str))
    np.testing.assert_array_equal(np.array(data.target_names)[data.y], raw[42])


def test_california_housing(folder):
    data = load("california_housing")
    np.testing.assert_array_equal(
        np.column_stack([data.X, data.y]), table(folder, "california_housing/cal_housing.data")
    )
    assert (data.y.min(), data.y.max(), (data.y == 500_001).sum()) == (14_999, 500_001, 965)


def test_bike_sharing(folder):
    data, raw = load("bike_sharing"), table(folder, "bike_sharing/hour.csv", header=0)
    np.testing.assert_array_equal(data.X, raw[list(data.feature_names)])
    np.testing.assert_array_equal(data.y, raw["cnt"])
    assert not {"instant", "dteday", "casual", "registered"} & set(data.feature_names)
    assert (data.y.min(), data.y.max()) == (1, 977)


def test_abalone(folder):
    data, raw = load("abalone"), table(folder, "abalone/abalone.data")
    assert data.categorical == (0,)
    np.testing.assert_array_equal(np.array(list("FIM"))[data.X[:, 0].astype(int)], raw[0])
    np.testing.assert_array_equal(data.X[:, 1:], raw.iloc[:, 1:-1])
    assert (data.y.min(), data.y.max(), (data.X[:, 3] == 0).sum()) == (1, 29, 2)


def test_airfoil(folder):
    data = load("airfoil")
    assert (data.y.min(), data.y.max()) == (103.38, 140.987)
    np.testing.assert_array_equal(
        data.X, table(folder, "airfoil/airfoil_self_noise.dat", sep="\t").iloc[:, :-1]
    )


@pytest.mark.parametrize(
    ("name", "grades", "rows", "queries"),
    [
        ("mq2008", [12_279, 2001, 931], [2933, 3635, 3062, 2707, 2874], [157, 157, 157, 157, 156]),
        ("ohsumed", [11_303, 2585, 2252], [2570, 3076, 3573, 3538, 3383], [21, 21, 21, 21, 22]),
    ],
)
def test_letor(folder, name, grades, rows, queries):
    data = load(name)
    assert counts(data.y) == grades
    assert (data.X.min(), data.X.max()) == (0, 1)
    assert 1 + np.count_nonzero(np.diff(data.qid)) == len(np.unique(data.qid)) == sum(queries)
    # Fold k tests on part k + 4 and validates on part k + 3.
    for k, fold in enumerate(data.folds):
        assert len(fold.test) == rows[(k + 4) % 5]
        assert len(fold.vali) == rows[(k + 3) % 5]
        assert len(np.unique(data.qid[fold.test])) == queries[(k + 4) % 5]
        np.testing.assert_array_equal(np.sort(np.concatenate(fold)), np.arange(len(data.y)))
        parts = [set(data.qid[part].tolist()) for part in fold]
        assert sum(map(len, parts)) == len(set.union(*parts))


def test_lightgbm_rank(folder):
    data = load("lightgbm_rank")
    _, _, train, test = data.split()
    assert counts(train) == [645, 1211, 858, 222, 69]
    assert counts(test) == [206, 256, 252, 44, 10]
    assert len(np.unique(data.qid[data.train])) == 201
    assert len(np.unique(data.qid[data.test])) == 50
    assert len(np.unique(data.qid)) == 251


def test_terrain(folder):
    grid = datasets.load_terrain()
    assert grid.values.shape == (512, 512)
    found = dict(zip(grid.symbols, counts(grid.values.ravel()), strict=True))
    assert found == {".": 91_112, "@": 63_768, "T": 45_544, "W": 36_776, "S": 24_944}
    lines = (folder / "maps/bloodvenomfalls.map").read_text().splitlines()[4:]
    assert "".join(grid.symbols[code] for code in grid.values[100]) == lines[100]


@pytest.mark.parametrize("given", [True, False])
def test_elevation_with_and_without_a_data_folder(monkeypatch, tmp_path, given, request):
    if given:
        request.getfixturevalue("folder")
    else:
        pytest.importorskip("matplotlib")
        monkeypatch.delenv("CONVEXBOOST_DATA", raising=False)
        monkeypatch.setenv("CONVEXBOOST_CACHE", str(tmp_path))
    grid = datasets.load_elevation()
    assert grid.values.shape == (344, 403)
    assert (grid.values.min(), grid.values.max()) == (236, 1076)
    np.testing.assert_allclose(grid.spacing, 1 / 1200)


def test_elevation_without_matplotlib(monkeypatch, tmp_path):
    monkeypatch.delenv("CONVEXBOOST_DATA", raising=False)
    monkeypatch.setenv("CONVEXBOOST_CACHE", str(tmp_path))
    monkeypatch.setattr(_loaders, "_matplotlib_sample", lambda name: None)
    with pytest.raises(FileNotFoundError, match="matplotlib"):
        datasets.load_elevation()


@pytest.mark.parametrize("name", ["mq2008", "ohsumed"])
def test_letor_cannot_be_downloaded_and_says_what_to_do(monkeypatch, tmp_path, name):
    monkeypatch.delenv("CONVEXBOOST_DATA", raising=False)
    monkeypatch.setenv("CONVEXBOOST_CACHE", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"Fold2/test\.txt is S1\.txt") as caught:
        load(name)
    assert str(tmp_path / name / "S1.txt") in str(caught.value)


TEXTS = [path for path in _loaders.FILES if not path.endswith(".npz")]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("path", TEXTS)
@pytest.mark.parametrize("packed", [False, True])
def test_line_ends_and_gzip_do_not_matter(folder, monkeypatch, tmp_path, path, packed):
    crlf = content(folder, path).replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    copy = tmp_path / (path + ".gz" * packed)
    copy.parent.mkdir(parents=True)
    copy.write_bytes(gzip.compress(crlf, 1) if packed else crlf)
    monkeypatch.setenv("CONVEXBOOST_DATA", str(tmp_path))
    _loaders.FILES[path].load()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("path", TEXTS)
def test_one_changed_digit_is_noticed(folder, monkeypatch, tmp_path, path):
    """The last sign of a line in the middle of the file, comments aside."""
    text = bytearray(content(folder, path))
    end = text.find(b"\n", len(text) // 2)
    comment = text.find(b"#", text.rfind(b"\n", 0, end) + 1, end)
    at = len(text[: end if comment < 0 else comment].rstrip()) - 1
    text[at] = ord("3") if text[at] != ord("3") else ord("4")
    copy = tmp_path / path
    copy.parent.mkdir(parents=True)
    copy.write_bytes(text)
    monkeypatch.setenv("CONVEXBOOST_DATA", str(tmp_path))
    with pytest.raises(
        ValueError, match=r"is not the file that was published.*Replace it by the original"
    ) as caught:
        _loaders.FILES[path].load()
    assert str(copy) in str(caught.value)


def test_the_drawn_split_never_changes():
    train, test = drawn_split(20)
    np.testing.assert_array_equal(np.union1d(train, test), np.arange(20))
    assert test.tolist() == [2, 3, 11, 13]


def test_five_folds():
    folds = five_folds([1, 2, 1, 1, 1])
    assert [fold.test.tolist() for fold in folds] == [[5], [0], [1, 2], [3], [4]]
    assert [fold.vali.tolist() for fold in folds] == [[4], [5], [0], [1, 2], [3]]
    assert folds[3].train.tolist() == [4, 5, 0]


def test_a_dataset_is_frozen():
    data = Dataset("x", np.zeros((2, 1)), np.zeros(2), ("a",), np.array([0]), np.array([1]))
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.X = None
