"""The examples of docs/command-line.md are run, in one folder, and print what the page says."""

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from convexboost.cli.app import app

PAGE = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()


def examples():
    """The commands of the page with what they print; "..." stands for anything."""
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.S):
        yield from re.findall(r"\$ (.*)\n((?:(?!\$ ).*\n)*)", block)


def run(command):
    """Run a line of the page: files in, through pipes, `cat` and `head`."""
    text = None
    for part in command.split(" | "):
        program, *words = shlex.split(part)
        if program == "cat":
            text = Path(words[0]).read_text()
        elif program == "head":
            text = "".join(text.splitlines(keepends=True)[: int(words[0][1:])])
        else:
            assert program == "convexboost"
            found = CliRunner().invoke(app, words, input=text, catch_exceptions=False)
            text = found.output if found.exit_code == 0 else found.stderr
            code = found.exit_code
    return text, code


def test_the_examples_print_what_the_page_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    size = rng.normal(100, 30, 150).round(1)
    table = pd.DataFrame({"id": range(150), "size": size, "town": rng.choice(["Bonn", "Trier"], 150)})
    table["price"] = (2 * size + rng.normal(0, 5, 150)).round(1)
    table[:100].to_csv("houses.csv", index=False)
    table[100:].to_csv("valid.csv", index=False)
    table[100:].drop(columns="price").to_csv("new.csv", index=False)
    Path("broken.csv").write_text("id,size,town\n1,100,Bonn\n2,large,Bonn\n")
    Path("ragged.csv").write_text("id,size,town,price\n1,100,Bonn,200\n2,90,Bonn,180\n3,80,Bonn\n")
    (settings,) = re.findall(r"```toml\n(.*?)```", PAGE, re.S)
    Path("settings.toml").write_text(settings)
    found = list(examples())
    assert len(found) >= 9
    for command, printed in found:
        text, code = run(command)
        assert code == (2 if printed.startswith("convexboost ") else 0), (command, text)
        pattern = re.escape(printed).replace(re.escape("..."), ".*")
        assert re.fullmatch(pattern, text, re.S), (command, text)
    assert len(pd.read_parquet("prices.parquet")) == 50


def test_every_command_is_on_the_page():
    for command in (info.callback.__name__ for info in app.registered_commands):
        assert f"`{command}" in PAGE, command
