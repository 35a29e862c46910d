"""The reader of ranking files against scikit-learn's, and its memory at the size of MSLR-WEB10K."""

import gzip
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from convexboost.datasets import _letor, load_mslr, read_letor


def block(rows, n_features=136, seed=0):
    """Rows as MSLR prints them, half integers, half six decimals; their text has QQQQQQ for the query."""
    rng = np.random.default_rng(seed)
    whole = np.arange(n_features) % 2 == 0
    numbers = rng.uniform(-1, 100, (rows, n_features)).round(6)
    X = np.where(whole, rng.integers(0, 100_000, numbers.shape), numbers)
    y = rng.integers(0, 5, rows)
    form = " ".join(f"{j}:%d" if w else f"{j}:%.6f" for j, w in enumerate(whole, 1))
    lines = (
        f"{grade} qid:QQQQQQ {form % tuple(row)} \n"
        for grade, row in zip(y.tolist(), X.tolist(), strict=True)
    )
    return X, y, "".join(lines).encode()


def write_fold(folder, text, n_blocks):
    """Write train, vali and test of so many copies of a block, each a query of its own."""
    (folder / "Fold1").mkdir(parents=True)
    query = 100_000
    for part, n in zip(("train", "vali", "test"), n_blocks, strict=True):
        with open(folder / "Fold1" / f"{part}.txt", "wb") as file:
            for _ in range(n):
                file.write(text.replace(b"QQQQQQ", b"%d" % query))
                query += 1


def reference(path, n_features=None):
    X, y, qid = load_svmlight_file(path, n_features=n_features, query_id=True, zero_based=False)
    return X.toarray(), y, qid


def assert_same(found, expected):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("chunk", [50, 1000, 1 << 22])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("ends", [b"\n", b"\r\n"])
def test_agrees_with_scikit_learn(tmp_path, monkeypatch, chunk, packed, ends):
    """Every bit, wherever the text is cut into chunks."""
    monkeypatch.setattr(_letor, "CHUNK", chunk)
    _, _, text = block(60, 9)
    text = text.replace(b"QQQQQQ", b"17")
    (tmp_path / "plain").write_bytes(text)
    text = text.replace(b"\n", ends)
    (tmp_path / "file").write_bytes(gzip.compress(text) if packed else text)
    assert_same(read_letor(tmp_path / "file"), reference(tmp_path / "plain"))


@pytest.mark.parametrize("scale", [1e-300, 1e-20, 1e-3, 1.0, 1e5, 1e20, 1e300])
def test_long_numbers_are_read_exactly(tmp_path, scale):
    """Sixteen digits and more, exponents, signs, gaps between the features."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 7)) * scale * (rng.random((50, 7)) < 0.5)
    X[0, -1] = scale
    y, qid = rng.normal(size=50), np.repeat(np.arange(10), 5)
    dump_svmlight_file(X, y, str(tmp_path / "file"), zero_based=False, query_id=qid)
    assert_same(read_letor(tmp_path / "file"), reference(str(tmp_path / "file")))


def test_every_short_decimal_is_the_nearest_double(tmp_path):
    rng = np.random.default_rng(2)
    digits = rng.integers(1, 16, 20_000)
    words = [
        f"{'-' * (i % 2)}{rng.integers(0, 10**d) / 10 ** rng.integers(0, d + 1):.{rng.integers(0, d + 1)}f}"
        for i, d in enumerate(digits)
    ]
    (tmp_path / "file").write_text("".join(f"{word} 1:{word}\n" for word in words))
    X, y, _ = read_letor(tmp_path / "file")
    expected = np.array([float(word) for word in words])
    np.testing.assert_array_equal(X[:, 0], expected)
    np.testing.assert_array_equal(y, expected)


def read_text(tmp_path, text, **options):
    (tmp_path / "file.txt").write_text(text)
    return read_letor(tmp_path / "file.txt", **options)


def test_comments_blank_lines_gaps_and_no_last_newline(tmp_path):
    text = "# head 9:9\n\n1 qid:3 2:0.5#docid = 7:7\n  0 qid:3\t1:+2e1  3:nan # x\n \n2 qid:12"
    X, y, qid = read_text(tmp_path, text)
    np.testing.assert_array_equal(X, [[0, 0.5, 0], [20, 0, np.nan], [0, 0, 0]])
    np.testing.assert_array_equal(y, [1, 0, 2])
    np.testing.assert_array_equal(qid, [3, 3, 12])


def test_without_qid(tmp_path):
    X, y, qid = read_text(tmp_path, "-1 1:1\n+1 4:0.25\n", n_features=6, dtype=np.float32)
    assert qid is None
    assert X.dtype == np.float32
    np.testing.assert_array_equal(y, [-1, 1])
    np.testing.assert_array_equal(X, [[1, 0, 0, 0, 0, 0], [0, 0, 0, 0.25, 0, 0]])


def test_an_empty_file_has_no_rows(tmp_path):
    X, y, qid = read_text(tmp_path, "")
    assert X.shape == (0, 0)
    assert len(y) == 0
    assert qid is None


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("1 qid:1 1:a", "'a' is no number"),
        ("1 qid:1 1:", "expected"),
        ("1 qid:1 1:2:3", "expected"),
        ("1 qid:1 1:1_000", "'1_000' is no number"),
        ("1 qid:1 one:2", "expected"),
        ("1 qid:1 5", "expected"),
        ("1 qid:1 :5", "expected"),
        ("1 qid: 1:5", "expected"),
        ("1 qid:x 1:5", "expected"),
        ("1 1:5 qid:1", "expected"),
        ("1 q", "expected"),
        ("word qid:1 1:2", "'word' is no number"),
        ("1:2 2:3", "expected"),
        ("1 qid:1 0:2", "rise"),
        ("1 qid:1 2:2 1:1", "rise"),
        ("1 qid:1 2:2 2:1", "rise"),
        ("1 qid:1 4:2", "rise"),
        ("1 1:2", "`qid` on some lines only"),
    ],
)
@pytest.mark.parametrize("chunk", [20, 1 << 22])
def test_a_malformed_line_is_named(tmp_path, monkeypatch, line, problem, chunk):
    monkeypatch.setattr(_letor, "CHUNK", chunk)
    with pytest.raises(ValueError, match=problem) as caught:
        read_text(tmp_path, f"# head\n1 qid:1 3:2\n\n{line}\n1 qid:1 3:2\n", n_features=3)
    assert re.match(rf"{re.escape(str(tmp_path / 'file.txt'))}, line 4, column \d+: ", str(caught.value))
    assert repr(line) in str(caught.value)


def test_the_column_of_a_bad_token_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"line 2, column 11: 'x' is no number, got '1 qid:1 1:x'"):
        read_text(tmp_path, "1 qid:1 1:2\n1 qid:1 1:x\n")


def test_a_long_malformed_line_is_shortened(tmp_path):
    with pytest.raises(ValueError, match="line 1") as caught:
        read_text(tmp_path, "1 " + " ".join(f"{i}:x" for i in range(1, 10_000)))
    assert len(str(caught.value)) < 300 + len(str(tmp_path))


def test_load_mslr(tmp_path):
    X, y, text = block(40)
    write_fold(tmp_path, text, (3, 2, 1))
    data = load_mslr(tmp_path)
    np.testing.assert_array_equal(data.X, np.tile(X, (6, 1)))
    np.testing.assert_array_equal(data.y, np.tile(y, 6))
    np.testing.assert_array_equal(data.qid, np.repeat(np.arange(100_000, 100_006), 40))
    assert [len(rows) for rows in data.folds[0]] == [120, 80, 40]
    assert np.array_equal(np.concatenate(data.folds[0]), np.arange(240))
    X_train, X_test, y_train, y_test = data.split()
    assert np.shares_memory(X_train, data.X)
    assert np.shares_memory(X_test, data.X)
    assert (len(y_train), len(y_test)) == (120, 40)


def test_load_mslr_bad_input(tmp_path):
    with pytest.raises(ValueError, match="`fold` must be one of 1, 2, 3, 4, 5, got 6"):
        load_mslr(tmp_path, 6)
    with pytest.raises(FileNotFoundError, match=r"Fold2.train\.txt"):
        load_mslr(tmp_path, 2)
    write_fold(tmp_path, b"1 1:2\n", (1, 1, 1))
    with pytest.raises(ValueError, match=r"train\.txt, line 1: MSLR lines need a `qid`"):
        load_mslr(tmp_path)


MEASURE = """
import json, re, sys, time
import numpy as np
from convexboost.datasets import load_mslr
start = time.perf_counter()
data = load_mslr(sys.argv[1])
seconds = time.perf_counter() - start
rows = np.load(sys.argv[2])
np.savez(sys.argv[3], X=data.X[rows], y=data.y[rows], qid=data.qid[rows])
# Of this program alone; ru_maxrss would include the process that started it.
peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
speed = len(data.y) / seconds
print(json.dumps({"shape": data.X.shape, "peak_gb": peak * 1024 / 1e9, "rows_per_second": speed}))
"""


TRAIN = """
import json, re, sys
from convexboost.paper import ranking
ranking.best_feature = lambda dataset, fold: {}  # takes minutes, and no memory
curves = {a: ranking.train("mslr", 1, a, "auto", 6, lambda record: None) for a in ranking.PAPER}
peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
told = {a: [c["seconds"][-1], c["objective"][-1], c["test_ndcg"][-1]] for a, c in curves.items()}
print(json.dumps({"peak_gb": peak * 1024 / 1e9, "runs": told, "rows": curves["naive"].facts["rows"]}))
"""


def _train(folder):
    """Train a few rounds of each algorithm as `convexboost reproduce ranking` does."""
    environment = os.environ | {"CONVEXBOOST_MSLR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", TRAIN], check=True, capture_output=True, text=True, env=environment
    )
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
def test_full_size_fits_in_4_gb(tmp_path):
    """1.2 million rows of 136 features, the size of MSLR-WEB10K."""
    size, n_blocks = 5000, (144, 48, 48)
    X, y, text = block(size)
    write_fold(tmp_path / "mslr", text, n_blocks)
    rows = np.sort(np.random.default_rng(0).choice(size * sum(n_blocks), 20_000, replace=False))
    np.save(tmp_path / "rows.npy", rows)
    command = [
        sys.executable,
        "-c",
        MEASURE,
        tmp_path / "mslr",
        tmp_path / "rows.npy",
        tmp_path / "found.npz",
    ]
    result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    trained = _train(tmp_path / "mslr")
    for file in (tmp_path / "mslr" / "Fold1").iterdir():
        file.unlink()  # 1.7 GB
    print(result, trained)
    assert result["shape"] == [1_200_000, 136]
    assert result["peak_gb"] < 4
    assert trained["rows"] == [720_000, 240_000, 240_000]
    assert trained["peak_gb"] < 4
    with np.load(tmp_path / "found.npz") as found:
        np.testing.assert_array_equal(found["X"], X[rows % size])
        np.testing.assert_array_equal(found["y"], y[rows % size])
        np.testing.assert_array_equal(found["qid"], 100_000 + rows // size)
