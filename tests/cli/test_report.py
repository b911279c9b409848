"""`ridgefold report` and `--report` write a page, and replace none unasked."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import ridgefold
from page_reading import Page
from ridgefold import KernelRidge
from ridgefold.cli import app


def runner():
    """One that keeps stdout and stderr apart: newer versions of click always do."""
    try:
        return CliRunner(mix_stderr=False)
    except TypeError:
        return CliRunner()


def run(*arguments, code=0):
    result = runner().invoke(app, [str(each) for each in arguments], env={"COLUMNS": "200"})
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table with a name that is none, a model of it and the page about that."""
    folder = tmp_path_factory.mktemp("report")
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(80, 2)), columns=["a", "<b>b</b>"])
    table["output"] = np.sin(table["a"]) + 0.1 * rng.normal(size=80)
    table.to_csv(folder / "plant.csv", index=False)
    run("fit-kernel", folder / "plant.csv", "-t", "output", "-o", folder / "m", "--kernel", "rbf",
        "--report", folder / "fit.html", "--quiet")  # fmt: skip
    return folder


def test_fitting_writes_a_page(folder):
    page = Page((folder / "fit.html").read_text("utf-8"))
    assert "output from plant.csv" in page.text
    assert "predicted output" in page.text
    assert "measured time" in page.text


def test_a_model_file_gives_the_same_page(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    result = run("report", folder / "m", "--json")
    assert json.loads(result.stdout)["report"] == "m.html"
    assert (tmp_path / "m.html").read_text() == (folder / "fit.html").read_text()


def test_pages_are_not_replaced_unasked(folder):
    before = (folder / "fit.html").read_bytes()
    assert "--force" in run("report", folder / "m", "-o", folder / "fit.html", code=7).stderr
    arguments = ("fit-kernel", folder / "plant.csv", "-t", "output", "-o", folder / "new")
    run(*arguments, "--report", folder / "fit.html", code=7)
    assert not (folder / "new").exists()
    assert (folder / "fit.html").read_bytes() == before
    run("report", folder / "m", "-o", folder / "fit.html", "--force")


def test_a_page_and_a_model_are_two_files(folder):
    result = run("fit-kernel", folder / "plant.csv", "-t", "output", "-o", folder / "same",
                 "--report", folder / "same", code=2)  # fmt: skip
    assert "both name" in result.stderr


def test_what_is_no_model_gets_no_page(folder, tmp_path):
    run("report", folder / "plant.csv", "-o", tmp_path / "r.html", code=4)
    run("report", folder / "nothing", "-o", tmp_path / "r.html", code=3)
    assert not list(tmp_path.iterdir())


def test_a_model_without_notes_is_named_by_its_file(tmp_path):
    KernelRidge(0.1).fit([[0.0], [1.0], [3.0]], [0.0, 1.0, 2.0]).save(tmp_path / "line.ridgefold")
    run("report", tmp_path / "line.ridgefold", "-o", tmp_path / "r.html")
    assert "line.ridgefold" in Page((tmp_path / "r.html").read_text("utf-8")).text


def test_a_table_of_test_rows_takes_the_place_of_held_out_ones(folder, tmp_path):
    new = pd.read_csv(folder / "plant.csv").sample(30, random_state=0)
    new["output"] += 5.0
    new["more"] = "is ignored"
    new.iloc[3, 2] = np.nan
    new.to_csv(tmp_path / "new.csv", index=False)
    run("report", folder / "m", "-o", tmp_path / "r.html", "--test", tmp_path / "new.csv")
    page = Page((tmp_path / "r.html").read_text("utf-8"))
    known = new.dropna()
    missed = known["output"] - ridgefold.load(folder / "m").predict(known)
    assert f"On test rows, the model is off by {np.sqrt(np.mean(missed**2)):.2f}" in page.text
    assert "29 test rows" in page.text


def test_classes_of_a_test_table_are_read_as_they_were_learned(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=90), "code": rng.integers(0, 3, 90)})
    table["kind"] = (table["a"] + 0.3 * rng.normal(size=90) > 0).astype(int)
    table[:60].to_csv(tmp_path / "train.csv", index=False)
    table[60:].to_csv(tmp_path / "test.csv", index=False)
    how = ("--columns", "code=category", "--quiet")
    run("fit-kernel", tmp_path / "train.csv", "-t", "kind", "-o", tmp_path / "m", *how)
    run("report", tmp_path / "m", "-o", tmp_path / "r.html", "--test", tmp_path / "test.csv")
    assert "On test rows, the model names the right class" in (tmp_path / "r.html").read_text()


def test_a_test_table_that_does_not_suit_the_model_is_refused(folder, tmp_path):
    new, page = tmp_path / "new.csv", tmp_path / "r.html"
    new.write_text("a,output\n1,2\n")
    result = run("report", folder / "m", "-o", page, "--test", new, code=3)
    assert "there is no such column" in result.stderr
    KernelRidge(0.1).fit([[0.0], [1.0]], [0.0, 1.0]).save(tmp_path / "m")
    result = run("report", tmp_path / "m", "-o", page, "--test", new, code=2)
    assert "--test needs a model that ridgefold fit has written" in result.stderr
    assert not page.exists()
