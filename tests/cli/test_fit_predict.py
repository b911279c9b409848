"""`ridgefold fit-kernel` and `predict`: from a file to what the Python API predicts."""

from __future__ import annotations

import csv
import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

import ridgefold
from ridgefold import LSSVMRegressor, LSSVMRegressorCV, PartitionedLSSVMRegressor
from ridgefold.cli import app
from ridgefold.tables import load_bundled

DATA = load_bundled("ccpp")
N = 300
HOSTILE = "</script><script>alert(1)</script>"


def runner():
    """One that keeps stdout and stderr apart: newer versions of click always do."""
    try:
        return CliRunner(mix_stderr=False)
    except TypeError:
        return CliRunner()


def run(*arguments, code=0):
    result = runner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "200"})
    assert result.exit_code == code, result.output + result.stderr
    return result


@pytest.fixture
def plant(tmp_path):
    """Power plant rows as CSV, with a text column and one of names."""
    table = pa.table(
        {
            **{name: DATA.X[:N, j] for j, name in enumerate(DATA.feature_names)},
            "id": [f"=row{i}" for i in range(N)],
            "PE": DATA.y[:N],
        }
    )
    pa_csv.write_csv(table, tmp_path / "plant.csv")
    pa_parquet.write_table(table, tmp_path / "plant.parquet")
    return tmp_path


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_numbers_are_those_of_the_python_api(plant):
    model = plant / "m.ridgefold"
    run("fit-kernel", plant / "plant.csv", "--target", "PE", "--drop", "id", "-o", model)
    run("predict", model, plant / "plant.csv", "-o", plant / "out.csv", "--coverage", 0.8)
    order = np.random.default_rng(0).permutation(N)
    pipeline = make_pipeline(StandardScaler(), LSSVMRegressorCV(cv=5))
    pipeline.fit(DATA.X[:N][order], DATA.y[:N][order])
    found = rows_of(plant / "out.csv")
    predictions = np.array([float(row["prediction"]) for row in found])
    np.testing.assert_allclose(predictions, pipeline.predict(DATA.X[:N]), rtol=1e-9)
    lower, upper = pipeline[-1].predict_interval(pipeline[0].transform(DATA.X[:N]), 0.8)
    np.testing.assert_allclose([float(r["lower"]) for r in found], lower, rtol=1e-9)
    np.testing.assert_allclose([float(r["upper"]) for r in found], upper, rtol=1e-9)


def test_given_settings_are_used_as_they_are(plant):
    model = plant / "m.ridgefold"
    run(
        "fit-kernel",
        plant / "plant.parquet",
        "-t",
        "PE",
        "--drop",
        "id",
        "-o",
        model,
        "--no-shuffle",
        "--kernel",
        "matern",
        "--nu",
        2.5,
        "--alpha",
        0.1,
        "--length-scale",
        2,
        "--quiet",
    )
    run("predict", model, plant / "plant.parquet", "-o", plant / "out.parquet")
    pipeline = make_pipeline(
        StandardScaler(),
        LSSVMRegressor(0.1, kernel="matern", kernel_params={"nu": 2.5, "length_scale": 2.0}),
    ).fit(DATA.X[:N], DATA.y[:N])
    found = pa_parquet.read_table(plant / "out.parquet").column("prediction").to_numpy()
    np.testing.assert_allclose(found, pipeline.predict(DATA.X[:N]), rtol=1e-9)


def test_formulas_in_copied_text_are_disarmed_and_numbers_are_not_touched(plant):
    model = plant / "m.ridgefold"
    run(
        "fit-kernel",
        plant / "plant.csv",
        "-t",
        "PE",
        "--drop",
        "id",
        "-o",
        model,
        "-q",
        "--alpha",
        0.1,
        "--length-scale",
        2,
    )
    out = plant / "out.csv"
    run("predict", model, plant / "plant.csv", "-o", out, "--keep", "id", "--keep", "PE")
    found = rows_of(out)
    assert found[3]["id"] == "'=row3"
    np.testing.assert_array_equal([float(row["PE"]) for row in found], DATA.y[:N])
    run("predict", model, plant / "plant.csv", "-o", out, "--keep-all", "--force")
    assert list(rows_of(out)[0]) == [*DATA.feature_names, "id", "PE", "prediction"]


def test_predictions_go_to_stdout_without_anything_else(plant):
    model = plant / "m.ridgefold"
    run(
        "fit-kernel",
        plant / "plant.csv",
        "-t",
        "PE",
        "--drop",
        "id",
        "-o",
        model,
        "-q",
        "--alpha",
        0.1,
        "--length-scale",
        2,
    )
    result = run("predict", model, plant / "plant.csv")
    lines = result.stdout.splitlines()
    assert lines[0].strip('"') == "prediction"
    assert len(lines) == N + 1
    assert all(np.isfinite(float(line)) for line in lines[1:])


def test_json_is_one_object_on_stdout(plant):
    model = plant / "m.ridgefold"
    result = run(
        "fit-kernel", plant / "plant.csv", "-t", "PE", "--drop", "id", "-o", model, "--json"
    )
    summary = json.loads(result.stdout)
    assert summary["rows"] == N
    assert summary["held_out_r2"] > 0.9
    assert summary["held_out_rmse"] < summary["rmse_of_the_mean"]
    result = run("predict", model, plant / "plant.csv", "-o", plant / "out.csv", "--json")
    assert json.loads(result.stdout)["rows"] == N
    result = run("inspect", model, "--json")
    assert json.loads(result.stdout)["model"] == "LSSVMRegressorCV"
    result = run(
        "fit-kernel", plant / "plant.csv", "-t", "none", "-o", plant / "x", "--json", code=3
    )
    assert json.loads(result.stdout)["error"]["type"] == "TableError"
    assert "error: target 'none'" in result.stderr


def test_quiet_means_quiet(plant):
    result = run(
        "fit-kernel",
        plant / "plant.csv",
        "-t",
        "PE",
        "--drop",
        "id",
        "-o",
        plant / "m",
        "-q",
        "--alpha",
        0.1,
        "--length-scale",
        2,
    )
    assert result.stdout == result.stderr == ""


def test_files_are_not_replaced_unless_asked(plant):
    model = plant / "m.ridgefold"
    options = [
        "fit-kernel",
        plant / "plant.csv",
        "-t",
        "PE",
        "--drop",
        "id",
        "-o",
        model,
        "--alpha",
        0.1,
        "--length-scale",
        2,
    ]
    run(*options)
    before = model.read_bytes()
    result = run(*options, "--alpha", 1, code=7)
    assert "--force" in result.stderr
    assert model.read_bytes() == before
    run(*options, "--alpha", 1, "--force")
    assert model.read_bytes() != before
    (plant / "out.csv").write_text("precious")
    run("predict", model, plant / "plant.csv", "-o", plant / "out.csv", code=7)
    assert (plant / "out.csv").read_text() == "precious"


@pytest.mark.parametrize("option", ["--output", "--report"])
def test_files_that_cannot_be_written_are_refused_before_anything_is_read(option, tmp_path):
    (tmp_path / "folder").mkdir()
    for path, words in (
        (tmp_path / "no" / "m", f"there is no folder '{tmp_path / 'no'}'; create it first"),
        (tmp_path / "folder", f"'{tmp_path / 'folder'}' is a folder"),
    ):
        outputs = {"--output": tmp_path / "m", option: path}
        options = [part for pair in outputs.items() for part in pair]
        refused = run("fit-kernel", tmp_path / "none.csv", "-t", "y", *options, "--force", code=7)
        assert words in refused.stderr


def test_cells_have_no_limit_of_time(plant):
    options = ["-t", "PE", "--drop", "id", "-o", plant / "m", "--partitions", 3]
    refused = run("fit-kernel", plant / "plant.csv", *options, "--time", 60, code=2)
    assert "--time 60 does not go with --partitions" in refused.stderr


def mixed(path, n=120):
    generator = np.random.default_rng(1)
    x, colour = generator.normal(size=n), generator.choice(["red", "blue", "=evil"], n)
    flip = generator.random(n) < 0.1
    label = np.where((x > 0) ^ flip, "yes", "-no")
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["x", HOSTILE, '" onload=', "label"])
        for i in range(n):
            writer.writerow(["" if i % 20 == 5 else x[i], colour[i], i, label[i]])
    return label


def test_classes_categories_and_missing_values(tmp_path):
    label = mixed(tmp_path / "t.csv")
    model, out = tmp_path / "m.ridgefold", tmp_path / "out.csv"
    options = [
        "fit-kernel",
        tmp_path / "t.csv",
        "-t",
        "label",
        "-o",
        model,
        "--drop",
        '" onload=',
    ]
    result = run(*options)
    assert "classification" in result.stdout
    run("predict", model, tmp_path / "t.csv", "-o", out, "--probabilities", "--keep", HOSTILE)
    found = rows_of(out)
    assert set(found[0]) == {HOSTILE, "prediction", "probability of -no", "probability of yes"}
    predicted = [row["prediction"] for row in found]
    assert set(predicted) == {"yes", "'-no"}
    assert np.mean([p.lstrip("'") == t for p, t in zip(predicted, label, strict=True)]) > 0.75
    assert {row[HOSTILE] for row in found} == {"red", "blue", "'=evil"}
    shown = run("inspect", model).stdout
    assert HOSTILE in shown


@pytest.mark.parametrize("target", ["number", "label", "code", "flag"])
def test_blocks_without_any_value_have_predictions_too(target, tmp_path, monkeypatch):
    monkeypatch.setattr("ridgefold.tables.tables._BATCH_ROWS", 3)
    x = np.linspace(-1, 1, 30)
    targets = {"number": x**2, "label": np.where(x > 0.2, "yes", "no")}
    targets |= {"code": np.where(x > 0.2, 7, 4), "flag": x > 0.2}
    whole = pa.table({"x": x, target: targets[target]})
    pa_parquet.write_table(whole, tmp_path / "t.parquet")
    options = ["-t", target, "-o", tmp_path / "m", "--alpha", 0.1, "--length-scale", 1]
    run("fit-kernel", tmp_path / "t.parquet", *options, "--columns", "x=number")
    holes = np.isin(np.arange(30), np.arange(12, 15))
    pa_parquet.write_table(pa.table({"x": pa.array(x, mask=holes)}), tmp_path / "n.parquet")
    filled = np.where(holes, np.median(x), x)
    pa_parquet.write_table(pa.table({"x": filled}), tmp_path / "f.parquet")
    more = ("--coverage", 0.9) if target == "number" else ("--probabilities",)
    for name in "nf":
        output = ("-o", tmp_path / f"{name}o.parquet")
        run("predict", tmp_path / "m", tmp_path / f"{name}.parquet", *output, *more)
    found, expected = (pa_parquet.read_table(tmp_path / f"{n}o.parquet") for n in "nf")
    assert found == expected
    assert all(column.null_count == 0 for column in found.columns)


@pytest.mark.parametrize("kind", ["npy", "npz", "parquet"])
def test_targets_that_are_not_a_number_are_missing(kind, tmp_path):
    x = np.linspace(-1, 1, 40)
    y = np.where(np.arange(40) % 10 == 3, np.nan, x**2)
    path, target = tmp_path / f"t.{kind}", "x1" if kind == "npy" else "y"
    if kind == "npy":
        np.save(path, np.column_stack([x, y]))
    elif kind == "npz":
        np.savez(path, X=x[:, None], y=y)
    else:
        pa_parquet.write_table(pa.table({"x": x, "y": y}), path)
    options = ["fit-kernel", path, "-t", target, "-o", tmp_path / "m", "--alpha", 0.1]
    said = run(
        *options, "--length-scale", 1, "--columns", f"{'x' if kind == 'parquet' else 'x0'}=number"
    )
    assert "36 rows have one" in said.stderr
    assert len(ridgefold.load(tmp_path / "m").model_.X_fit_) == 36


@pytest.mark.parametrize(
    "options",
    [(), ("--cv", "loo", "--intervals", "none"), ("--alpha", 0.1, "--length-scale", 1)],
    ids=["search", "leave-one-out", "fixed"],
)
def test_the_held_out_error_is_that_of_the_rows_that_were_fitted(options, tmp_path):
    rng = np.random.default_rng(0)
    x, lost = rng.uniform(-2, 2, 80), np.arange(80) % 8 == 3
    y = np.sin(2 * x) + 0.1 * rng.standard_normal(80)
    holes = pa.table({"x": x, "y": pa.array(y, mask=lost)})
    pa_parquet.write_table(holes, tmp_path / "t.parquet")
    arguments = ("fit-kernel", tmp_path / "t.parquet", "-t", "y", "-o", tmp_path / "m", "--json")
    found = json.loads(run(*arguments, *options).stdout)
    assert found["rmse_of_the_mean"] == pytest.approx(np.std(y[~lost]))
    inner = ridgefold.load(tmp_path / "m").model_
    if not options or "loo" in options:
        rmse = np.sqrt(np.mean((inner.y_fit_ - inner.held_out_predictions_) ** 2))
        assert found["held_out_rmse"] == pytest.approx(rmse)
    expected = 1 - (found["held_out_rmse"] / np.std(y[~lost])) ** 2
    assert found["held_out_r2"] == pytest.approx(expected)
    assert 0.5 < expected < 1


def test_categories_are_not_two_values(tmp_path):
    kinds = pa.array([f"kind {i % 5}" for i in range(40)]).dictionary_encode()
    table = pa.table({"x": np.arange(40.0) % 7, "kind": kinds})
    pa_parquet.write_table(table, tmp_path / "t.parquet")
    options = ["-t", "kind", "-o", tmp_path / "m", "--alpha", 0.1, "--length-scale", 1]
    result = run("fit-kernel", tmp_path / "t.parquet", *options)
    assert "classification, because it holds text" in result.stderr


def test_true_and_false_are_numbers(tmp_path):
    lines = ["on,x,y", *(f"{'true' if i % 2 else 'false'},{i},{i % 2}.5" for i in range(40))]
    (tmp_path / "t.csv").write_text("\n".join([*lines, "true,3,1.6"]) + "\n")
    run("fit-kernel", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m")
    run("predict", tmp_path / "m", tmp_path / "t.csv", "-o", tmp_path / "out.csv")
    found = np.array([float(row["prediction"]) for row in rows_of(tmp_path / "out.csv")])[:40]
    assert np.max(np.abs(found - (np.arange(40) % 2 + 0.5))) < 0.3


def test_codes_are_read_as_they_are_written(tmp_path):
    lines = ["code,weight,y"]
    lines += [f"0{i % 3},{i % 7}.50,{(i % 3) ** 2 + 0.01 * i}" for i in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    options = ["fit-kernel", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m"]
    run(*options, "--columns", "code=category", "--columns", "weight=category")
    columns = ridgefold.load(tmp_path / "m").columns_.columns
    assert columns[0].levels == ("00", "01", "02")
    assert columns[1].levels[0] == "0.50"
    result = run("predict", tmp_path / "m", tmp_path / "t.csv", "-o", tmp_path / "out.csv")
    assert "note" not in result.stderr
    found = np.array([float(row["prediction"]) for row in rows_of(tmp_path / "out.csv")])
    expected = np.array([(i % 3) ** 2 + 0.01 * i for i in range(60)])
    assert np.max(np.abs(found - expected)) < 0.5
    run(*options, "--force", "--columns", "colour=category", code=3)


def test_two_values_are_classes_unless_said_otherwise(tmp_path):
    x = np.linspace(-1, 1, 40)
    pa_csv.write_csv(pa.table({"x": x, "y": (x > 0).astype(int)}), tmp_path / "t.csv")
    first = run("fit-kernel", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "a")
    assert "classification, because it has two values" in first.stderr
    run("predict", tmp_path / "a", tmp_path / "t.csv", "-o", tmp_path / "out.csv")
    assert {row["prediction"] for row in rows_of(tmp_path / "out.csv")} == {"0", "1"}
    run("fit-kernel", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "b", "--task", "regression")
    assert type(ridgefold.load(tmp_path / "b").model_).__name__ == "LSSVMRegressorCV"


def test_models_saved_by_python_are_predicted_by_the_command(plant):
    import pandas as pd

    table = pd.DataFrame(DATA.X[:N], columns=list(DATA.feature_names))
    model = LSSVMRegressor(0.1, gamma=1e-3, intervals="cv+").fit(table, DATA.y[:N])
    model.save(plant / "m")
    run("predict", plant / "m", plant / "plant.csv", "-o", plant / "out.csv", "--coverage", 0.9)
    found = [float(row["prediction"]) for row in rows_of(plant / "out.csv")]
    np.testing.assert_allclose(found, model.predict(table), rtol=1e-9)
    np.save(plant / "rows.npy", DATA.X[:N])
    LSSVMRegressor(0.1, gamma=1e-3).fit(DATA.X[:N], np.stack([DATA.y[:N]] * 2, 1)).save(plant / "n")
    run("predict", plant / "n", plant / "rows.npy", "-o", plant / "two.csv")
    assert list(rows_of(plant / "two.csv")[0]) == ["prediction_0", "prediction_1"]


def test_rows_are_cut_into_cells(plant):
    model, out = plant / "m.ridgefold", plant / "out.csv"
    options = ["fit-kernel", plant / "plant.csv", "-t", "PE", "--drop", "id", "-o", model]
    summary = json.loads(run(*options, "--partitions", 3, "--json").stdout)
    assert summary["cells"].startswith("3 of ")
    assert summary["held_out_r2"] > 0.9
    run("predict", model, plant / "plant.csv", "-o", out, "--coverage", 0.9)
    order = np.random.default_rng(0).permutation(N)
    pipeline = make_pipeline(StandardScaler(), PartitionedLSSVMRegressor(n_partitions=3))
    pipeline.fit(DATA.X[:N][order], DATA.y[:N][order])
    found = [float(row["prediction"]) for row in rows_of(out)]
    np.testing.assert_allclose(found, pipeline.predict(DATA.X[:N]), rtol=1e-9)
    assert "PartitionedLSSVMRegressor" in run("inspect", model).stdout
    run(*options, "--partitions", "many", "--force", code=2)
    run(*options, "--partitions", 2, "--intervals", "cv+", "--force", code=2)
    lonely = json.loads(run(*options, "--partitions", N, "--force", "--json").stdout)
    assert lonely["cells"] == f"{N} of 1 rows"
    assert "held_out_rmse" not in lonely
    mixed(plant / "t.csv")
    summary = json.loads(
        run(
            "fit-kernel",
            plant / "t.csv",
            "-t",
            "label",
            "-o",
            model,
            "--force",
            "--partitions",
            "auto",
            "--drop",
            '" onload=',
            "--json",
        ).stdout
    )
    assert 0 <= summary["held_out_accuracy"] <= 1
    run("predict", model, plant / "t.csv", "-o", out, "--force", "--probabilities")
    assert "probability of yes" in rows_of(out)[0]


def test_length_scales_are_learned(tmp_path):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(150, 4))
    columns = {name: X[:, j] for j, name in enumerate("abcd")}
    y = np.sin(2 * X[:, 1]) + 0.1 * generator.normal(size=150)
    pa_csv.write_csv(pa.table({**columns, "y": y}), tmp_path / "t.csv")
    options = ["fit-kernel", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m", "--learn-scales"]
    summary = json.loads(run(*options, "--json").stdout)
    assert next(iter(summary["shares_in_distance"])) == "b"
    assert float(summary["shares_in_distance"]["b"].rstrip("%")) > 50
    run("predict", tmp_path / "m", tmp_path / "t.csv", "-o", tmp_path / "o.csv", "--coverage", 0.9)
    summary = json.loads(run(*options, "--force", "--partitions", 2, "--json").stdout)
    assert next(iter(summary["shares_in_distance"])) == "b"
    scales = ridgefold.load(tmp_path / "m").model_.length_scales_
    assert np.argmin(scales) == 1
    shown = run(*options, "--force", "--kernel", "auto").stdout
    assert "shares in distance" in shown
    assert "resolved, not importance" in shown


def test_a_column_of_categories_can_be_one_factor(tmp_path):
    generator = np.random.default_rng(0)
    x, code = generator.normal(size=200), generator.integers(0, 3, 200)
    table = {"x": x, "kind": np.array(["a", "b", "c"])[code], "y": x * (code - 1.0)}
    pa_csv.write_csv(pa.table(table), tmp_path / "t.csv")
    options = ["fit-kernel", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m", "--json"]
    options += ["--categories", "product"]
    assert "needs --learn-scales" in run(*options, code=2).stderr
    summary = json.loads(run(*options, "--learn-scales").stdout)
    assert set(summary["shares_in_distance"]) == {"x", "kind"}
    scales = ridgefold.load(tmp_path / "m").model_.length_scales_
    assert len(set(scales[1:])) == 1
    run("predict", tmp_path / "m", tmp_path / "t.csv", "-o", tmp_path / "o.csv")


def test_numpy_files_are_fitted(tmp_path):
    np.savez(tmp_path / "d.npz", X=DATA.X[:N], y=DATA.y[:N])
    run(
        "fit-kernel",
        tmp_path / "d.npz",
        "-t",
        "y",
        "-o",
        tmp_path / "m",
        "--float32",
        "--intervals",
        "none",
        "--cv",
        "loo",
        "--memory",
        "1GB",
    )
    assert ridgefold.load(tmp_path / "m").model_.X_fit_.dtype == np.float32
    result = run("predict", tmp_path / "m", tmp_path / "d.npz", "--coverage", 0.9, code=3)
    assert 'intervals="jackknife+"' in result.stderr


@pytest.mark.parametrize(
    ("options", "words", "code"),
    [
        (["--target", "pe"], "did you mean 'PE'", 3),
        (["--target", "PE", "--drop", "zz"], "'zz'", 3),
        (["--target", "id", "--task", "regression"], "'id'", 3),
        (["--target", "id"], "300 different texts in 300 rows", 3),
        (["--target", "PE", "--drop", "id", "--cv", "301"], "cv=301", 3),
        (["--target", "PE", "--cv", "five"], "--cv must be", 2),
        (["--target", "PE", "--cv", "1"], "--cv must be", 2),
        (["--target", "PE", "--kernel", "gauss"], "--kernel must be", 2),
        (["--target", "PE", "--kernel", "precomputed"], "--kernel must be", 2),
        (["--target", "PE", "--memory", "lots"], "memory_budget must be", 2),
        (["--target", "PE", "--alpha", "-1"], "--alpha must be", 2),
        (["--target", "PE", "--alpha", "nan"], "--alpha must be", 2),
        (["--target", "PE", "--length-scale", "0"], "--length-scale must be", 2),
        (["--target", "PE", "--time", "0"], "--time must be", 2),
        (["--target", "PE", "--nu", "2"], "--nu is for --kernel matern alone", 2),
        (
            ["--target", "PE", "--kernel", "matern", "--nu", "1.7"],
            "--nu must be 0.5, 1.5 or 2.5, got 1.7",
            2,
        ),
        (["--target", "PE", "--jobs", "0"], "--jobs must be", 2),
        (["--target", "PE", "--executor", "abacus"], "--executor must be", 2),
        (["--target", "PE", "--seed", "-5"], "--seed", 2),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_mistakes_are_answered_with_what_to_do(options, words, code, plant):
    result = run("fit-kernel", plant / "plant.csv", "-o", plant / "m", *options, code=code)
    assert words in result.stderr
    assert not (plant / "m").exists()


READING = ["predict", "report", "inspect", "explain", "fit", "fit-kernel", "diagnose"]


@pytest.mark.parametrize("command", READING)
def test_a_file_that_is_not_there_has_one_code_in_every_command(command, plant):
    fit = ["-t", "PE", "-o", plant / "m"]
    more = {"predict": [plant / "plant.csv"], "fit": fit, "fit-kernel": fit}
    refused = run(command, plant / "none.csv", *more.get(command, []), code=3)
    assert "there is no file" in refused.stderr
    assert "none.csv" in refused.stderr


@pytest.mark.parametrize("option", ["--task", "--categories", "--intervals"])
def test_words_that_an_option_does_not_take_are_refused(option, plant):
    result = run(
        "fit-kernel", plant / "plant.csv", "-t", "PE", "-o", plant / "m", option, "maybe", code=2
    )
    assert "maybe" in result.stderr


def test_devices_that_are_not_there_are_named(plant):
    pytest.importorskip("torch")
    options = ["-t", "PE", "--drop", "id", "-o", plant / "m", "--alpha", 0.1, "--length-scale", 2]
    result = run("fit-kernel", plant / "plant.csv", *options, "--device", "abacus", code=2)
    assert "device" in result.stderr
    run("fit-kernel", plant / "plant.csv", *options, "--device", "cpu")
    run("fit-kernel", plant / "plant.csv", *options[:4], "-o", plant / "n", *options[6:])
    for name in ("m", "n"):
        run("predict", plant / name, plant / "plant.csv", "-o", plant / f"{name}.csv")
    both = [[float(r["prediction"]) for r in rows_of(plant / f"{n}.csv")] for n in ("m", "n")]
    np.testing.assert_allclose(both[0], both[1], rtol=1e-9)


def test_every_kind_of_failure_has_its_exit_code(plant):
    run("fit-kernel", plant / "plant.csv", "--tarrget", "PE", "-o", plant / "m", code=2)
    run("fit-kernel", plant / "none.csv", "-t", "PE", "-o", plant / "m", code=3)
    run("predict", plant / "plant.csv", plant / "plant.csv", code=4)
    options = ["--drop", "id", "--alpha", 0.1, "--length-scale", 2]
    run(
        "fit-kernel",
        plant / "plant.csv",
        "-t",
        "PE",
        "-o",
        plant / "m",
        *options,
        "--memory",
        "10kB",
        code=5,
    )
    run("fit-kernel", plant / "plant.csv", "-t", "PE", "-o", plant / "no" / "m", *options, code=7)
    run("fit-kernel", plant / "plant.csv", "-t", "PE", "-o", plant / "m", *options)
    run("predict", plant / "m", plant / "plant.csv", "--coverage", 90, code=2)
    result = run("predict", plant / "m", plant / "plant.csv", "--probabilities", code=2)
    assert "--probabilities is for classes: this model predicts numbers" in result.stderr
    run("predict", plant / "m", plant / "plant.csv", "--json", code=2)
    (plant / "less.csv").write_text("AT,V\n1,2\n")
    result = run("predict", plant / "m", plant / "less.csv", code=3)
    assert "needs the column 'AP'" in result.stderr
    (plant / "text.csv").write_text("AT,V,AP,RH\n1,2,3,four\n1,2,3,five\n")
    result = run("predict", plant / "m", plant / "text.csv", code=3)
    assert "'four' in line 2" in result.stderr
    (plant / "none.csv").write_text("AT,V,AP,RH\n")
    run("predict", plant / "m", plant / "none.csv", "-o", plant / "none_out.csv", code=3)
    assert not (plant / "none_out.csv").exists()


def test_methods_lists_every_registered_method():
    from ridgefold.crossval import METHODS
    from ridgefold.kernels import NAMED_KERNELS
    from ridgefold.solvers import SOLVERS

    shown = json.loads(run("methods", "--json").stdout)
    assert [m["name"] for m in shown["cross-validation methods"]] == list(METHODS)
    assert [m["name"] for m in shown["solvers"]] == list(SOLVERS)
    assert [m["name"] for m in shown["kernels"]] == list(NAMED_KERNELS)
    text = run("methods").stdout
    assert all(name in text for name in [*METHODS, *SOLVERS])


def test_version_is_printed():
    assert run("--version").stdout.strip() == ridgefold.__version__


RBF = ("--kernel", "rbf")


def test_plans_are_explained_before_there_are_data():
    shown = run("explain", "--rows", "1e4", "--columns", 10, *RBF, "--memory", "8GB").stdout
    assert "10000 rows, 10 columns" in shown
    assert "cholesky" in shown
    result = run("explain", "--rows", 3000, "--columns", 4, "--cv", "loo", "--json")
    choosing, fitting = json.loads(result.stdout)
    assert choosing["method"] not in choosing["not_chosen"]
    assert fitting["predicted_bytes"] > 8 * 3000**2
    size = ("--rows", "1e6", "--columns", 10, "--memory", "100GB")
    linear = run("explain", *size, "--kernel", "linear", "--json")
    assert json.loads(linear.stdout)[1]["method"] == "primal"
    few = run("explain", "--rows", 3000, "--columns", 4, "--alphas", 3, "--json")
    assert "3 ridge values" in json.loads(few.stdout)[0]["problem"]


def test_the_plans_of_a_model_file_are_explained(plant):
    run("fit-kernel", plant / "plant.csv", "-t", "PE", "--drop", "id", "-o", plant / "m", "-q")
    shown = run("explain", plant / "m").stdout
    assert "choosing kernel and alpha" in shown
    assert "cholesky" in shown


def test_long_searches_are_announced(plant, monkeypatch):
    monkeypatch.setattr(sys.modules["ridgefold.cli.fit_kernel"], "_LONG", 0.0)
    options = ["-t", "PE", "--drop", "id", "-o", plant / "m"]
    result = run("fit-kernel", plant / "plant.csv", *options)
    assert "on 300 rows may take up to" in result.stderr
    assert "--partitions auto is faster" in result.stderr


def test_devices_are_planned_for_where_there_are_none():
    shape = ("--rows", "1e4", "--columns", 64, "--device", "cuda:99")
    assert "of 100 GB, on cuda:99" in run("explain", *shape, "--memory", "100GB").stdout
    assert "give memory_budget" in run("explain", *shape, code=2).stderr
    assert "cannot be measured" in run("calibrate", "--device", "cuda:99", code=2).stderr


def test_the_machine_is_measured_and_remembered(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("ridgefold.planning.measurement.SIZES", (20, 40))
    rates = json.loads(run("calibrate", "--json").stdout)["operations_a_second"]
    assert rates["product"] > 0
    assert len(list((tmp_path / "ridgefold").iterdir())) == 1
    assert "matrix products" in run("calibrate").stdout


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--rows", 100],
        ["--rows", 0, "--columns", 2],
        ["--rows", 10.5, "--columns", 2],
        ["--rows", 10, "--columns", 2, "--cv", 11],
        ["--rows", 10, "--columns", 2, "--kernel", "x"],
    ],
    ids=str,
)
def test_what_cannot_be_explained_is_said(options):
    assert "error: " in run("explain", *options, code=2).stderr


def test_one_step_that_is_refused_is_a_refusal():
    shape = ("explain", "--rows", "1e4", "--columns", 10, *RBF, "--memory", "100MB")
    refused = run(*shape, code=5)
    assert "fitting: 10000 rows" in refused.stdout
    assert "no method for 'choosing kernel and alpha' fits the budget" in refused.stderr
    said = json.loads(run(*shape, "--json", code=5).stdout)
    assert said["error"]["type"] == "BudgetError"
    assert [step["method"] is None for step in said["steps"]] == [True, False]


def test_a_refusal_of_all_steps_is_one_json_object():
    shape = ("explain", "--rows", "1e9", "--columns", "1e4", *RBF, "--memory", "1MB", "--json")
    said = json.loads(run(*shape, code=5).stdout)
    assert said["error"]["message"].startswith("nothing fits the budget")
    assert [step["method"] for step in said["steps"]] == [None, None]


@pytest.mark.parametrize("option", [("--device", "cuda"), ("--time", 60.0)], ids=str)
def test_a_cluster_is_planned_without_device_and_time(option):
    shape = ("explain", "--rows", "1e6", "--columns", 10, "--workers", 4, "--memory", "8GB")
    words = f"{option[0]} {option[1]} does not go with --workers"
    assert words in run(*shape, *option, code=2).stderr


def test_every_kind_of_model_file_can_be_explained():
    from ridgefold.estimators.saving import STORABLE

    assert all(hasattr(getattr(ridgefold, name), "explain") for name in STORABLE)


def test_plans_beyond_the_memory_end_with_their_code():
    shape = ("explain", "--rows", "1e9", "--columns", "1e4", "--memory", "1MB")
    run(*shape, code=5)
    run(*shape, *RBF, code=5)
