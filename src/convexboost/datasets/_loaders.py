"""One loader per data set."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, Literal, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from convexboost.datasets._dataset import Dataset, Grid, drawn_split, five_folds, leading_split
from convexboost.datasets._files import Arrays, File
from convexboost.datasets._letor import read_parts

UCI = "https://archive.ics.uci.edu/static/public/"
LIGHTGBM = "https://raw.githubusercontent.com/microsoft/LightGBM/v4.6.0/examples/lambdarank/"
HOG2 = "https://raw.githubusercontent.com/nathansttt/hog2/9f6bc828f0a791b849f59d047d0df27a948f9603/maps/"


class Loader(Protocol):
    """What every `load_...` is: called plainly it returns a `Dataset`, with `return_X_y` only X and y."""

    @overload
    def __call__(self, *, return_X_y: Literal[False] = False) -> Dataset: ...
    @overload
    def __call__(self, *, return_X_y: Literal[True]) -> tuple[NDArray[Any], NDArray[Any]]: ...


_LOADERS: dict[str, Loader] = {}


def available() -> tuple[str, ...]:
    """Return the names that `load` knows."""
    return tuple(sorted(_LOADERS))


def load(name: str) -> Dataset:
    """Load a data set by name."""
    if name not in _LOADERS:
        raise ValueError(f"`name` must be one of {', '.join(available())}, got {name!r}")
    return _LOADERS[name]()


def _loader(function: Callable[[], Dataset]) -> Loader:
    """Give a loader `return_X_y`, and `load` its name."""

    @wraps(function)
    def loader(*, return_X_y: bool = False) -> Any:
        data = function()
        return (data.X, data.y) if return_X_y else data

    del loader.__wrapped__  # whose signature lacks return_X_y
    _LOADERS[function.__name__.removeprefix("load_")] = loader
    return loader


# ---------------------------------------------------------------------------------------------- parsing


def _numbers(text: bytes, **options: Any) -> NDArray[np.float64]:
    if not text.strip():
        raise ValueError("it is empty")
    return np.loadtxt(io.StringIO(text.decode("latin1")), ndmin=2, **options)


def _regression(table: NDArray[np.float64]) -> Arrays:
    return table[:, :-1].copy(), table[:, -1].copy()


def _classes(table: NDArray[np.float64]) -> Arrays:
    return table[:, :-1].copy(), table[:, -1].astype(np.int64)


def _encode(text: bytes, codes: dict[str, int]) -> bytes:
    """Replace words by their codes, longer words first."""
    for word in sorted(codes, key=len, reverse=True):
        text = text.replace(word.encode(), str(codes[word]).encode())
    return text


def _letter(text: bytes) -> Arrays:
    table = _numbers(text, delimiter=",", converters={0: lambda letter: ord(letter) - ord("A")})
    return _classes(np.roll(table, -1, axis=1))


def _pendigits(text: bytes) -> Arrays:
    return _classes(_numbers(text, delimiter=","))


def _satimage(text: bytes) -> Arrays:
    X, y = _classes(_numbers(text))
    return X, np.searchsorted([1, 2, 3, 4, 5, 7], y).astype(np.int64)


def _connect4(text: bytes) -> Arrays:
    codes = {"b": 0, "o": 1, "x": 2, "draw": 0, "loss": 1, "win": 2}
    return _classes(_numbers(_encode(text, codes), delimiter=","))


def _abalone(text: bytes) -> Arrays:
    return _regression(_numbers(_encode(text, {"F": 0, "I": 1, "M": 2}), delimiter=","))


def _bike_sharing(text: bytes) -> Arrays:
    # Not instant and dteday, which name the row, nor casual and registered, which add up to the target.
    return _regression(_numbers(text, delimiter=",", skiprows=1, usecols=(*range(2, 14), 16)))


def _california_housing(text: bytes) -> Arrays:
    return _regression(_numbers(text, delimiter=","))


def _airfoil(text: bytes) -> Arrays:
    return _regression(_numbers(text))


def _graded(n_features: int) -> Callable[[bytes], Arrays]:
    def parse(text: bytes) -> Arrays:
        X, y, qid, _ = read_parts([text], n_features)
        return (X, y) if qid is None else (X, y, qid)

    return parse


def _counts(text: bytes) -> Arrays:
    return (_numbers(text)[:, 0].astype(np.int64),)


def _elevation(content: bytes) -> Arrays:
    with np.load(io.BytesIO(content)) as file:
        return file["elevation"].astype(float), np.array([file["dy"], file["dx"]], float)


_SYMBOLS = (".", "@", "S", "T", "W")


def _terrain(text: bytes) -> Arrays:
    header, _, body = text.replace(b"\r\n", b"\n").partition(b"map\n")
    size = re.search(rb"height (\d+)\nwidth (\d+)", header)
    if size is None:
        raise ValueError("the header says no height and width")
    cells = np.frombuffer(body.replace(b"\n", b""), np.uint8).reshape(int(size[1]), int(size[2]))
    symbols = np.array([ord(symbol) for symbol in _SYMBOLS])
    if not np.isin(cells, symbols).all():
        raise ValueError(f"cells must be one of {' '.join(_SYMBOLS)}")
    return (np.searchsorted(symbols, cells).astype(np.uint8),)


# ------------------------------------------------------------------------------------------------ files


def _letor(name: str, n_features: int, release: str, *sha256: str) -> list[File]:
    """S1..S5 of a LETOR set, which are the test files of folds 2, 3, 4, 5, 1."""
    hint = (
        "Get {} from Microsoft Research (https://www.microsoft.com/en-us/research/project/letor-learning-rank-"
        "information-retrieval/); its Fold{}/test.txt is S{}.txt."
    )
    return [
        File(f"{name}/S{k}.txt", _graded(n_features), sha, hint=hint.format(release, k % 5 + 1, k))
        for k, sha in enumerate(sha256, 1)
    ]


_PENDIGITS = UCI + "81/pen+based+recognition+of+handwritten+digits.zip"
_SATIMAGE = UCI + "146/statlog+landsat+satellite.zip"
# scikit-learn's copy: StatLib's own file has the columns in another order, below a page of text.
_CALIFORNIA = "https://ndownloader.figshare.com/files/5976036"

FILES = {
    file.path: file
    for file in (
        File(
            "letter/letter-recognition.data",
            _letter,
            "3e1d9d034d895a07147d732e7c003a8b3b462a178d732bd843494b3a81622387",
            UCI + "59/letter+recognition.zip",
        ),
        File(
            "pendigits/pendigits.tra",
            _pendigits,
            "62fcb38f880290b6b38b3759299273be6a72570c21935aa69bc6c993c447312a",
            _PENDIGITS,
        ),
        File(
            "pendigits/pendigits.tes",
            _pendigits,
            "7d317f54ec2a178641a40537065dff6f856ab31aabdae5ed1f68615534370e48",
            _PENDIGITS,
        ),
        File(
            "satimage/sat.trn",
            _satimage,
            "88c795acce8913a9abbc25d27d9929b47eb274010d4450cab57da1338486fe97",
            _SATIMAGE,
        ),
        File(
            "satimage/sat.tst",
            _satimage,
            "d6a3b895d499e92e62228ac385f7d35dd69522811f3ebb44e9d97ba0d5e36a10",
            _SATIMAGE,
        ),
        File(
            "connect4/connect-4.data",
            _connect4,
            "7d6f7d09305ac3d2151e15dce8e63bd38c59c33f643de1fc6e971cd388b08dfc",
            UCI + "26/connect+4.zip",
        ),
        File(
            "california_housing/cal_housing.data",
            _california_housing,
            "31d90c5ca400cffaca822a17d1ee1ea0a7037850299ade2d3414ed70ac5cd2f8",
            _CALIFORNIA,
        ),
        File(
            "bike_sharing/hour.csv",
            _bike_sharing,
            "ee4362737f11fbdabbffe3ba58c032f1929943d0c4854f4ddcfb10b1010a04f4",
            UCI + "275/bike+sharing+dataset.zip",
        ),
        File(
            "abalone/abalone.data",
            _abalone,
            "961e21e29c0eb3f0d205c6f5c1924f6f09423cee5e89f22d4c9a0256b2d777e4",
            UCI + "1/abalone.zip",
        ),
        File(
            "airfoil/airfoil_self_noise.dat",
            _airfoil,
            "d099826fad8e373e505612e6e331c388638c213c6e83e5b58fd2b58c404df870",
            UCI + "291/airfoil+self+noise.zip",
        ),
        File(
            "lightgbm_rank/rank.train",
            _graded(300),
            "6a0afc67944263378895325a7e152f785a4871f19207ad1d590cae2929920839",
            LIGHTGBM + "rank.train",
        ),
        File(
            "lightgbm_rank/rank.train.query",
            _counts,
            "dd690b45e7bc5d622cc6340b080b0ebf410e59ecc08c4635e1a91028b6f384fe",
            LIGHTGBM + "rank.train.query",
        ),
        File(
            "lightgbm_rank/rank.test",
            _graded(300),
            "2b008894501f8c90ea9ae81470f1a57b3c0457a932c944aa595d9553a0860424",
            LIGHTGBM + "rank.test",
        ),
        File(
            "lightgbm_rank/rank.test.query",
            _counts,
            "319c5d186725628aa5a63d8aa8a6349f76e455f5a0698ed0ef58742249f4758f",
            LIGHTGBM + "rank.test.query",
        ),
        *_letor(
            "mq2008",
            46,
            "MQ2008 of LETOR 4.0",
            "b1a63ce542afbd6883296eb20ee906c5ba4772cb3537537a5108b7409f25862f",
            "abd5b1ce9d0f4e89ff9438a467103e8831069707d0e6d68633d79c8bc565312d",
            "006c58a3f047eebd4f1b6d98b87d4921bc383d97ce5c13ba8b040caa9774a365",
            "0948e07f49be3e0f06e3611f0b047b34b6085f3dd26b425c55bab8d0056d760d",
            "cb3c38f2299064324094ba3f799e4c87f75007b4b5ca5c3bb1176615f78872bb",
        ),
        *_letor(
            "ohsumed",
            45,
            "OHSUMED/QueryLevelNorm of LETOR 3.0",
            "7009674fc10851b5757b46c6295c8f5533f153eee58d3c10923007849d2b968e",
            "025a5b88ecb847e7ce08ac2afc438187099727bb3aec7e8f2cb72eac6ac9be65",
            "3ea015cbc81ce681a1ad2ea3c9ef88439657b5c58a154a2872f8c18b27cdf059",
            "7ccee4d5eb4aedc79e8ae90ecbf90f28f686a10380c41a96224c9a0c8e2f5944",
            "d5bf3a74fa01137d911518daa0962338e9815778f32e79c524a02596ebf71c53",
        ),
        File(
            "maps/bloodvenomfalls.map",
            _terrain,
            "291d18186fa4ba02d28ed7c33cffbb8aabf9d1c18e73147034dba871237a059c",
            HOG2 + "wc3maps512/bloodvenomfalls.map",
        ),
        File(
            "maps/jacksboro_fault_dem.npz",
            _elevation,
            "5535b3cdb28d7c95826e475ab41860164d0a534ce82af1f1f2a6ae4626eb7db9",
            hint="It comes with matplotlib: install that.",
        ),
    )
}


def _stack(*paths: str) -> tuple[Any, ...]:
    """Load files and put their arrays one below the other."""
    return tuple(
        np.concatenate(arrays) for arrays in zip(*(FILES[path].load() for path in paths), strict=True)
    )


# ---------------------------------------------------------------------------------------------- loaders


@_loader
def load_letter() -> Dataset:
    """UCI Letter Recognition: 20,000 images, 16 integers, 26 classes; the first 16,000 rows train."""
    X, y = FILES["letter/letter-recognition.data"].load()
    names = (
        *("x-box", "y-box", "width", "high", "onpix", "x-bar", "y-bar", "x2bar"),
        *("y2bar", "xybar", "x2ybr", "xy2br", "x-ege", "xegvy", "y-ege", "yegvx"),
    )
    letters = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    return Dataset("letter", X, y, names, *leading_split(16_000, len(y)), letters)


@_loader
def load_pendigits() -> Dataset:
    """UCI Pen-Based Digits: 7,494 training and 3,498 test rows by other writers, 16 integers, 10 classes."""
    X, y = _stack("pendigits/pendigits.tra", "pendigits/pendigits.tes")
    names = tuple(f"{axis}{i}" for i in range(1, 9) for axis in "xy")
    return Dataset("pendigits", X, y, names, *leading_split(7494, len(y)), tuple("0123456789"))


@_loader
def load_satimage() -> Dataset:
    """UCI Statlog Landsat: 4,435 training and 2,000 test rows, 4 bands of 3x3 pixels, 6 classes (1-5, 7)."""
    X, y = _stack("satimage/sat.trn", "satimage/sat.tst")
    names = tuple(f"pixel {pixel} band {band}" for pixel in range(1, 10) for band in range(1, 5))
    return Dataset("satimage", X, y, names, *leading_split(4435, len(y)), tuple("123457"))


@_loader
def load_connect4() -> Dataset:
    """UCI Connect-4: 67,557 boards, 42 squares (b, o, x become 0, 1, 2), classes draw, loss, win for x.

    No official split: a fifth of the rows, always the same, is for testing.
    """
    X, y = FILES["connect4/connect-4.data"].load()
    names = tuple(column + row for column in "abcdefg" for row in "123456")
    results = ("draw", "loss", "win")
    return Dataset("connect4", X, y, names, *drawn_split(len(y)), results, categorical=tuple(range(42)))


@_loader
def load_california_housing() -> Dataset:
    """California housing (Pace & Barry 1997): 20,640 blocks, 8 reals, median house value in USD.

    The columns are those of the original file; scikit-learn's version divides some by others.  No official
    split: a fifth of the rows, always the same, is for testing.
    """
    X, y = FILES["california_housing/cal_housing.data"].load()
    names = (
        *("longitude", "latitude", "housing median age", "total rooms"),
        *("total bedrooms", "population", "households", "median income"),
    )
    return Dataset("california_housing", X, y, names, *drawn_split(len(y)))


@_loader
def load_bike_sharing() -> Dataset:
    """UCI Bike Sharing, hourly: 17,379 hours, 12 features, number of bicycles rented.

    Without instant and dteday, which name the row, and casual and registered, which add up to the target.
    No official split: a fifth of the rows, always the same, is for testing.
    """
    X, y = FILES["bike_sharing/hour.csv"].load()
    names = (
        *("season", "yr", "mnth", "hr", "holiday", "weekday"),
        *("workingday", "weathersit", "temp", "atemp", "hum", "windspeed"),
    )
    return Dataset("bike_sharing", X, y, names, *drawn_split(len(y)))


@_loader
def load_abalone() -> Dataset:
    """UCI Abalone: 4,177 shells, sex (F, I, M become 0, 1, 2) and 7 reals, number of rings.

    No official split: a fifth of the rows, always the same, is for testing.
    """
    X, y = FILES["abalone/abalone.data"].load()
    names = (
        *("sex", "length", "diameter", "height"),
        *("whole weight", "shucked weight", "viscera weight", "shell weight"),
    )
    return Dataset("abalone", X, y, names, *drawn_split(len(y)), categorical=(0,))


@_loader
def load_airfoil() -> Dataset:
    """UCI Airfoil Self-Noise: 1,503 measurements, 5 reals, sound pressure in dB.

    No official split: a fifth of the rows, always the same, is for testing.
    """
    X, y = FILES["airfoil/airfoil_self_noise.dat"].load()
    names = ("frequency", "angle of attack", "chord length", "free-stream velocity", "displacement thickness")
    return Dataset("airfoil", X, y, names, *drawn_split(len(y)))


@_loader
def load_mq2008() -> Dataset:
    """LETOR 4.0 MQ2008: 15,211 documents of 784 queries, 46 reals in [0, 1], grades 0, 1, 2; five folds."""
    return _load_letor("mq2008")


@_loader
def load_ohsumed() -> Dataset:
    """LETOR 3.0 OHSUMED: 16,140 documents of 106 queries, 45 reals in [0, 1], grades 0, 1, 2; five folds."""
    return _load_letor("ohsumed")


def _load_letor(name: str) -> Dataset:
    parts = [FILES[f"{name}/S{k}.txt"].load() for k in range(1, 6)]
    X, y, qid = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    folds = five_folds([len(part[0]) for part in parts])
    return Dataset(name, X, y, _numbered(X), folds[0].train, folds[0].test, qid=qid, folds=folds)


@_loader
def load_lightgbm_rank() -> Dataset:
    """LightGBM's ranking sample: 3,005 training and 768 test rows, 251 queries, 300 features, grades 0 to 4.

    Of unknown origin, so a smoke test and no benchmark.  Queries are numbered 0, 1, ...; there are no folds.
    """
    X, y = _stack("lightgbm_rank/rank.train", "lightgbm_rank/rank.test")
    (counts,) = _stack("lightgbm_rank/rank.train.query", "lightgbm_rank/rank.test.query")
    qid = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    return Dataset("lightgbm_rank", X, y, _numbered(X), *leading_split(3005, len(y)), qid=qid)


def _numbered(X: NDArray[Any]) -> tuple[str, ...]:
    return tuple(f"feature {i}" for i in range(1, X.shape[1] + 1))


def load_elevation() -> Grid:
    """Elevation in metres round the Jacksboro fault, 344 x 403 cells; matplotlib ships the file."""
    file = FILES["maps/jacksboro_fault_dem.npz"]
    path = file.find() or _matplotlib_sample("jacksboro_fault_dem.npz")
    values, spacing = file.read(path) if path else file.load()
    return Grid("elevation", values, (float(spacing[0]), float(spacing[1])))


def _matplotlib_sample(name: str) -> Path | None:
    try:
        from matplotlib.cbook import get_sample_data

        return Path(get_sample_data(name, asfileobj=False))
    except (ImportError, FileNotFoundError):  # some distributors leave the samples out
        return None


def load_terrain() -> Grid:
    """A game level of 512 x 512 cells: . ground, @ out of bounds, S swamp, T trees, W water."""
    (values,) = FILES["maps/bloodvenomfalls.map"].load()
    return Grid("terrain", values, symbols=_SYMBOLS)
