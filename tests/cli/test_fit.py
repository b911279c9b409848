"""`ridgefold fit`: a table as it is becomes a model file, and a summary says how good it is."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import ridgefold
from messy_files import FILES
from messy_tables import N, clean, text
from ridgefold.cli import app
from ridgefold.cli.automatic_fit import read_table
from ridgefold.cli.fit_summary import fit_summary, what_next
from ridgefold.cli.options import say
from ridgefold.tables import load_bundled

PLANT = load_bundled("ccpp")
CREDIT = load_bundled("german")
SECONDS = ("--time", 20)
"""More than a small table takes, also on a busy machine: nothing here depends on the time."""


def runner():
    """One that keeps stdout and stderr apart: newer versions of click always do."""
    try:
        return CliRunner(mix_stderr=False)
    except TypeError:
        return CliRunner()


def run(*arguments, code=0):
    done = runner().invoke(app, [str(each) for each in arguments], env={"COLUMNS": "200"})
    assert done.exit_code == code, done.output + done.stderr
    return done


def said(*arguments, code=0):
    return json.loads(run(*arguments, "--json", code=code).stdout)


@pytest.fixture(scope="module")
def plant(tmp_path_factory):
    """Rows to fit and new ones, a model, and what was said of it."""
    folder = tmp_path_factory.mktemp("plant")
    table = pd.DataFrame(PLANT.X[:330], columns=PLANT.feature_names)
    table["PE"] = [f"{value:,.2f} MW" for value in PLANT.y[:330]]
    table[:250].to_csv(folder / "plant.csv")
    table[250:].to_csv(folder / "new.csv")
    model = folder / "m.ridgefold"
    arguments = ("fit", folder / "plant.csv", "-t", "PE", "-o", model, *SECONDS)
    (folder / "said.json").write_text(run(*arguments, "--compare", "--json").stdout)
    return folder


def test_the_summary_sets_the_error_beside_simpler_models(plant):
    summary = json.loads((plant / "said.json").read_text())
    assert summary["task"] == "regression"
    assert summary["columns"] == "4 of 5"
    assert summary["rows"] == 250
    assert summary["held_out_rmse"] < 0.4 * summary["rmse_of_the_mean"]
    assert summary["held_out_rmse"] < 1.05 * summary["rmse_of_a_linear_model"]
    assert 2.0 < summary["rmse_of_gradient_boosting"] < 8.0
    assert summary["held_out_r2"] == pytest.approx(
        1 - (summary["held_out_rmse"] / summary["rmse_of_the_mean"]) ** 2
    )
    assert 1.0 < summary["nine_in_ten_within"] / summary["held_out_rmse"] < 2.5


def test_the_held_out_error_is_that_of_the_model_file(plant):
    summary = json.loads((plant / "said.json").read_text())
    model = ridgefold.load(plant / "m.ridgefold")
    missed = model.held_out_predictions_ - PLANT.y[:250]
    assert summary["held_out_rmse"] == pytest.approx(np.sqrt(np.mean(missed**2)))
    within = np.mean(np.abs(missed) <= summary["nine_in_ten_within"])
    assert within == pytest.approx(0.9, abs=0.01)


def test_new_rows_are_predicted_with_intervals(plant, tmp_path):
    out = tmp_path / "out.csv"
    run("predict", plant / "m.ridgefold", plant / "new.csv", "-o", out, "--coverage", 0.9)
    found = pd.read_csv(out)
    model = ridgefold.load(plant / "m.ridgefold")
    np.testing.assert_allclose(found["prediction"], model.predict(str(plant / "new.csv")))
    inside = (found["lower"] <= PLANT.y[250:330]) & (PLANT.y[250:330] <= found["upper"])
    assert inside.mean() > 0.75


def test_the_error_on_new_rows_is_printed_and_on_the_page(plant, tmp_path):
    page = tmp_path / "page.html"
    found = said("report", plant / "m.ridgefold", "--test", plant / "new.csv", "-o", page)
    model = ridgefold.load(plant / "m.ridgefold")
    missed = model.predict(str(plant / "new.csv")) - PLANT.y[250:330]
    assert found["test_rows"] == 80
    assert found["test_rmse"] == pytest.approx(np.sqrt(np.mean(missed**2)))
    assert found["mean_absolute_error"] == pytest.approx(np.mean(np.abs(missed)))
    assert f"the model is off by {found['test_rmse']:.2f}" in page.read_text("utf-8")


def test_the_target_of_new_rows_is_read_as_that_of_the_fit(tmp_path):
    columns = {"x": np.arange(60.0) % 7, "w": np.arange(60.0) % 11}
    y = 1000.0 + 3.0 * columns["x"] + np.arange(60) % 3 / 10
    german = [f"{value:,.1f}".translate(str.maketrans(",.", ".,")) for value in y]
    (tmp_path / "t.csv").write_text(text({**columns, "y": german}, separator=";"))
    whole = [f"{value:,.0f}".replace(",", ".") for value in y]
    (tmp_path / "new.csv").write_text(text({**columns, "y": whole}, separator=";"))
    model = tmp_path / "m"
    run("fit", tmp_path / "t.csv", "-t", "y", "-o", model, *SECONDS)
    found = said("report", model, "--test", tmp_path / "new.csv", "-o", tmp_path / "p.html")
    assert found["test_rmse"] < 5.0


def test_model_files_are_inspected_and_explained(plant):
    found = said("inspect", plant / "m.ridgefold")
    summary = json.loads((plant / "said.json").read_text())
    assert found["model"] == "RidgefoldRegressor"
    assert found["held_out_rmse"] == summary["held_out_rmse"]
    assert found["columns"] == list(PLANT.feature_names)
    assert "fitting a linear model" in run("explain", plant / "m.ridgefold").stdout


def test_the_steps_of_a_fit_are_explained_before_there_are_data():
    shape = ("explain", "--rows", "1e5", "--columns", 20, "--memory", "8GB")
    steps = said(*shape, "--time", 120)
    assert steps[0]["step"] == "fitting a linear model"
    assert any("fitting kernel" in step["step"] for step in steps)
    assert sum(step["predicted_seconds"] for step in steps if step["method"]) < 120
    assert any(step["method"] is None for step in said(*shape, "--time", 2))


def test_people_are_told_what_was_found_how_good_it_is_and_what_is_next(plant, tmp_path):
    model = tmp_path / "m"
    done = run("fit", plant / "new.csv", "-t", "PE", "-o", model, *SECONDS)
    assert "left out, because it has no name" in done.stderr
    assert "columns={" not in done.stderr
    for words in (
        "held-out error",
        "error of a linear model",
        "predicting the mean",
        "nine in ten",
    ):
        assert words in done.stdout
    assert f"next: ridgefold predict {model}" in done.stderr
    run("fit", plant / "new.csv", "-t", "PE", "-o", model, *SECONDS, "--quiet", code=7)


def test_the_models_of_the_sum_are_listed_with_their_shares(plant):
    summary = json.loads((plant / "said.json").read_text())
    model = ridgefold.load(plant / "m.ridgefold")
    assert summary["models"] == [
        {"candidate": each.candidate, "share": each.share}
        for each in model.leaderboard_
        if each.share > 0
    ]
    first, names = model.leaderboard_[0], ["one", "another"]
    model.leaderboard_ = [replace(first, candidate=name, share=0.5) for name in names]
    assert fit_summary(model)["models"] == [{"candidate": each, "share": 0.5} for each in names]


def test_equal_shares_are_shown_a_line_each(capsys):
    models = [{"candidate": name, "share": 0.5} for name in ("one width", "two widths")]
    say({"models": models}, quiet=False, as_json=False, title="")
    shown = capsys.readouterr().out
    assert "50%: one width" in shown
    assert "50%: two widths" in shown
    say({"models": []}, quiet=False, as_json=False, title="")
    assert "the mean" in capsys.readouterr().out


def test_a_model_no_better_than_the_mean_is_said_to_be_so(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=60), "y": rng.normal(size=60)})
    table.to_csv(tmp_path / "t.csv", index=False)
    options = ("fit-kernel", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m", "--force")
    options += ("--length-scale", 0.01, "--alpha", 1e-6)
    summary = said(*options)
    assert summary["held_out_rmse"] >= summary["rmse_of_the_mean"]
    assert "y is no better than predicting the mean" in summary["note"]
    assert "no better than predicting the mean" in run(*options).stdout


def test_a_short_time_is_shown_with_its_digits_and_a_useful_one_proposed(plant, tmp_path):
    read = read_table(
        plant / "plant.csv", "PE", columns=None, drop=None, task="auto", memory="auto", talk=False
    )
    model = ridgefold.load(plant / "m.ridgefold")
    model.time_budget_ = 0.001
    waiting = replace(model.leaderboard_[0], note="the time budget was spent")
    model.leaderboard_ = [*model.leaderboard_, waiting]
    assert fit_summary(model)["time_budget"] == 0.001
    lines = list(what_next(model, read, plant / "plant.csv", tmp_path / "m"))
    assert any(line.startswith("--time 5: ") and line.endswith("in 0.001 s") for line in lines)


def test_classes_are_weighed_and_compared(tmp_path):
    rows = 300
    table = pd.DataFrame(CREDIT.X[:rows], columns=CREDIT.feature_names)
    table["grade"] = np.where(CREDIT.y[:rows] > 0, "good", "bad")
    table.to_csv(tmp_path / "t.csv", index=False)
    arguments = ("fit", tmp_path / "t.csv", "-t", "grade", *SECONDS)
    plain = said(*arguments, "-o", tmp_path / "a", "--compare")
    assert plain["classes"] == ["bad", "good"]
    assert plain["held_out_accuracy"] > plain["accuracy_of_the_largest_class"] - 0.03
    assert plain["held_out_log_loss"] < plain["log_loss_of_the_shares"]
    assert plain["held_out_log_loss"] < plain["log_loss_of_gradient_boosting"]
    said(*arguments, "-o", tmp_path / "b", "--class-weight", "bad=5,good=1")
    bad = [
        np.mean(ridgefold.load(tmp_path / name).predict(str(tmp_path / "t.csv")) == "bad")
        for name in "ab"
    ]
    assert bad[1] > bad[0] + 0.1
    found = said("report", tmp_path / "a", "--test", tmp_path / "t.csv", "-o", tmp_path / "p.html")
    assert found["test_rows"] == rows
    assert found["test_accuracy"] > found["accuracy_of_the_largest_class"]
    run("predict", tmp_path / "a", tmp_path / "t.csv", "-o", tmp_path / "o.csv", "--probabilities")
    shares = pd.read_csv(tmp_path / "o.csv")
    sums = shares["probability of bad"] + shares["probability of good"]
    np.testing.assert_allclose(sums, 1.0)


def test_groups_are_held_out_together_and_not_learned_from(tmp_path):
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(30), 6)
    level = rng.normal(size=30)[patient]
    x = level + 0.01 * rng.normal(size=180)  # tells the patient
    effect = rng.permutation(30)[patient] / 10.0
    table = pd.DataFrame({"patient": patient, "x": x, "y": effect + 0.05 * rng.normal(size=180)})
    table.to_csv(tmp_path / "t.csv", index=False)
    arguments = ("fit", tmp_path / "t.csv", "-t", "y", *SECONDS)
    together = said(*arguments, "-o", tmp_path / "g", "--groups", "patient")
    apart = said(*arguments, "-o", tmp_path / "a", "--drop", "patient")
    assert together["columns"] == "1 of 2"
    assert together["held_out_rmse"] > 1.5 * apart["held_out_rmse"]
    assert ridgefold.load(tmp_path / "g").columns_.names == ("x",)


def test_rows_of_weight_zero_do_not_count(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, 160)
    counts = np.tile([1, 0], 80)
    y = np.where(counts > 0, 3.0 * x, -50.0) + 0.1 * rng.normal(size=160)
    table = pd.DataFrame({"x": x, "counts": counts, "y": y})
    table.to_csv(tmp_path / "t.csv", index=False)
    arguments = ("fit", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m", *SECONDS)
    summary = said(*arguments, "--weights", "counts")
    assert summary["held_out_rmse"] < 0.5
    assert ridgefold.load(tmp_path / "m").columns_.names == ("x",)


def test_columns_are_what_their_owner_says(tmp_path):
    columns = {**clean().columns(), "code": np.arange(N) % 4}
    (tmp_path / "t.csv").write_text(text(columns))
    arguments = ("fit", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m", *SECONDS)
    run(*arguments, "--columns", "code=category", "--drop", "colour")
    names = ridgefold.load(tmp_path / "m").columns_.feature_names
    assert "code=3" in names
    assert not any(name.startswith("colour") for name in names)


@pytest.mark.parametrize(
    ("options", "words", "code"),
    [
        (["--target", "pe"], "did you mean 'PE'", 3),
        (["--target", "PE", "--drop", "none"], "no such column", 3),
        (["--target", "PE", "--columns", "AT"], "--columns must be name=kind", 2),
        (["--target", "PE", "--time", "0"], "--time must be", 2),
        (["--target", "PE", "--time", "soon"], "--time must be auto or", 2),
        (["--target", "PE", "--memory", "much"], "memory", 2),
        (["--target", "PE", "--jobs", "0"], "--jobs must be", 2),
        (["--target", "PE", "--groups", "none"], "--groups 'none'", 3),
        (["--target", "PE", "--groups", "PE"], "both name 'PE'", 2),
        (["--target", "PE", "--weights", "AT", "--groups", "PEE"], "did you mean 'PE'", 3),
        (["--target", "PE", "--class-weight", "balanced"], "is for classes", 2),
        (["--target", "PE", "--report", "OUTPUT"], "both name", 2),
        (["--target", "PE", "--memory", "1kB"], "too large", 5),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_are_answered_with_what_to_do(options, words, code, plant, tmp_path):
    output = tmp_path / "m"
    arguments = [output if each == "OUTPUT" else each for each in options]
    done = run("fit", plant / "plant.csv", "-o", output, *arguments, code=code)
    assert words in done.stderr
    assert not output.exists()


def test_weights_of_unknown_classes_are_refused(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{j},{'ab'[j % 2]}\n" for j in range(30)))
    arguments = ("fit", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m")
    done = run(*arguments, "--class-weight", "a=1,c=2", code=2)
    assert "as a=1,b=1, got 'c=2'" in done.stderr


QUICK = ["title-and-comments", "typing-errors", "target-in-disguise", "row-names-of-r"]


def first_command(file, folder):
    path = file.write(folder)
    arguments = ("fit", path, "-t", file.target, "-o", folder / "m", "--time", 5)
    if file.refused:
        done = run(*arguments, code=3)
        for words in file.refused:
            assert words in done.stderr
        return
    summary = said(*arguments)
    used = [name for name, kind in file.kinds.items() if kind in USED]
    assert summary["columns"].startswith(f"{len(used)} of")
    assert set(ridgefold.load(folder / "m").columns_.names) == set(used)
    run("predict", folder / "m", path, "-o", folder / "out.csv")
    assert pd.read_csv(folder / "out.csv")["prediction"].notna().all()


USED = ("number", "boolean", "category", "ordered", "date")


@pytest.mark.parametrize(
    "file", [f for f in FILES if f.refused or f.name in QUICK], ids=lambda f: f.name
)
def test_the_first_command_succeeds_or_says_all_that_is_wrong(file, tmp_path):
    first_command(file, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("file", FILES, ids=lambda f: f.name)
def test_the_first_command_succeeds_for_every_messy_file(file, tmp_path):
    first_command(file, tmp_path)


def test_rows_unlike_all_others_are_marked_if_asked(plant, tmp_path):
    model = tmp_path / "k"
    how = ("--alpha", 0.1, "--length-scale", 2.0)
    table = pd.DataFrame(PLANT.X[:200], columns=PLANT.feature_names).assign(y=PLANT.y[:200])
    table.to_csv(tmp_path / "t.csv", index=False)
    run("fit-kernel", tmp_path / "t.csv", "-t", "y", "-o", model, *how)
    new = table[:6].copy()
    new.loc[3, "AT"] = 400.0
    new.to_csv(tmp_path / "new.csv", index=False)
    run("predict", model, tmp_path / "new.csv", "-o", tmp_path / "out.csv", "--outside")
    outside = pd.read_csv(tmp_path / "out.csv")["outside"]
    assert outside.tolist() == [False, False, False, True, False, False]
