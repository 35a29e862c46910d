"""fit, predict, evaluate, export, losses, learners: with real files, and some as real processes."""

import functools
import io
import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, r2_score
from typer.testing import CliRunner

import convexboost
from convexboost import ConvexBoostClassifier, ConvexBoostRegressor
from convexboost.cli import main
from convexboost.cli.app import app
from convexboost.metrics import ndcg

FEW = ("--set", "n_rounds=8", "--set", "early_stopping=false")
rng = np.random.default_rng(0)
N = 120
HOUSES = pd.DataFrame(
    {
        "size": rng.normal(100, 30, N).round(1),
        "town": rng.choice(["Bonn", "Köln", "Trier"], N),
        "id": [f"h{k}" for k in range(N)],
        "w": rng.integers(1, 4, N),
    }
)
HOUSES["price"] = (2 * HOUSES["size"] + 20 * (HOUSES["town"] == "Bonn")).round(1)
HOUSES["dear"] = np.where(HOUSES["price"] > 200, "yes", "no")
HOUSES.loc[3, "size"] = np.nan
LETOR = "".join(f"{k % 3} qid:{k // 6} 1:{k % 3 + rng.normal():.3f} 2:{k % 5}\n" for k in range(60))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data, and a model of each task."""
    out = tmp_path_factory.mktemp("commands")
    HOUSES.to_csv(out / "houses.csv", index=False)
    HOUSES.to_parquet(out / "houses.parquet")
    (out / "pages.letor").write_text(LETOR)
    drop = ("--drop", "id", "--drop", "w")
    for arguments in (
        ("houses.csv", "--target", "price", *drop, "--drop", "dear", "--out", "price.convexboost"),
        ("houses.csv", "--target", "dear", *drop, "--drop", "price", "--out", "dear.convexboost"),
        ("pages.letor", "--out", "pages.convexboost"),
    ):
        found = invoke(out, "fit", *arguments, *FEW)
        assert found.exit_code == 0, found.output
    return out


def invoke(folder, *arguments, **options):
    """Run a command; names with a dot are files of the folder."""
    known = ("csv", "convexboost", "letor", "parquet", "toml", "json", "jsonl", "onnx", "tsv")
    words = [str(folder / a) if str(a).rpartition(".")[2] in known else str(a) for a in arguments]
    return CliRunner().invoke(app, words, catch_exceptions=False, **options)


def facts(folder, *arguments):
    found = invoke(folder, *arguments, "--json")
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout)


def refused(folder, *arguments, code=2):
    found = invoke(folder, *arguments)
    assert found.exit_code == code, found.output
    assert "Traceback" not in found.output
    assert found.stdout == ""
    return found.stderr.strip().replace(f"{folder}/", "")


# --- fit ---------------------------------------------------------------------------------------------------


def test_fit_is_that_of_the_estimator(folder):
    model = convexboost.load(folder / "price.convexboost")
    X = HOUSES[["size", "town"]].assign(town=HOUSES["town"].astype("category"))
    same = ConvexBoostRegressor(n_rounds=8, early_stopping=False).fit(X, HOUSES["price"])
    np.testing.assert_array_equal(model.predict(X), same.predict(X))
    assert convexboost.load(folder / "dear.convexboost").classes_.tolist() == ["no", "yes"]
    assert type(convexboost.load(folder / "pages.convexboost")).__name__ == "ConvexBoostRanker"


def test_fit_says_what_it_did(folder):
    words = ("fit", "houses.csv", "--target", "price", "--drop", "w", "--out", "other.convexboost", *FEW)
    found = facts(folder, *words)
    assert found["task"] == "regression"
    assert (found["rows"], found["columns"], found["rounds"]) == (N, 4, 8)
    assert found["stopped"] == "all 8 rounds done"
    assert found["loss"] == "½ (f − y)²"
    printed = invoke(folder, *words)
    assert re.search(r"^task +regression$", printed.stdout, re.M)
    assert (
        printed.stderr == "note: column 'id' has another text in every row and tells nothing: --drop 'id'\n"
    )


def test_the_loss_tells_the_task(folder):
    words = ("fit", "houses.csv", "--target", "price", "--out", "other.convexboost", *FEW)
    assert facts(folder, *words, "--loss", "quantile:0.9")["task"] == "regression"
    words = ("fit", "houses.csv", "--target", "w", "--out", "other.convexboost", *FEW)
    assert facts(folder, *words)["task"] == "classification"
    assert facts(folder, *words, "--loss", "poisson")["task"] == "regression"
    assert facts(folder, *words, "--task", "regression")["task"] == "regression"


def test_weights_validation_and_settings(folder):
    (folder / "settings.toml").write_text(
        'target = "price"\ndrop = ["id", "dear"]\nweight = "w"\nn_rounds = 5\nloss = "absolute"\n'
        '[learner]\nname = "tree"\nmax_leaves = 4\n'
    )
    words = ("fit", "houses.parquet", "--config", "settings.toml", "--valid", "houses.csv")
    found = facts(folder, *words, "--set", "n_rounds=7", "--out", "set.convexboost")
    assert found["rounds"] <= 7
    assert found["validation"] > 0
    model = convexboost.load(folder / "set.convexboost")
    assert (model.n_rounds, model.learner.max_leaves, model.loss) == (7, 4, "absolute")
    X = HOUSES[["size", "town"]].assign(town=HOUSES["town"].astype("category"))
    same = ConvexBoostRegressor(**model.get_params(deep=False))
    same.fit(X, HOUSES["price"], HOUSES["w"], X_val=X, y_val=HOUSES["price"], sample_weight_val=HOUSES["w"])
    np.testing.assert_array_equal(model.predict(X), same.predict(X))


def test_a_json_configuration_and_a_default_name(folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "settings.json").write_text('{"task": "classification", "n_rounds": 3, "l2": 0.5}')
    words = ("fit", "houses.csv", "--config", "settings.json", "--target", "dear", "--drop", "price")
    assert facts(folder, *words)["model"] == "houses.convexboost"
    assert convexboost.load(folder / "houses.convexboost").l2 == 0.5
    (folder / "sales.2023.csv").write_bytes((folder / "houses.csv").read_bytes())
    words = ("fit", "sales.2023.csv", "--target", "price", *FEW)
    assert facts(folder, *words)["model"] == "sales.2023.convexboost"
    words = ("fit", "-", "--target", "price", *FEW)
    assert "`--out` is needed: standard input has no name" in refused(folder, *words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--set", "n_round=3"), "`n_round` is not a parameter of ConvexBoostRegressor, which has: "),
        (("--set", "n_rounds=-3"), "`n_rounds` must be a positive integer or 'auto', got -3"),
        (("--set", "n_rounds"), "`--set` must be name=value, got 'n_rounds'"),
        (("--loss", "mse"), "got 'mse'; did you mean 'half_squared'?"),
        (("--learner", "bush"), "`learner` must be one of "),
        (("--loss", "hinge", "--task", "regression"), "`loss` must be a regression loss"),
        (("--task", "guess"), "`--task` must be one of classification, regression, ranking, got 'guess'"),
        (("--config", "nothing.toml"), "`--config` nothing.toml cannot be read: No such file"),
        (("--valid", "nothing.csv"), "there is no file nothing.csv"),
        (("--weight", "town"), "houses.csv, line 2, column 'town': "),
        (("--out", "."), "`--out` must be a file, got the folder ."),
        (("--out", "/dev/null"), "`--out` must be a file, got the device or pipe /dev/null"),
        (("--out", "houses.csv"), "`--out` must not be the file with the data, got houses.csv"),
        (("--out", "new/x.convexboost", "--loss", "mse"), "got 'mse'"),
        (("--task", "ranking"), "`qid` is needed"),
    ],
)
def test_what_fit_refuses(folder, words, message):
    before = set(folder.iterdir())
    said = refused(folder, "fit", "houses.csv", "--target", "price", *words)
    assert said.startswith("convexboost fit: ")
    assert message in said
    assert set(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("bad.toml", "n_rounds = \n", "`--config` bad.toml: Invalid value (at line 1, column 12)"),
        ("bad.json", '{"l2": 1,}', "`--config` bad.json: "),
        ("list.json", "[1]", "`--config` list.json must hold names and values, got list"),
        ("type.toml", "target = 3", "`--config` type.toml: `target` must be text, got 3"),
    ],
)
def test_a_broken_configuration(folder, name, text, message):
    (folder / name).write_text(text)
    assert message in refused(folder, "fit", "houses.csv", "--config", name)


def test_a_validation_file_must_match(folder):
    (folder / "valid.csv").write_text("size,town,price\n100,Bonn,200\nbig,Bonn,300\n")
    words = ("fit", "houses.csv", "--target", "price", *("--drop", "id", "--drop", "w", "--drop", "dear"))
    said = refused(folder, *words, "--valid", "valid.csv", *FEW[:2])
    assert said == "convexboost fit: valid.csv, line 3, column 'size': 'big' is no number"


# --- predict -----------------------------------------------------------------------------------------------


def predicted(folder, *words):
    found = invoke(folder, "predict", *words)
    assert found.exit_code == 0, found.output
    return pd.read_csv(io.StringIO(found.stdout))


def test_predict(folder):
    model = convexboost.load(folder / "price.convexboost")
    X = HOUSES[["size", "town"]]
    table = predicted(folder, "price.convexboost", "houses.csv", "--keep", "id", "--keep", "town")
    assert list(table.columns) == ["id", "town", "prediction"]
    assert table["id"].tolist() == HOUSES["id"].tolist()
    np.testing.assert_array_equal(table["prediction"], model.predict(X))  # CSV keeps every digit
    dear = convexboost.load(folder / "dear.convexboost")
    assert predicted(folder, "dear.convexboost", "houses.csv")["prediction"].tolist() == list(dear.predict(X))
    proba = predicted(folder, "dear.convexboost", "houses.csv", "--proba")
    assert list(proba.columns) == ["proba_no", "proba_yes"]
    np.testing.assert_array_equal(proba, dear.predict_proba(X))
    scores = predicted(folder, "dear.convexboost", "houses.csv", "--scores")
    np.testing.assert_array_equal(scores["score"], dear.decision_function(X))
    assert len(predicted(folder, "pages.convexboost", "pages.letor")) == 60


def test_predict_into_a_file(folder):
    expected = predicted(folder, "price.convexboost", "houses.parquet")
    for name, read in (
        ("out.csv", pd.read_csv),
        ("out.parquet", pd.read_parquet),
        ("out.jsonl", lambda path: pd.read_json(path, lines=True)),
        ("out.tsv", lambda path: pd.read_csv(path, sep="\t")),
    ):
        found = invoke(folder, "predict", "price.convexboost", "houses.csv", "--out", name)
        assert (found.exit_code, found.output) == (0, "")
        pd.testing.assert_frame_equal(read(folder / name), expected)
    lines = invoke(folder, "predict", "price.convexboost", "houses.csv", "--json").stdout.splitlines()
    assert json.loads(lines[0]).keys() == {"prediction"}
    assert len(lines) == N


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("price.convexboost", "houses.csv", "--proba"),
            "`--proba` needs a classifier, but price.convexboost",
        ),
        (("dear.convexboost", "houses.csv", "--proba", "--scores"), "`--proba` and `--scores` cannot be"),
        (("houses.csv", "houses.csv"), "houses.csv is no model file"),
        (("nothing.convexboost", "houses.csv"), "there is no file nothing.convexboost"),
        (("price.convexboost", "nothing.csv"), "there is no file nothing.csv"),
        (("price.convexboost", "pages.letor"), "pages.letor has no names of columns"),
        (("pages.convexboost", "houses.csv"), "has names of columns, but the model was fitted to none"),
        (("price.convexboost", "houses.csv", "--keep", "ix"), "`--keep` 'ix': houses.csv has no such column"),
        (("cut.convexboost", "houses.csv"), "cut.convexboost"),
        (("price.convexboost", "houses.csv", "--out", "p.xlsx"), "`--out` must end in one of .csv, .tsv, "),
        (
            ("price.convexboost", "houses.csv", "--out", "/dev/null"),
            "`--out` must end in one of .csv, .tsv, ",
        ),
        (("nothing.convexboost", "houses.csv", "--out", "new/x/p.csv"), "there is no file"),
        (("price.convexboost", "nothing.csv", "--out", "new/x/p.csv"), "there is no file"),
    ],
)
def test_what_predict_refuses(folder, words, message):
    content = (folder / "price.convexboost").read_bytes()
    (folder / "cut.convexboost").write_bytes(content[: len(content) // 2])
    assert message in refused(folder, "predict", *words)
    assert not (folder / "new").exists()


def test_a_broken_cell_is_named(folder):
    (folder / "broken.csv").write_text("town,size\nBonn,3\nBonn,three\n")
    said = refused(folder, "predict", "price.convexboost", "broken.csv")
    assert said == "convexboost predict: broken.csv, line 3, column 'size': 'three' is no number"


# --- evaluate ----------------------------------------------------------------------------------------------


def test_evaluate(folder):
    X = HOUSES[["size", "town"]]
    found = facts(folder, "evaluate", "price.convexboost", "houses.csv", "--target", "price", "--weight", "w")
    model = convexboost.load(folder / "price.convexboost")
    assert found["R²"] == r2_score(HOUSES["price"], model.predict(X), sample_weight=HOUSES["w"])
    assert found["rows"] == N
    found = facts(folder, "evaluate", "dear.convexboost", "houses.parquet", "--target", "dear")
    model = convexboost.load(folder / "dear.convexboost")
    assert found["accuracy"] == accuracy_score(HOUSES["dear"], model.predict(X))
    assert {"log_loss", "ROC_AUC", "Brier_score"} <= found.keys()
    found = facts(folder, "evaluate", "pages.convexboost", "pages.letor")
    model = convexboost.load(folder / "pages.convexboost")
    rows = [line.split() for line in LETOR.splitlines()]
    pages = np.array([[float(word.partition(":")[2]) for word in row[2:]] for row in rows])
    grades, queries = [float(row[0]) for row in rows], [row[1] for row in rows]
    assert found["NDCG@10"] == pytest.approx(ndcg(grades, model.predict(pages), queries), rel=1e-12)


def test_evaluate_many_classes_and_a_loss_without_probabilities(folder):
    X = pd.DataFrame({"a": rng.normal(size=90)})
    y = rng.integers(3, size=90)
    X.assign(y=y).to_csv(folder / "three.csv", index=False)
    for loss, has_proba in (("softmax", True), ("multiclass_hinge", False)):
        ConvexBoostClassifier(loss, n_rounds=3, early_stopping=False).fit(X, y).save(
            folder / "three.convexboost"
        )
        found = facts(folder, "evaluate", "three.convexboost", "three.csv", "--target", "y")
        assert ("log_loss" in found) == ("ROC_AUC_(one_versus_rest)" in found) == has_proba
        if not has_proba:
            said = refused(folder, "predict", "three.convexboost", "three.csv", "--proba")
            assert "gives no probabilities" in said


def test_what_evaluate_refuses(folder):
    assert "`--target` is needed" in refused(folder, "evaluate", "price.convexboost", "houses.csv")
    said = refused(folder, "evaluate", "dear.convexboost", "houses.csv", "--target", "town")
    assert "houses.csv, line 2, column 'town': the model does not know the class" in said


# --- the others --------------------------------------------------------------------------------------------


def test_inspect_reads_model_files(folder):
    found = facts(folder, "inspect", "price.convexboost")
    assert found["features"] == ["size", "town"]
    assert found["rounds"] == 8
    printed = invoke(folder, "inspect", "price.convexboost")
    assert "all 8 rounds done" in printed.stdout


def test_a_page_about_a_model(folder):
    for words, titles in (
        ((), ["Features"]),
        (("--data", "houses.csv", "--target", "dear"), ["On the rows given", "Rows explained", "Confusion"]),
        (("--data", "houses.csv"), ["Rows explained"]),
    ):
        found = invoke(folder, "inspect", "dear.convexboost", "--html", folder / "page.html", *words)
        assert found.exit_code == 0, found.output
        assert f"page: {folder / 'page.html'}" in found.stdout.replace("\n", "")
        text = (folder / "page.html").read_text(encoding="utf-8")
        assert all(title in text for title in titles)
    found = invoke(
        folder, "inspect", "pages.convexboost", "--html", folder / "page.html", "--data", "pages.letor"
    )
    assert found.exit_code == 0, found.output
    assert "NDCG@10" in (folder / "page.html").read_text(encoding="utf-8")
    assert "goes with --html" in refused(folder, "inspect", "dear.convexboost", "--data", "houses.csv")
    said = refused(folder, "inspect", "dear.convexboost", "--html", folder)
    assert said == f"convexboost inspect: `--html` must be a file, got the folder {folder}"


def test_export(folder):
    found = facts(folder, "export", "dear.convexboost", "--onnx", "dear.onnx")
    assert found["bytes"] == (folder / "dear.onnx").stat().st_size
    onnx = pytest.importorskip("onnx")
    onnx.checker.check_model(onnx.load(folder / "dear.onnx"))
    assert refused(folder, "export", "dear.convexboost") == (
        "convexboost export: `--onnx` is needed: the file to write"
    )
    assert "there is no file" in refused(folder, "export", "nothing.convexboost", "--onnx", "dear.onnx")


def test_losses_and_learners(folder):
    names = [entry["name"] for entry in facts(folder, "losses")]
    assert {"absolute", "quantile", "softmax", "ranking_hinge"} <= set(names)
    quantile = next(entry for entry in facts(folder, "losses") if entry["name"] == "quantile")
    assert quantile["task"] == "regression"
    assert "quantile" in str(quantile["parameters"])
    learners = {entry["name"]: entry for entry in facts(folder, "learners")}
    assert "max_leaves" in learners["tree"]["parameters"]
    assert "quantile" in invoke(folder, "losses").stdout
    assert "max_leaves" in invoke(folder, "learners").stdout


@pytest.mark.parametrize("command", ["fit", "predict", "evaluate", "export"])
def test_the_help_has_examples(folder, command):
    found = invoke(folder, command, "--help")
    assert found.exit_code == 0
    assert re.search(rf"Examples?:\n +convexboost {command} ", found.stdout)


def test_the_help_has_the_exit_codes(folder):
    assert "Exit status: 0 all is well, 1 something failed" in invoke(folder, "--help").stdout


# --- real processes ----------------------------------------------------------------------------------------

CONVEXBOOST = [sys.executable, "-c", "from convexboost.cli import main; main()"]


def test_pipes_and_exit_codes(folder, monkeypatch):
    """Standard input and output; a reader who stops early; a wrong option; a disk that is full."""
    data, model = (folder / "houses.csv").read_bytes(), str(folder / "price.convexboost")
    done = subprocess.run([*CONVEXBOOST, "predict", model, "-"], input=data, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"prediction\n")
    assert len(done.stdout.splitlines()) == N + 1
    command = " ".join(f"'{word}'" for word in [*CONVEXBOOST, "predict", model, str(folder / "houses.csv")])
    done = subprocess.run(["bash", "-c", f"{command} | head -1"], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("prediction\n", "")
    monkeypatch.setattr(sys, "argv", ["convexboost", "fit", "--nonsense"])
    with pytest.raises(SystemExit) as stopped:  # without a process, which takes long to begin
        main()
    assert stopped.value.code == 2
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*CONVEXBOOST, "predict", model, str(folder / "houses.csv")],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr


def test_nothing_but_the_summary_in_a_pipe(folder):
    words = ["fit", str(folder / "houses.csv"), "--target", "dear", *FEW, "--drop", "id"]
    words += ["--out", str(folder / "piped.convexboost")]
    done = subprocess.run([*CONVEXBOOST, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("model ")


@pytest.mark.parametrize("finished", [False, True])
def test_ctrl_c(folder, finished):
    """An unfinished model does not replace a finished one; --verbose tells of every round."""
    before, out = (folder / "price.convexboost").read_bytes(), folder / "long.convexboost"
    out.unlink(missing_ok=True)
    if finished:
        out.write_bytes(before)
    words = ["fit", str(folder / "houses.csv"), "--target", "price", "--set", "n_rounds=1000000", "--verbose"]
    words += ["--set", "early_stopping=false", "--out", str(out)]
    process = subprocess.Popen(
        [*CONVEXBOOST, *words],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ,
        # Tests that run in the background of a shell ignore Ctrl-C, and so would their children.
        preexec_fn=functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stderr.readline().startswith("round     0  objective ")
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    last = err.splitlines()[-1]
    assert "Traceback" not in err
    left = f"{out} is left as it was; " if finished else ""
    found = re.fullmatch(rf"convexboost fit: interrupted; {left}(.*) holds the model of (\d+) rounds", last)
    assert found[1] == (f"{out}.partial" if finished else str(out))
    assert not finished or out.read_bytes() == before
    assert convexboost.load(found[1]).n_rounds_ == int(found[2]) > 0
