"""`ridgefold diagnose`: everything about a table at once, and what decides otherwise."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pytest
from typer.testing import CliRunner

from messy_tables import N, clean, text
from ridgefold.cli import app

CLEAN = clean()


def run(*arguments, code=0):
    done = CliRunner().invoke(app, ["diagnose", *map(str, arguments)])
    assert done.exit_code == code, done.output
    return done


@pytest.fixture
def messy(tmp_path):
    rng = np.random.default_rng(0)
    columns = {"Unnamed: 0": np.arange(N), "patient_id": rng.integers(0, 40, N), **CLEAN.columns()}
    path = tmp_path / "messy.csv"
    path.write_text(text(columns))
    return path


def test_the_diagnosis_is_printed(messy):
    printed = run(messy, "--target", "y").output
    assert "regression" in printed
    for name in ("Unnamed: 0", "patient_id", "colour", "--groups patient_id"):
        assert name in printed


def test_json_is_one_object(messy):
    said = json.loads(run(messy, "--target", "y", "--json").output)
    kinds = {column["name"]: column["kind"] for column in said["columns"]}
    assert kinds["Unnamed: 0"] == "index"
    assert kinds["patient_id"] == "identifier"
    assert said["groups"] == ["patient_id"]


def test_every_option_that_is_suggested_is_taken(messy):
    for problem in json.loads(run(messy, "--target", "y", "--json").output)["problems"]:
        words = shlex.split(problem["command"])
        if words and words[0] in ("--columns", "--drop"):
            said = json.loads(run(messy, "--target", "y", "--json", *words).output)
            topics = [p["topic"] for p in said["problems"] if p["columns"] == problem["columns"]]
            assert problem["topic"] not in topics


def test_options_say_what_columns_are(messy):
    options = ["--columns", "count=category,colour=red<green<blue", "--drop", "x"]
    said = json.loads(run(messy, "--target", "y", "--json", *options).output)
    columns = {column["name"]: column for column in said["columns"]}
    assert columns["count"]["kind"] == "category"
    assert columns["colour"]["kind"] == "ordered"
    assert "red < green < blue" in columns["colour"]["treatment"]
    assert not columns["x"]["used"]


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--columns", "zip"], 2, "must be name=kind"),
        (["--columns", "x=integer"], 3, "'integer'"),
        (["--target", "Y2"], 3, "did you mean 'y'"),
        (["--drop", "xx"], 3, "no such column"),
    ],
)
def test_mistakes_have_their_codes(options, code, words, messy):
    assert words in run(messy, *options, code=code).output


def test_files_that_are_no_tables_have_their_code(tmp_path):
    assert "there is no file" in run(tmp_path / "none.csv", code=3).output
    (tmp_path / "empty.csv").write_text("")
    assert "empty" in run(tmp_path / "empty.csv", code=3).output
