"""Folders, pictures and terminals that cannot be written to: said in a line, and before any work."""

import io
import json
import os
import re
import sys
import tempfile
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import convexboost
from convexboost import ConvexBoostRegressor
from convexboost.cli import demo, inspect, main, output, reproduce
from convexboost.cli.app import app


def invoke(*arguments):
    found = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    return found.exit_code, found.output.strip()


@pytest.fixture
def idle(monkeypatch):
    """No command may begin to work."""

    def work(*_, **__):
        raise AssertionError("this is work")

    for module, name in ((demo, "_compile"), (demo, "run_all"), (reproduce, "run_all"), (inspect, "draw")):
        monkeypatch.setattr(module, name, work)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "modèle η‖.convexboost"
    X = np.random.default_rng(0).normal(size=(60, 2))
    ConvexBoostRegressor("absolute", "stump", n_rounds=5).fit(X, X[:, 0]).save(path)
    return path


@pytest.fixture(params=["a file", "in a file", "nowhere", "not allowed"])
def unwritable(request, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("precious")
    if request.param == "not allowed":  # root may do everything

        def refuse(*_, **__):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
        return tmp_path
    if request.param == "nowhere" and not Path("/proc/self").exists():
        pytest.skip("there is no /proc")
    places = {
        "a file": tmp_path / "file",
        "in a file": tmp_path / "file" / "new",
        "nowhere": Path("/proc/new"),
    }
    return places[request.param]


@pytest.mark.parametrize("command", [["demo"], ["reproduce", "counterexample", "--quick"]], ids=" ".join)
def test_folders(command, unwritable, idle, tmp_path):
    code, words = invoke(*command, "--out", unwritable)
    assert code == 2
    wanted = f"convexboost {command[0]}: `--out` must be a folder that can be written to, got {unwritable}: "
    assert words.startswith(wanted)
    assert len(words.splitlines()) == 1
    assert (tmp_path / "file").read_text() == "precious"


def test_folder_of_a_picture(unwritable, idle, model):
    code, words = invoke("inspect", model, "--figure", unwritable / "run.png")
    assert code == 2
    assert words.startswith(
        "convexboost inspect: `--figure` must be in a folder that can be written to, got "
    )
    assert len(words.splitlines()) == 1


@pytest.mark.parametrize("name", ["folder", "folder.png", "run", "run.", "run.xyz", ".png", "run.png.gz"])
def test_pictures(name, idle, model, tmp_path):
    for folder in ("folder", "folder.png"):
        (tmp_path / folder).mkdir()
    code, words = invoke("inspect", model, "--figure", tmp_path / name)
    assert code == 2
    assert words.startswith("convexboost inspect: `--figure` must be a file")
    assert str(tmp_path / name) in words
    assert len(words.splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "folder.png"]


def test_a_picture_that_must_not_be_overwritten(idle, model, tmp_path, monkeypatch):
    (tmp_path / "run.png").write_text("precious")
    monkeypatch.setattr(
        output.os, "access", lambda path, mode, **_: mode != os.W_OK or "run.png" not in str(path)
    )
    code, words = invoke("inspect", model, "--figure", tmp_path / "run.png")
    assert (code, words.startswith("convexboost inspect: `--figure` must be a file that can")) == (2, True)


@pytest.mark.parametrize("name", ["run.png", "RUN.PNG", "new/run.svg", "run.pdf"])
def test_pictures_that_can_be_drawn(name, model, tmp_path):
    code, words = invoke("inspect", model, "--figure", tmp_path / name)
    assert code == 0
    assert (tmp_path / name).stat().st_size > 1000
    assert str(tmp_path / name) in words.replace("\n", "")


def test_a_full_disk_is_said_in_a_line(model, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(inspect, "draw", full)
    code, words = invoke("inspect", model, "--figure", tmp_path / "run.png")
    assert code == 1
    assert words.splitlines()[-1] == "convexboost inspect: [Errno 28] No space left on device"


def test_a_wrong_name_leaves_no_folder(tmp_path):
    code, _ = invoke("reproduce", "nothing", "--out", tmp_path / "out")
    assert (code, (tmp_path / "out").exists()) == (2, False)
    code, _ = invoke("inspect", tmp_path / "nothing", "--figure", tmp_path / "new" / "run.png")
    assert (code, (tmp_path / "new").exists()) == (2, False)


def test_a_failure_takes_away_the_folders_it_made(tmp_path):
    (tmp_path / "old").mkdir()
    file = tmp_path / "old" / "a" / "b" / "file"
    with pytest.raises(IsADirectoryError), output.folder_of(file):
        file.parent.read_bytes()  # it is there, but no file
    assert [path.name for path in tmp_path.rglob("*")] == ["old"]


def test_json_has_no_nan(capsys):
    output.show({"a b": float("nan"), "list": [1.5, float("inf")], "inner": {"x": np.float64("nan")}}, True)
    assert json.loads(capsys.readouterr().out, parse_constant=pytest.fail) == {
        **{"a_b": None, "list": [1.5, None], "inner": {"x": None}}
    }


# --- terminals without Unicode -----------------------------------------------------------------------------


def printed(encoding, monkeypatch, *arguments):
    """What `main` writes to a terminal of this encoding."""
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding, errors="strict"))
    monkeypatch.setattr(sys, "argv", ["convexboost", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        main()
    sys.stdout.flush()
    return end.value.code, raw.getvalue().decode(encoding)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_any_encoding(encoding, model, monkeypatch):
    code, words = printed(encoding, monkeypatch, "inspect", model)
    assert code == 0
    name = {"ascii": "modele eta||", "latin-1": "modèle eta||", "utf-8": "modèle η‖"}[encoding]
    assert f"{name}.convexboost" in words.replace("\n", "")
    code, words = printed(encoding, monkeypatch, "--help")
    assert code == 0
    assert "Boosting for any convex loss" in words


@pytest.mark.slow
def test_demo_and_reproduce_on_an_ascii_terminal(monkeypatch, tmp_path):
    code, words = printed("ascii", monkeypatch, "demo", "--weak-learners", 10, "--out", tmp_path / "α")
    assert code == 0
    assert "R = 1/2 (2 |f(x1)|" in words
    arguments = ["reproduce", "counterexample", "--quick", "--out", tmp_path / "β"]
    code, words = printed("ascii", monkeypatch, *arguments)
    assert code == 0
    assert '"' in words  # the claims are quoted
    assert (tmp_path / "β" / "report.html").stat().st_size > 1000


def test_every_character_of_the_package_can_be_spelled_out():
    text = "".join(path.read_text() for path in Path(convexboost.__file__).parent.rglob("*.py"))
    for character in set(re.findall(r"[^\x00-\x7f]", text)):
        spelled = output._spelled(character)
        assert spelled.isascii()
        assert spelled or unicodedata.combining(character), character
        assert len(spelled) <= 7
