"""Files with data: types are inferred, and what is broken is named with file, line and column."""

import gzip
import io
import sys

import numpy as np
import pandas as pd
import pytest

from convexboost import ConvexBoostClassifier, ConvexBoostRegressor
from convexboost.cli.rows import Data, Roles
from convexboost.cli.tables import DataError, Source

TABLE = """age,town,seen,ok,y
31,Bonn,2024-01-05,true,1.5
,Köln,2024-02-01,false,2.5
44.5,"a, ""b""\nc",,true,3
18,Bonn,2023-12-31,,4
"""


@pytest.fixture
def write(tmp_path):
    def _write(text, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return _write


def frame(path, **roles):
    return Data(path, None, Roles(**roles)).rows(None).X


def fails(path, task="regression", model=None, form=None, **roles):
    with pytest.raises(DataError) as caught:
        Data(path, form, Roles(**roles), model).rows(task)
    return str(caught.value).replace(f"{path}", "FILE")


# --- what is read ------------------------------------------------------------------------------------------


def test_types_are_inferred(write):
    X = frame(write(TABLE), target="y")
    assert list(X.columns) == ["age", "town", "seen", "ok"]
    np.testing.assert_array_equal(X["age"], [31.0, np.nan, 44.5, 18.0])
    assert X["town"].dtype == "category"
    assert X["town"].tolist() == ["Bonn", "Köln", 'a, "b"\nc', "Bonn"]
    assert X["seen"].dtype.kind == "M"
    assert X["seen"].isna().tolist() == [False, False, True, False]
    np.testing.assert_array_equal(X["ok"], [1.0, 0.0, 1.0, np.nan])


def test_a_file_means_the_same_in_every_form(write, tmp_path):
    plain = frame(write(TABLE), target="y")
    others = [
        write(gzip.compress(TABLE.encode()), "data.csv.gz"),
        write("\ufeff" + TABLE, "mark.csv"),
        write(TABLE.replace("\n31", "\n\n31"), "gap.csv"),
        write(TABLE.replace(",", "\t").replace("a\t", "a,"), "data.tsv"),
        write(TABLE.replace("2024-01-05,", "2024-01-05,"), "no-ending"),
    ]
    for path in others:
        pd.testing.assert_frame_equal(frame(path, target="y"), plain)
    semicolons = TABLE.replace(",", ";").replace("a;", "a,")
    pd.testing.assert_frame_equal(frame(write(semicolons, "semi.csv"), target="y"), plain)
    plain.assign(y=0.0).to_parquet(tmp_path / "data.parquet")
    found = frame(tmp_path / "data.parquet", target="y")
    assert found["town"].tolist() == plain["town"].tolist()
    pd.testing.assert_frame_equal(found.drop(columns="town"), plain.drop(columns="town"), check_dtype=False)


def test_standard_input(monkeypatch, write):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TABLE.encode())))
    pd.testing.assert_frame_equal(frame("-", target="y"), frame(write(TABLE), target="y"))


def test_columns_that_are_no_inputs(write):
    path = write("a,w,q,id,y\n1,2,x,u,5\n3,0.5,x,v,6\n")
    rows = Data(path, None, Roles("y", "w", "q", ["id"])).rows("regression")
    assert list(rows.X.columns) == ["a"]
    assert rows.y.tolist() == [5.0, 6.0]
    assert rows.weight.tolist() == [2.0, 0.5]
    assert rows.query.tolist() == ["x", "x"]


@pytest.mark.parametrize(
    ("values", "task"),
    [
        ("ab", "classification"),
        (["true", "false"], "classification"),
        ([0, 1], "classification"),
        ([2.5, 7], "classification"),
        (range(3), "classification"),
        (range(11), "regression"),
        ([1, 2, 2.5], "regression"),
    ],
)
def test_the_task_is_inferred(write, values, task):
    path = write("x,y\n" + "".join(f"{k},{value}\n" for k, value in enumerate(list(values) * 3)))
    assert Data(path, None, Roles("y")).task()[0] == task
    assert Data(path, None, Roles("y", query="x")).task()[0] == "ranking"


def test_svmlight(write):
    text = "1 qid:3 1:2 3:0.5 # one\n0 qid:3 2:1\n"
    for name in ("data.svm", "data.txt", "data.letor"):
        data = Data(write(text, name), None, Roles())
        rows = data.rows("ranking")
        assert data.task()[0] == "ranking"
        np.testing.assert_array_equal(rows.X, [[2, 0, 0.5], [0, 1, 0]])
        assert rows.y.tolist() == [1, 0]
        assert rows.query.tolist() == [3, 3]
    assert Source.of(write("a,b\n1,2\n", "data.txt")).format() == "csv"


def test_labels_keep_their_kind(write):
    path = write("x,text,whole,flag\n1,a,3,true\n2,01,4,false\n")
    for name, expected in (("text", ["a", "01"]), ("whole", [3, 4]), ("flag", [True, False])):
        assert Data(path, None, Roles(name)).rows("classification").y.tolist() == expected


def test_only_an_empty_cell_of_text_is_missing(write):
    X = frame(write('land,n,y\nNA,NA,1\nDE,2,2\n,null,3\n"",nan,4\nnull,,5\n'), target="y")
    assert X["land"].astype(object).where(X["land"].notna(), None).tolist() == [
        "NA",
        "DE",
        None,
        None,
        "null",
    ]
    np.testing.assert_array_equal(X["n"], [np.nan, 2, np.nan, np.nan, np.nan])


def test_an_empty_line_of_a_single_column_is_a_row(write):
    np.testing.assert_array_equal(frame(write("a\n1\n\n3\n"))["a"], [1, np.nan, 3])
    np.testing.assert_array_equal(frame(write("\n\na\r\n\r\n3\r\n"))["a"], [np.nan, 3])
    assert frame(write("a,b\n1,2\n\n3,4\n")).shape == (2, 2)
    path = write("y\n1\n\n3\n")
    with pytest.raises(DataError, match="line 3, column 'y': the target is missing"):
        Data(path, None, Roles("y")).targets("regression")


def test_digits_that_begin_with_0_are_codes(write):
    path = write("zip,n,x,y\n01234,0,00.5,1\n1234,-05,1,2\n,07,2,3\n")
    rows = Data(path, None, Roles("y")).rows("regression")
    assert rows.X["zip"].tolist()[:2] == ["01234", "1234"]
    assert rows.X["zip"].isna().tolist() == [False, False, True]
    np.testing.assert_array_equal(rows.X["n"], [0, -5, 7])
    np.testing.assert_array_equal(rows.X["x"], [0.5, 1, 2])
    assert rows.notes == ["column 'zip': '01234' begins with 0, so the column is read as categories"]
    numbers = "".join(f"{k},{k:04}\n" for k in range(30))
    data = Data(write(f"x,y\n{numbers}"), None, Roles("y"))
    assert data.task()[0] == "regression"
    assert data.targets("regression").tolist() == list(range(30))


def test_text_of_numbers_in_parquet(tmp_path):
    pd.DataFrame({"a": ["1", "2"], "y": [1.0, 2.0]}).to_parquet(tmp_path / "text.parquet")
    rows = Data(tmp_path / "text.parquet", None, Roles("y")).rows("regression")
    assert rows.X["a"].tolist() == ["1", "2"]
    assert rows.notes == []


# --- what is broken ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "FILE is empty"),
        ("\n \n", "FILE is empty"),
        ("a,b,y\n", "FILE has no rows below its header"),
        (
            "a,b,y\n1,2,3\n4,5\n",
            "FILE, line 3: 2 values for 3 columns; column 'y' is the first without one",
        ),
        (
            'a,b,y\n1,"x\ny",3\n\n4,5,6,7\n',
            "FILE, line 5, column 4: 4 values for 3 columns; '7' is too many",
        ),
        ("a,y,a\n1,2,3\n", "FILE, line 1: columns 1 and 3 have the same name 'a'"),
        ("a,b,y\n1,2,3\n4,5,\n", "FILE, line 3, column 'y': the target is missing"),
        ("a,b,y\n1,2,3\n4,5,x\n", "FILE, line 3, column 'y': 'x' is no number"),
        (
            "a,b,y\n1,2,2024-01-01\n4,5,2024-01-01\n",
            "FILE, line 2, column 'y': the target must be a number, got date32[day]",
        ),
        ('a,b,y\n1,2,3\n4,"5,6\n7,8,9\n', "FILE, line 3: a quote is not closed"),
        (b"a,b,y\n1,2,3\n4,\xe9,6\n", "FILE, line 3, byte 3: 0xe9 is no UTF-8; save it so"),
        ("a,b,z\n1,2,3\n", "`--target` 'y': FILE has no such column; it has 'a', 'b', 'z'"),
        ("price,size,yy\n1,2,3\n", "`--target` 'y': FILE has no such column; did you mean 'yy'?"),
        ("y\n1\n2\n", "FILE has no columns to predict from"),
    ],
)
def test_a_broken_csv_file(write, text, message):
    assert fails(write(text), target="y") == message


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["1.5", "2.5", "abc"], "line 4, column 'y': 'abc' is no number, but most targets are; `--task"),
        (["1", "NA", "2,5", "3"], "line 4, column 'y': '2,5' is no number, but most targets are; write 2.5"),
        (["1,5", "2,5"], "line 2, column 'y': '1,5' is no number"),
    ],
)
def test_a_broken_cell_among_numbers_makes_no_classes(write, cells, message):
    path = write("x;y\n" + "".join(f"{k};{cell}\n" for k, cell in enumerate(cells)))
    data = Data(path, None, Roles("y"))
    with pytest.raises(DataError) as caught:
        data.task()
    assert f"{path}, {message}" in str(caught.value)
    assert data.targets("classification").tolist() == cells


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({}, "`--target` is needed: which column of FILE is to be predicted?"),
        ({"weight": "c"}, "`--weight` 'c': FILE has no such column; it has 'a', 'b', 'y', 'q'"),
        ({"drop": ["c"]}, "`--drop` 'c': FILE has no such column; it has 'a', 'b', 'y', 'q'"),
        ({"target": "y", "weight": "a"}, "FILE, line 3, column 'a': the weight -4 is negative"),
        ({"target": "y", "weight": "b"}, "FILE, line 2, column 'b': 'u' is no number"),
        ({"target": "a", "query": "q"}, "FILE, line 3, column 'q': the query is missing"),
    ],
)
def test_wrong_roles(write, roles, message):
    assert fails(write("a,b,y,q\n1,u,3,1\n-4,v,5,\n"), **roles) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 1:2\n0 1:x\n", "FILE, line 2, column 5: 'x' is no number, got '0 1:x'"),
        ("1 1:2\n0 one\n", "FILE, line 2, column 3: expected"),
        ("", "FILE is empty"),
        ("1\n0\n", "FILE has no features"),
    ],
)
def test_a_broken_svmlight_file(write, text, message):
    assert fails(write(text, "data.svm")).startswith(message)


def test_svmlight_has_no_names(write):
    path = write("1 1:2\n0 1:3\n", "data.svm")
    for roles in ({"target": "y"}, {"weight": "y"}, {"drop": ["y"]}):
        assert fails(path, **roles).startswith(f"`--{next(iter(roles))}` is not used: FILE has no names")


def test_other_broken_files(write, tmp_path):
    assert fails(write(b"PAR1nonsense", "data.parquet"), target="y").startswith(
        "FILE cannot be read as Parquet"
    )
    assert fails(write(b"\x1f\x8bnonsense", "data.csv.gz"), target="y").startswith("FILE cannot be unpacked")
    assert fails(tmp_path / "nothing.csv") == "there is no file FILE"
    assert fails(tmp_path) == "FILE is a folder, not a file with data"
    assert fails(write(TABLE), form="xml") == "`--format` must be one of csv, parquet, svmlight, got 'xml'"
    pd.DataFrame({"a": [[1], [2]], "y": [1.0, 2.0]}).to_parquet(tmp_path / "lists.parquet")
    assert "column 'a': values of type list<" in fails(tmp_path / "lists.parquet", target="y")


def test_what_looks_like_a_mistake_is_noted(write):
    rows = "".join(f"{k},r{k},{k}\n" for k in range(60))
    path = write(f"age,id,y\n{rows}6o,r60,5\n")
    notes = Data(path, None, Roles("y")).rows("regression").notes
    assert notes == [
        f"{path}, line 62, column 'age': '6o' is no number, so the whole column is read as categories",
        "column 'id' has another text in every row and tells nothing: --drop 'id'",
    ]
    path = write(",y\n0,1\n1,2\n")
    (note,) = Data(path, None, Roles("y")).rows("regression").notes
    assert note == f"{path}, line 1: column 1 has no name and is called 'column 1'"


# --- rows for a model --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("train") / "train.csv"
    text = "".join(f"{k},{'ab'[k % 2]},0{k % 3},2024-01-0{k % 9 + 1},{k % 5}\n" for k in range(60))
    path.write_text(f"n,t,code,day,y\n{text}")
    rows = Data(path, None, Roles("y")).rows("regression")
    rows.X["code"] = pd.Categorical([f"0{k % 3}" for k in range(60)])
    return ConvexBoostRegressor(n_rounds=2, early_stopping=False).fit(rows.X, rows.y)


def test_a_model_gets_what_it_was_fitted_to(write, model):
    """Columns in any order, others beside them, categories that look like numbers."""
    path = write("y,day,code,n,t,more\n9,2024-05-01,01,3,a,x\n9,2024-05-02,2,,c,x\n")
    X = Data(path, None, Roles(), model).rows(None).X
    assert list(X.columns) == ["n", "t", "code", "day"]
    assert X["code"].tolist() == ["01", "2"]
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("x,a,01,2024-05-01", "FILE, line 3, column 'n': 'x' is no number"),
        ("1,a,01,soon", "FILE, line 3, column 'day': 'soon' is no date"),
    ],
)
def test_a_cell_that_the_model_cannot_read_is_named(write, model, row, message):
    path = write(f"n,t,code,day\n1,a,01,2024-05-01\n{row}\n")
    assert fails(path, task=None, model=model) == message


def test_wrong_columns_for_a_model(write, model):
    path = write("n,t,day\n1,a,2024-05-01\n")
    assert fails(path, task=None, model=model) == "FILE has no column 'code', which the model was fitted to"
    path = write("n,t,code,day\n1,a,01,7\n")
    assert fails(path, task=None, model=model) == "FILE, line 2, column 'day': 7 is no date"
    path = write("1 1:2\n", "data.svm")
    assert "but the model was fitted to some" in fails(path, task=None, model=model)
    plain = ConvexBoostRegressor(n_rounds=2, early_stopping=False).fit([[1.0], [2.0]] * 20, [1.0, 2.0] * 20)
    path = write("a\n1\n")
    assert (
        fails(path, task=None, model=plain) == "FILE has names of columns, but the model was fitted to none"
    )
    path = write("1 1:2 2:3\n", "data.svm")
    assert "feature numbers must rise" in fails(path, task=None, model=plain)


def test_a_class_that_the_model_does_not_know(write):
    X = pd.DataFrame({"a": np.arange(40.0)})
    model = ConvexBoostClassifier(n_rounds=2, early_stopping=False).fit(X, ["00", "01"] * 20)
    path = write("a,y\n1,00\n2,01\n3,02\n")
    message = "FILE, line 4, column 'y': the model does not know the class '02'"
    assert fails(path, task="classification", model=model, target="y") == message
