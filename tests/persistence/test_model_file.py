"""A model file gives back the same model; what cannot be written, or read, is refused with a reason."""

from __future__ import annotations

import datetime
import decimal
import json
import os
import pickle
import stat
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.tree import DecisionTreeRegressor

from convexboost import ConvexBoostClassifier, ConvexBoostRegressor, ModelFormatError, load
from convexboost.boosting import Refit, Residual
from convexboost.core.atomic import write_atomically
from convexboost.estimators._validation import N_FOLDS
from convexboost.learners import Tree
from convexboost.losses import CVaR, Quantile, Softmax
from convexboost.persistence import _container
from convexboost.planning import MaxMarginPlanner
from tests.contracts.conftest import LOSSES, ONE_EACH, UsersPinball
from tests.contracts.conftest import loss as loss_of
from tests.persistence.cases import NAMED, fitted, works

DATA = Path(__file__).parents[1] / "data"


def same(a, b):
    """Compare two values of any kind, NaN like NaN."""
    if isinstance(a, dict):
        return type(a) is type(b) and list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and same(a.ravel().tolist(), b.ravel().tolist())
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and (a == b or a != a or repr(a) == repr(b))


def copied(model, path, **arguments):
    """Save and load; everything that can be compared is compared."""
    model.save(path)
    copy = load(path, **arguments)
    assert type(copy) is type(model)
    assert repr(copy) == repr(model)
    given, found = vars(model), vars(copy)
    assert set(given) == set(found)
    for name in set(given) - {"model_", "_settled", "_columns", "loss_", "loss", "learner", "certificate_"}:
        assert same(given[name], found[name]), name
    assert str(given["certificate_"]) == str(found["certificate_"])
    assert repr(copy.loss_) == repr(model.loss_)
    assert repr(copy._settled) == repr(model._settled)
    return copy


def check_predictions(model, copy, X):
    for method in ("predict", "decision_function", "predict_proba"):
        if hasattr(model, method):
            np.testing.assert_array_equal(getattr(copy, method)(X), getattr(model, method)(X))
    for ours, theirs in zip(copy.staged_predict(X), model.staged_predict(X), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    ("label", "name"), [(label, name) for label in ONE_EACH for name in NAMED if works(label, name)]
)
def test_every_loss_with_every_learner(label, name, tmp_path):
    model, inputs = fitted(label, name)
    own = {"loss": model.loss} if "users" in label or label == "structured" else {}
    copy = copied(model, tmp_path / "model.cbm", **own)
    check_predictions(model, copy, inputs.new)


@pytest.mark.parametrize("label", [label for label in LOSSES if loss_of(label).task != "any"])
def test_every_loss(label, tmp_path):
    model, inputs = fitted(label, "stump")
    model.save(tmp_path / "model")
    custom = any(word in label for word in ("users", "torch", "structured"))
    copy = load(tmp_path / "model", loss=model.loss if custom else None)
    check_predictions(model, copy, inputs.new)
    assert repr(copy.loss_) == repr(model.loss_)


@pytest.mark.parametrize("kind", ["mixed", "sparse"])
@pytest.mark.parametrize("name", NAMED)
def test_missing_values_categories_and_sparse_inputs(name, kind, tmp_path):
    if (name, kind) == ("network", "sparse"):
        kind = "mixed"
    model, inputs = fitted("softmax", name, kind)
    check_predictions(model, copied(model, tmp_path / "m"), inputs.new)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    n = 200
    return pd.DataFrame(
        {
            "number": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "text": pd.Categorical(rng.choice(["Zürich", "Genève", "", "\N{SNOWMAN}"], n)),
            "code": pd.Categorical(rng.choice([3, 5, 9], n)),
            "when": pd.date_range("2020-01-01", periods=n, tz="Europe/Zurich"),
            "late": pd.to_timedelta(rng.integers(0, 99, n), unit="s"),
            "pair": pd.Categorical([(1, 2), (3, 4)] * (n // 2)),
            "flag": rng.random(n) < 0.5,
        }
    )


@pytest.fixture(scope="module")
def labels(frame):
    return (frame["number"].fillna(0.3) + (frame["text"] == "Zürich") > 0.2).to_numpy()


LABELS = {
    "bool": lambda y: y,
    "int": lambda y: np.where(y, 7, -3),
    "float": lambda y: np.where(y, 2.0, 1.0),
    "text": lambda y: np.where(y, "yes", "no"),
    "objects": lambda y: np.array(["ja", "nein"], object)[y.astype(int)],
    "small": lambda y: y.astype(np.int8),
}


@pytest.mark.parametrize("kind", LABELS)
def test_frames_and_labels_of_any_kind(kind, frame, labels, tmp_path):
    y = LABELS[kind](labels)
    model = ConvexBoostClassifier(
        n_rounds=5, class_weight="balanced", random_state=0, early_stopping=False
    ).fit(frame, y)
    copy = copied(model, tmp_path / "m")
    new = frame.assign(text=pd.Categorical(["never seen"] * len(frame)))
    for X in (frame, new):
        check_predictions(model, copy, X)
        assert copy.predict(X).dtype == model.predict(X).dtype
    assert copy.score(frame, y) == model.score(frame, y)
    with pytest.raises(ValueError, match="text"):
        copy.predict(frame.assign(number="a"))


def test_everything_works_after_loading(frame, labels, tmp_path):
    model = ConvexBoostClassifier(
        Softmax(), Tree(max_leaves=4), Residual(0.5), step=Refit(0.2), n_rounds=20, random_state=3
    ).fit(frame, labels, eval_set={"again": (frame, labels)})
    copy = copied(model, tmp_path / "m")
    assert copy.n_members_ == N_FOLDS
    check_predictions(model, copy, frame)
    assert str(copy.diagnose()) == str(model.diagnose())
    with pytest.raises(ValueError, match="the rows that `fit` got"):
        copy.diagnose(frame, labels)
    assert str(copy.diagnose(frame[::2], labels[::2])) == str(model.diagnose(frame[::2], labels[::2]))
    assert str(copy.certify(frame, labels)) == str(model.certify(frame, labels))
    check_predictions(model, pickle.loads(pickle.dumps(copy)), frame)
    check_predictions(model, clone(copy).fit(frame, labels), frame)
    check_predictions(model, copied(copy, tmp_path / "again"), frame)


def test_a_certificate_is_kept(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (80, 2)).astype(float)
    model = ConvexBoostRegressor(learner="stump", certificate=True, l2=0.1, n_rounds=30).fit(X, X[:, 0])
    before = str(model.certificate_), model.certificate_.gap(), model.certificate_.ball(2.0)
    copy = copied(model, tmp_path / "m")
    assert (str(copy.certificate_), copy.certificate_.gap(), copy.certificate_.ball(2.0)) == before


def test_parameters_of_many_kinds(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    model = ConvexBoostRegressor(
        CVaR(Quantile(0.3), 0.5),
        n_rounds=np.int64(3),
        l2=np.float32(0.25),
        categorical_features=np.array([False, False, True]),
        n_jobs=1,
        random_state=np.random.RandomState(5),
    ).fit(X.round(1), X[:, 0])
    model.save(tmp_path / "m")
    copy = ConvexBoostRegressor.load(str(tmp_path / "m"))
    for name, value in model.get_params().items():
        found = copy.get_params()[name]
        if name == "random_state":
            assert found.randint(2**31, size=5).tolist() == value.randint(2**31, size=5).tolist()
        elif "loss" not in name:
            assert same(found, value), name
    np.testing.assert_array_equal(copy.predict(X.round(1)), model.predict(X.round(1)))


def test_rounds_of_every_kind_of_value():
    from convexboost.persistence import Reader, Writer

    values = [
        *(None, True, 0, -(10**30), 1.5, np.nan, -np.inf, "", "ü\ud800", (), (1, "a"), [], {}, {1: {2: "b"}}),
        *(list(range(100)), [0.1] * 50, ["a", "b"], ["a", 1], np.float32(0.1), np.int8(-3), np.bool_(True)),
        *(np.str_("x"), np.datetime64("2020-01-01"), np.datetime64("NaT", "ns"), np.timedelta64(3, "s")),
        *(datetime.date(2020, 2, 29), datetime.datetime(2020, 1, 1, 3, tzinfo=datetime.UTC)),
        *(datetime.timedelta(-1, 5), datetime.time(3, 4), decimal.Decimal("1.10"), b"\x00\xff", Path("a/b")),
        *(np.zeros((2, 0, 3)), np.array(5), np.array(["a", "bcd"]), np.array([None, "a", 3], object)),
        *(np.arange(6, dtype=">i4").reshape(2, 3), np.arange(4).reshape(2, 2).T, np.array([[""]])),
    ]
    writer = Writer({})
    form = json.loads(json.dumps(writer.write(values), allow_nan=False))
    found = Reader({}, writer.all_arrays()).read(form)
    for given, copy in zip(values, found, strict=True):
        if isinstance(given, np.ndarray):
            given = given.astype(given.dtype.newbyteorder("="))
        assert same(given, copy), given
    for matrix in (sp.eye_array(3, format="csr"), sp.eye(3, format="csc"), sp.eye(3, format="coo")):
        writer = Writer({})
        copy = Reader({}, writer.all_arrays() | writer.arrays).read(None)
        form = writer.write(matrix)
        copy = Reader({}, writer.all_arrays()).read(form)
        np.testing.assert_array_equal(copy.toarray(), matrix.toarray())


# --- what is not in a file ---------------------------------------------------------------------------------


def small(**parameters):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    arguments = {"n_rounds": 3, "early_stopping": False, "random_state": 0} | parameters
    return ConvexBoostRegressor(**arguments).fit(X, X[:, 0]), X


def test_an_estimator_must_be_fitted(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        ConvexBoostRegressor().save(tmp_path / "m")


def test_losses_of_your_own_are_passed_again(tmp_path):
    model, X = small(loss=UsersPinball())
    model.save(tmp_path / "m")
    with pytest.raises(ModelFormatError, match=r"UsersPinball: pass it again"):
        load(tmp_path / "m")
    with pytest.raises(ModelFormatError, match=r"fitted with the loss UsersPinball, but `loss` is Quantile"):
        load(tmp_path / "m", loss=Quantile())
    copy = load(tmp_path / "m", loss=UsersPinball())
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    small()[0].save(tmp_path / "m")
    with pytest.raises(ModelFormatError, match=r"would be ignored"):
        load(tmp_path / "m", loss=Quantile())


def test_callbacks_are_not_written(tmp_path):
    model, X = small(callbacks=[lambda record: None])
    model.save(tmp_path / "m")
    copy = load(tmp_path / "m")
    assert copy.callbacks is None
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))


def test_a_loaded_model_does_not_write_to_the_checkpoint(tmp_path):
    model, X = small(checkpoint=tmp_path / "run")
    model.save(tmp_path / "m")
    copy = load(tmp_path / "m")
    assert copy.checkpoint is None
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))


@pytest.mark.parametrize("kind", ["intervals", "periods"])
def test_categories_that_have_no_form_name_their_column(kind, tmp_path):
    length = np.arange(40.0)
    cells = {
        "intervals": lambda: pd.cut(length, 3),
        "periods": lambda: pd.Categorical(pd.period_range("2020-01", periods=4, freq="M").repeat(10)),
    }
    frame = pd.DataFrame({"length": length, "group": cells[kind]()})
    model = ConvexBoostRegressor(n_rounds=2).fit(frame, length)
    with pytest.raises(
        ValueError, match=r"cannot hold the categories of column 'group', such as .*make them text"
    ):
        model.save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_atomically(tmp_path / "link", b"some ", b"bytes")
        assert os.read(reader, 100) == b"some bytes"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)
    assert {path.name for path in tmp_path.iterdir()} == {"pipe", "link"}


def test_a_device_stays_a_device(tmp_path):
    try:
        os.mknod(tmp_path / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        (tmp_path / "null").write_bytes(b"")
    except (AttributeError, OSError):
        pytest.skip("needs the right to make devices")
    small()[0].save(tmp_path / "null")
    assert stat.S_ISCHR(os.stat(tmp_path / "null").st_mode)


def test_code_in_parameters_is_refused(tmp_path):
    model, X = small(scoring=lambda model, X, y: 0.0, early_stopping="auto")
    with pytest.raises(ValueError, match=r"`scoring`=.*set_params"):
        model.save(tmp_path / "m")
    model.set_params(scoring="loss").save(tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").predict(X), model.predict(X))


def test_learners_of_scikit_learn_go_through_skops(tmp_path):
    skops = pytest.importorskip("skops.io")
    model, X = small(learner=DecisionTreeRegressor(max_depth=2))
    with pytest.raises(ValueError, match=r"DecisionTreeRegressor.* skops\.io\.dump"):
        model.save(tmp_path / "m")
    skops.dump(model, tmp_path / "m.skops")
    unknown = skops.get_untrusted_types(file=tmp_path / "m.skops")
    trusted = ("convexboost.", "sklearn.tree._tree.Tree")
    assert all(name.startswith(trusted) for name in unknown), unknown
    copy = skops.load(tmp_path / "m.skops", trusted=unknown)
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))


def test_planners_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"cannot hold a MaxMarginPlanner.*to_plain"):
        MaxMarginPlanner().save(tmp_path / "m")


def test_the_class_must_fit(tmp_path):
    small()[0].save(tmp_path / "m")
    with pytest.raises(
        ModelFormatError, match=r"m' cannot be loaded: it holds a 'ConvexBoostRegressor', not"
    ):
        ConvexBoostClassifier.load(tmp_path / "m")


def test_what_predict_would_refuse_is_refused_by_load(tmp_path):
    path = tmp_path / "m"
    small()[0].save(path)
    description, _ = _container.read(path)
    rewritten(path, description=description | {"parameters": description["parameters"] | {"learner": [None]}})
    with pytest.raises(ModelFormatError, match="`learner` must be"):
        load(path)
    kinds = ["numbers", "numbers", "tuple values"]
    rewritten(path, description=description | {"columns": description["columns"] | {"kinds": kinds}})
    with pytest.raises(ModelFormatError, match="`columns` must have categories where, and only where"):
        load(path)
    frame = pd.DataFrame({"city": pd.Categorical(["Bern", "Biel"] * 20)})
    ConvexBoostRegressor(n_rounds=2).fit(frame, np.arange(40.0)).save(path)
    description, _ = _container.read(path)
    rewritten(
        path, description=description | {"columns": description["columns"] | {"kinds": ["tuple values"]}}
    )
    with pytest.raises(ModelFormatError, match="`categories` of column 'city' must be tuple values"):
        load(path)


class Mine(ConvexBoostRegressor):
    pass


def test_subclasses_load_their_own_files(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    model = Mine(n_rounds=3).fit(X, X[:, 0])
    model.save(tmp_path / "m")
    assert type(Mine.load(tmp_path / "m")) is Mine
    with pytest.raises(ModelFormatError, match="'Mine', which is none of"):
        load(tmp_path / "m")


# --- versions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", sorted(DATA.glob("model_v*.cbm")), ids=lambda path: path.stem)
def test_files_of_old_versions_stay_readable(file):
    """`python -m tests.persistence.golden` writes the file of this version."""
    expected = json.loads(file.with_suffix(".json").read_text())
    model = load(file)
    from tests.persistence.golden import inputs

    np.testing.assert_array_equal(model.predict_proba(inputs()), np.array(expected["probabilities"]))
    assert model.classes_.tolist() == expected["classes"]


def test_there_is_a_file_of_this_version():
    assert (DATA / f"model_v{_container.VERSION}.cbm").exists()


def rewritten(path, metadata=None, description=None, arrays=None):
    """Write a file with other content and the right checksum."""
    content = Path(path).read_bytes()
    (size,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + size])
    old = header["__metadata__"]
    text = old["description"] if description is None else json.dumps(description)
    found = dict(_container.read(path)[1].items()) if arrays is None else arrays
    import safetensors.numpy

    names = {np.dtype(ours): name for name, ours in _container.DTYPES.items()}
    tensors = {name: (names[a.dtype], a.shape, a.tobytes()) for name, a in found.items()}
    new = old | {"description": text, "checksum": _container.checksum(text, tensors)} | (metadata or {})
    Path(path).write_bytes(safetensors.numpy.save(dict(found), new))


@pytest.mark.parametrize(
    ("version", "message"),
    [("2", "newer release"), ("9" * 30, "newer release"), ("x", "whole number"), ("0", "at least 1")],
)
def test_other_versions_are_refused(version, message, tmp_path):
    small()[0].save(tmp_path / "m")
    rewritten(tmp_path / "m", {"version": version})
    with pytest.raises(ModelFormatError, match=f"m' cannot be loaded: .*{message}"):
        load(tmp_path / "m")


def test_unknown_losses_and_versions_of_parts_are_named(tmp_path):
    path = tmp_path / "m"
    small(loss=Quantile(0.3))[0].save(path)
    description, _ = _container.read(path)
    description["loss"]["name"] = "loss.of_the_future"
    rewritten(path, description=description)
    with pytest.raises(ModelFormatError, match=r"knows no 'loss.of_the_future'"):
        load(path)


# --- files that are not there, or broken -------------------------------------------------------------------


def test_files_that_are_no_models(tmp_path):
    path = tmp_path / "m"
    with pytest.raises(FileNotFoundError):
        load(path)
    with pytest.raises(ModelFormatError, match="not a file"):
        load(tmp_path)
    import safetensors.numpy

    for content, message in (
        (b"", "too short"),
        (b"hello world, this is text", "not a model file"),
        (pickle.dumps({"a": 1}) * 10, "not a model file"),
        (struct.pack("<Q", 2**62) + b"{}", "cut short"),
        (struct.pack("<Q", 2) + b"{}", "not a convexboost model"),
        (safetensors.numpy.save({"a": np.zeros(3)}), "not a convexboost model"),
        (struct.pack("<Q", 2**20) + b"{" * 2**20, "header is too large"),
    ):
        path.write_bytes(content)
        with pytest.raises(ModelFormatError, match=message):
            load(path)


def test_a_changed_byte_is_found(tmp_path):
    path = tmp_path / "m"
    small()[0].save(path)
    content = bytearray(path.read_bytes())
    content[-9] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelFormatError, match="checksum"):
        load(path)


def test_an_old_file_survives_a_failure(tmp_path, monkeypatch):
    """Whatever goes wrong while a file is written: the old one is left, and nothing else."""
    path = tmp_path / "m"
    small()[0].save(path)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    for function in ("fsync", "replace"):
        with monkeypatch.context() as patched:
            patched.setattr(os, function, full)
            with pytest.raises(OSError, match=r"No space left on device: '.*/m'$"):
                small(n_rounds=5)[0].save(path)
        assert path.read_bytes() == before
        assert [p.name for p in tmp_path.iterdir()] == ["m"]


#: Saves with a limit to the size of files, as a full disk has, and in a folder that is closed to the process,
#: which gives up the rights of root where it has them; prints the errors.
FAILING = """
import os, resource, signal, sys, convexboost

full, closed = sys.argv[1:]
model = convexboost.load(full)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)

def attempt(path):
    try:
        model.save(path)
    except OSError as error:
        print(type(error).__name__)
    else:
        print("saved")

resource.setrlimit(resource.RLIMIT_FSIZE, (4096, most))
attempt(full)
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
if os.geteuid() == 0:
    os.seteuid(65534)
attempt(closed)
"""


@pytest.fixture(scope="module")
def failing():
    """Return what came of a full disk and of a closed folder: the error, and whether all is as it was."""
    with tempfile.TemporaryDirectory() as name:  # that of pytest is closed to other users
        Path(name).chmod(0o755)
        folders = [Path(name) / kind for kind in ("full", "closed")]
        for folder in folders:
            folder.mkdir()
            small()[0].save(folder / "m")
        before = [(folder / "m").read_bytes() for folder in folders]
        folders[1].chmod(0o555)
        command = [sys.executable, "-c", FAILING, *(folder / "m" for folder in folders)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        folders[1].chmod(0o755)
        assert done.returncode == 0, done.stderr
        names = [[path.name for path in folder.iterdir()] for folder in folders]
        after = [(folder / "m").read_bytes() for folder in folders]
        kept = [these == ["m"] and old == new for these, old, new in zip(names, before, after, strict=True)]
        return dict(zip(("full", "closed"), zip(done.stdout.split(), kept, strict=True), strict=True))


@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
def test_a_full_disk(failing):
    """Limit the size of files, as a full disk does, in another process."""
    assert failing["full"] == ("OSError", True)


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_read_only_folder(failing):
    """In another process, which gives up the rights of root where it has them."""
    assert failing["closed"] == ("PermissionError", True)


def test_a_folder_that_does_not_exist(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"'.*/nowhere/m'$"):
        small()[0].save(tmp_path / "nowhere" / "m")


def test_links_and_permissions_are_kept(tmp_path):
    path, link = tmp_path / "m", tmp_path / "link"
    model, _ = small()
    model.save(path)
    path.chmod(0o640)
    link.symlink_to(path)
    model.save(link)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    load(link)
