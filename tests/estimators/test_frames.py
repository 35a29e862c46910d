"""Columns of every dtype: read right, or refused by name."""

from __future__ import annotations

import datetime as dt
import itertools
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from convexboost import ConvexBoostClassifier, ConvexBoostRanker, ConvexBoostRegressor
from convexboost.estimators._frames import _seconds

N = 60
RNG = np.random.default_rng(0)
#: Whole seconds, before and after 1970, some missing.
SECONDS = RNG.integers(-(10**9), 2 * 10**9, N).astype(float)
Y = np.where(SECONDS > 5e8, 3.0, 0.0) + RNG.normal(size=N) / 10
SECONDS[::9] = np.nan
NOISE = RNG.normal(size=N)
NAIVE = np.array(
    [None if np.isnan(s) else dt.datetime(1970, 1, 1) + dt.timedelta(seconds=s) for s in SECONDS], object
)
AWARE = np.array([None if t is None else t.replace(tzinfo=dt.UTC) for t in NAIVE], object)
LENGTHS = np.array([None if np.isnan(s) else dt.timedelta(seconds=s) for s in SECONDS], object)


def regressor(**options):
    return ConvexBoostRegressor(learner="stump", n_rounds=8, early_stopping=False, n_jobs=1, **options)


def arrow(values, kind):
    return pd.Series(pd.array([None if v is None else v for v in values], dtype=pd.ArrowDtype(kind)))


def pandas_frame(column):
    return pd.DataFrame({"noise": NOISE, "when": column})


def polars_frame(column):
    return pl.DataFrame({"noise": NOISE, "when": column})


def naive():
    index = pd.Series(pd.to_datetime(NAIVE))
    found = {f"pandas {unit}": pandas_frame(index.astype(f"datetime64[{unit}]")) for unit in UNITS}
    found |= {
        f"polars {unit}": polars_frame(pl.Series(NAIVE.tolist(), dtype=pl.Datetime(unit))) for unit in PL
    }
    found |= {f"arrow {unit}": pandas_frame(arrow(NAIVE, pa.timestamp(unit))) for unit in UNITS}
    found["pandas object"] = pandas_frame(pd.Series(NAIVE, dtype=object))
    found["pandas timestamps"] = pandas_frame(pd.Series([pd.Timestamp(t) for t in NAIVE], dtype=object))
    found["array of objects"] = np.column_stack([NOISE.astype(object), NAIVE])
    return found


def aware():
    index = pd.Series(pd.to_datetime(AWARE, utc=True))
    found = {
        f"pandas {unit} {zone}": pandas_frame(index.dt.tz_convert(zone).dt.as_unit(unit))
        for unit, zone in itertools.product(UNITS, ["UTC", "Asia/Kathmandu"])
    }
    series = pl.Series(AWARE.tolist(), dtype=pl.Datetime("us", "UTC"))
    found |= {
        f"polars {zone}": polars_frame(series.dt.convert_time_zone(zone)) for zone in ("UTC", "Asia/Tokyo")
    }
    found["polars ns"] = polars_frame(series.cast(pl.Datetime("ns", "UTC")))
    found["arrow"] = pandas_frame(arrow(AWARE, pa.timestamp("us", "Asia/Kathmandu")))
    found["pandas object"] = pandas_frame(pd.Series(AWARE, dtype=object))
    found["array of objects"] = np.column_stack([NOISE.astype(object), AWARE])
    return found


def lengths():
    index = pd.Series(pd.to_timedelta(LENGTHS))
    found = {f"pandas {unit}": pandas_frame(index.astype(f"timedelta64[{unit}]")) for unit in UNITS}
    found |= {
        f"polars {unit}": polars_frame(pl.Series(LENGTHS.tolist(), dtype=pl.Duration(unit))) for unit in PL
    }
    found["arrow"] = pandas_frame(arrow(LENGTHS, pa.duration("ms")))
    found["pandas object"] = pandas_frame(pd.Series(LENGTHS, dtype=object))
    return found


UNITS, PL = ("s", "ms", "us", "ns"), ("ms", "us", "ns")
KINDS = {
    "datetimes without a time zone": naive,
    "datetimes with a time zone": aware,
    "durations": lengths,
}


def numbers():
    return pandas_frame(SECONDS)


@pytest.mark.parametrize("kind", KINDS)
def test_times_are_seconds_whatever_holds_them(kind):
    """Fitted in any form, a model predicts the same in every form as one that was given seconds."""
    every = KINDS[kind]()
    expected = regressor().fit(numbers(), Y).predict(numbers())
    assert len(np.unique(expected)) > 4
    for name, frame in every.items():
        model = regressor().fit(frame, Y)
        np.testing.assert_array_equal(model.predict(frame), expected, err_msg=name)
    model = regressor().fit(pandas_of(every), Y)
    for name, frame in every.items():
        if not isinstance(frame, np.ndarray):
            np.testing.assert_array_equal(model.predict(frame), expected, err_msg=name)


def pandas_of(every):
    return every["pandas s"] if "pandas s" in every else every["pandas s UTC"]


@pytest.mark.parametrize(("fitted", "given"), list(itertools.permutations([*KINDS, "numbers"], 2)))
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_another_kind_of_column_is_refused_by_name(fitted, given, library):
    def frame(kind):
        if kind == "numbers":
            return (pandas_frame if library == "pandas" else polars_frame)(SECONDS)
        return next(frame for name, frame in KINDS[kind]().items() if name.startswith(library))

    model = regressor().fit(frame(fitted), Y)
    message = f"column 'when' of `X` holds {given}, but the model was fitted to {fitted}"
    with pytest.raises(ValueError, match=message):
        model.predict(frame(given))
    with pytest.raises(ValueError, match=message.replace("`X`", "`X_val`")):
        regressor().fit(frame(fitted), Y, X_val=frame(given), y_val=Y)


@pytest.mark.parametrize("unit", ["D", "h", "m", "s", "ms", "us", "ns", "2h", "W"])
def test_arrays_of_times(unit):
    days = np.array([None if np.isnan(s) else s // (7 * 86400) * 7 for s in SECONDS])
    stamps = np.array(
        [np.datetime64("NaT") if d is None else np.datetime64("1970-01-01") + int(d) for d in days]
    )
    X = stamps.astype(f"datetime64[{unit}]")[:, None]
    plain = np.where(np.isnat(X), np.nan, X.astype("datetime64[s]").astype(float))
    model = regressor().fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), regressor().fit(plain, Y).predict(plain))
    with pytest.raises(ValueError, match=r"column 0 of `X` holds numbers, but .* fitted to datetimes"):
        model.predict(plain)
    with pytest.raises(ValueError, match=r"column 0 of `X` holds numbers, but .* fitted to datetimes"):
        model.predict(sp.csr_array(np.nan_to_num(plain)))
    with pytest.raises(ValueError, match=r"column 0 of `X` holds datetimes without .* fitted to numbers"):
        regressor().fit(plain, Y).predict(X)
    other = "ms" if unit != "ms" else "ns"
    np.testing.assert_array_equal(model.predict(X.astype(f"datetime64[{other}]")), model.predict(X))


@pytest.mark.parametrize("kind", ["M", "m"])
@pytest.mark.parametrize("seed", range(20))
def test_the_unit_does_not_change_a_bit(kind, seed):
    """The same float in every unit that can hold a time."""
    rng = np.random.default_rng(seed)
    us = rng.integers(-(2**53), 2**53, 200)
    times = us.astype(f"{kind}8[us]")
    np.testing.assert_array_equal(_seconds(times.astype(f"{kind}8[ns]")), _seconds(times))
    np.testing.assert_allclose(_seconds(times), us / 1e6, rtol=1e-15, atol=0)
    order = np.argsort(us)
    assert (np.diff(_seconds(times)[order]) > 0).all()  # microseconds are kept apart for 280 years
    whole = (us // 10**6).astype(f"{kind}8[s]")
    np.testing.assert_array_equal(_seconds(whole), _seconds(whole.astype(f"{kind}8[ms]")))


def test_dates_are_midnights():
    days = [None if t is None else t.date() for t in NAIVE]
    midnights = [None if t is None else dt.datetime(t.year, t.month, t.day) for t in NAIVE]
    model = regressor().fit(pandas_frame(pd.Series(pd.to_datetime(midnights))), Y)
    expected = model.predict(pandas_frame(pd.Series(pd.to_datetime(midnights))))
    for frame in (
        polars_frame(pl.Series(days, dtype=pl.Date)),
        pandas_frame(pd.Series(days, dtype=object)),
        pandas_frame(arrow(days, pa.date32())),
    ):
        np.testing.assert_array_equal(model.predict(frame), expected)


def test_times_and_zones_mixed_in_a_column():
    mixed = pd.Series([*NAIVE[: N // 2], *AWARE[N // 2 :]], dtype=object)
    with pytest.raises(ValueError, match="column 'when' of `X` holds datetimes with and without a time zone"):
        regressor().fit(pandas_frame(mixed), Y)


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_time_is_a_missing_value(kind):
    model = regressor().fit(pandas_of(KINDS[kind]()), Y)
    nothing = pandas_of(KINDS[kind]()).assign(when=pd.Series([None] * N, dtype=object))
    expected = regressor().fit(numbers(), Y).predict(pandas_frame(np.full(N, np.nan)))
    for empty in (nothing, nothing.assign(when=np.nan), polars_frame(pl.Series([None] * N))):
        np.testing.assert_array_equal(model.predict(empty), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_times_as_categories(kind):
    """Categories are what they mean, not how they are stored."""
    few = {
        name: frame.iloc[np.arange(N) % 7]
        for name, frame in KINDS[kind]().items()
        if name.startswith("pandas")
    }
    few = {name: frame.reset_index(drop=True).assign(noise=NOISE) for name, frame in few.items()}
    plain = np.column_stack([NOISE, SECONDS[np.arange(N) % 7]])
    expected = regressor(categorical_features=[1]).fit(plain, Y).predict(plain)
    model = regressor(categorical_features=["when"]).fit(next(iter(few.values())), Y)
    for name, frame in few.items():
        np.testing.assert_array_equal(model.predict(frame), expected, err_msg=name)
        if "object" not in name and "timestamps" not in name:
            category = frame.astype({"when": "category"})
            np.testing.assert_array_equal(regressor().fit(category, Y).predict(frame), expected, err_msg=name)


@pytest.mark.parametrize("unit", ["M", "Y"])
def test_months_have_no_length(unit):
    with pytest.raises(ValueError, match=f"durations in the unit '{unit}'"):
        regressor().fit(np.arange(N).astype(f"timedelta64[{unit}]")[:, None], Y)


# --- numbers in other dress --------------------------------------------------------------------------------

WHOLE = np.where(np.isnan(SECONDS), np.nan, np.round(NOISE * 3))
FLAGS = np.where(np.isnan(SECONDS), np.nan, NOISE > 0)


def objects(values, make):
    return pd.Series([None if np.isnan(v) else make(v) for v in values], dtype=object)


NUMBERS = {
    "Int64": (WHOLE, pd.Series(WHOLE, dtype="Int64")),
    "Float32": (WHOLE, pd.Series(WHOLE, dtype="Float32")),
    "arrow int": (WHOLE, pd.Series(WHOLE).astype("int64[pyarrow]")),
    "arrow double": (WHOLE, pd.Series(WHOLE).astype("double[pyarrow]")),
    "arrow decimal": (
        WHOLE,
        objects(WHOLE, lambda v: Decimal(int(v))).astype(pd.ArrowDtype(pa.decimal128(9, 2))),
    ),
    "sparse": (WHOLE, pd.Series(pd.arrays.SparseArray(WHOLE))),
    "decimal": (WHOLE, objects(WHOLE, lambda v: Decimal(int(v)))),
    "fraction": (WHOLE, objects(WHOLE, lambda v: Fraction(int(v)))),
    "mixed": (WHOLE, objects(WHOLE, lambda v: int(v) if v > 0 else np.float32(v))),
    "polars int": (WHOLE, pl.Series([None if np.isnan(v) else int(v) for v in WHOLE])),
    "polars decimal": (WHOLE, pl.Series([None if np.isnan(v) else Decimal(int(v)) for v in WHOLE])),
    "boolean": (FLAGS, pd.Series([pd.NA if np.isnan(v) else bool(v) for v in FLAGS], dtype="boolean")),
    "bool objects": (FLAGS, objects(FLAGS, bool)),
    "arrow bool": (FLAGS, pd.Series(objects(FLAGS, bool)).astype("bool[pyarrow]")),
    "polars bool": (FLAGS, pl.Series([None if np.isnan(v) else bool(v) for v in FLAGS])),
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("categorical", [None, ["when"]], ids=["number", "category"])
def test_numbers_in_every_dtype(name, categorical):
    values, column = NUMBERS[name]
    frame = (polars_frame if isinstance(column, pl.Series) else pandas_frame)(column)
    model = regressor(categorical_features=categorical).fit(frame, Y)
    expected = regressor(categorical_features=categorical).fit(pandas_frame(values), Y)
    np.testing.assert_array_equal(model.predict(frame), expected.predict(pandas_frame(values)))
    np.testing.assert_array_equal(model.predict(pandas_frame(values)), model.predict(frame))


PERIODS = pd.Series(pd.period_range("2020-01", periods=N, freq="M"))
UNREADABLE = {
    "period": (PERIODS, "Period values"),
    "interval": (pd.Series(pd.interval_range(0, N)), "Interval values"),
    "complex": (pd.Series(NOISE + 1j), "complex values"),
    "text": (pd.Series(["a", "b"] * (N // 2)), "text values"),
    "lists": (pd.Series([[1, 2]] * N), "list values"),
    "times of the day": (pd.Series([dt.time(3)] * N), "time values"),
    "mixed": (pd.Series(["a", 1] * (N // 2)), "int and str values"),
    "polars list": (pl.Series([[1, 2]] * N), r"List\(Int64\) values"),
    "polars struct": (pl.Series([{"a": 1}] * N), r"Struct\(.*\) values"),
    "polars struct of two": (pl.Series([{"a": 1, "b": 2.0}] * N), r"Struct\(.*\) values"),
    "polars array": (pl.Series([[1, 2]] * N, dtype=pl.Array(pl.Int64, 2)), r"Array\(.*\) values"),
    "polars time": (pl.Series([dt.time(3)] * N), "time values"),
    "polars binary": (pl.Series([b"a"] * N), "bytes values"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_columns_that_are_no_numbers_are_refused_by_name(name):
    column, what = UNREADABLE[name]
    frame = (polars_frame if isinstance(column, pl.Series) else pandas_frame)(column)
    message = f"column 'when' of `X` holds {what}, not numbers: .*categorical"
    with pytest.raises(ValueError, match=message):
        regressor().fit(frame, Y)
    model = regressor().fit(numbers(), Y)
    with pytest.raises(ValueError, match=f"column 'when' of `X` holds {what}, "):
        model.predict(frame)


def test_intervals_and_periods_as_categories():
    codes = np.arange(N) % 5
    expected = regressor(categorical_features=[1]).fit(np.column_stack([NOISE, codes]), Y)
    expected = expected.predict(np.column_stack([NOISE, codes]))
    for column in (pd.cut(pd.Series(codes), [-1, 0, 1, 2, 3, 4]), PERIODS.iloc[codes].reset_index(drop=True)):
        frame = pandas_frame(column.astype("category"))
        np.testing.assert_array_equal(regressor().fit(frame, Y).predict(frame), expected)


# --- categories --------------------------------------------------------------------------------------------

LABELS = np.array(["1", "2", "10", "x"])[np.arange(N) % 4]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_categories_of_another_dtype_are_refused_by_name(library):
    make = pandas_frame if library == "pandas" else polars_frame
    category = "category" if library == "pandas" else pl.Categorical
    series = pd.Series(LABELS).astype(category) if library == "pandas" else pl.Series(LABELS, dtype=category)
    model = regressor().fit(make(series), Y)
    with pytest.raises(ValueError, match=r"column 'when' of `X` holds numbers, but .* fitted to text values"):
        model.predict(make(np.arange(N) % 4))


def test_order_of_categories_does_not_matter():
    model = regressor().fit(pandas_frame(pd.Series(LABELS).astype("category")), Y)
    expected = model.predict(pandas_frame(pd.Series(LABELS).astype("category")))
    for categories in itertools.permutations(["1", "2", "10", "x", "unused"]):
        other = pd.Series(pd.Categorical(LABELS, categories=categories))
        np.testing.assert_array_equal(model.predict(pandas_frame(other)), expected)
    np.testing.assert_array_equal(model.predict(pandas_frame(pd.Series(LABELS, dtype=object))), expected)
    np.testing.assert_array_equal(
        model.predict(polars_frame(pl.Series(LABELS, dtype=pl.Categorical))), expected
    )


def test_categories_that_cannot_be_sorted():
    mixed = pd.Series(["a", 1, "b", 2.0] * (N // 4), dtype=object)
    with pytest.raises(
        ValueError, match=r"column 'when' of `X` is categorical, but its values, .*cannot be sorted"
    ):
        regressor(categorical_features=["when"]).fit(pandas_frame(mixed), Y)


# --- names, targets ----------------------------------------------------------------------------------------


def test_two_columns_of_the_same_name():
    twice = pd.DataFrame(np.column_stack([NOISE, WHOLE]), columns=["a", "a"])
    message = "`X` must not have two columns of the same name, got 'a' twice"
    for model in (regressor(), ConvexBoostClassifier(n_rounds=2)):
        with pytest.raises(ValueError, match=message):
            model.fit(twice, Y > 1 if isinstance(model, ConvexBoostClassifier) else Y)
    with pytest.raises(ValueError, match=message):
        ConvexBoostRanker(n_rounds=2).fit(twice, np.arange(N) % 3, np.zeros(N))
    model = regressor().fit(pd.DataFrame(np.column_stack([NOISE, WHOLE]), columns=["a", "b"]), Y)
    with pytest.raises(ValueError, match=message):
        model.predict(twice)


@pytest.mark.parametrize("kind", ["datetime64[ns]", "timedelta64[s]"])
def test_targets_are_numbers_not_times(kind):
    y = np.arange(N).astype(kind)
    with pytest.raises(ValueError, match=r"`y` must hold numbers, got (datetime|timedelta)64"):
        regressor().fit(NOISE[:, None], y)
    with pytest.raises(ValueError, match=r"`y` must hold numbers, got (datetime|timedelta)64"):
        ConvexBoostRanker(n_rounds=2).fit(NOISE[:, None], y, np.zeros(N))
    with pytest.raises(ValueError, match=r"`y_val` must hold numbers, got (datetime|timedelta)64"):
        regressor().fit(NOISE[:, None], Y, X_val=NOISE[:, None], y_val=pd.Series(y))
    with pytest.raises(ValueError, match=r"`y` must hold numbers, got Time(stamp|delta)"):
        regressor().fit(NOISE[:, None], pd.Series(y).astype(object))


def test_only_categories_that_occur_count():
    """Levels of a pandas column that no row has change nothing, whatever they are."""
    labels = pd.Series(np.where(np.arange(N) % 5 == 0, None, LABELS), dtype=object)
    plain = (
        regressor(categorical_features=["when"]).fit(pandas_frame(labels), Y).predict(pandas_frame(labels))
    )
    for more in (["unused"], [7], [("a", "tuple")]):
        frame = pandas_frame(pd.Series(pd.Categorical(labels, categories=[*more, "x", "10", "2", "1"])))
        np.testing.assert_array_equal(regressor().fit(frame, Y).predict(frame), plain)


def test_tuples_as_categories():
    pairs = np.empty(N, object)
    pairs[:] = [(int(label == "x"), label) for label in LABELS]
    frame, text = (pandas_frame(pd.Series(values, dtype=object)) for values in (pairs, LABELS))
    models = [regressor(categorical_features=["when"]).fit(X, Y) for X in (frame, text)]
    np.testing.assert_array_equal(models[0].predict(frame), models[1].predict(text))
