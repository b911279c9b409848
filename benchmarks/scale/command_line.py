"""The command line on files: memory while a long CSV is predicted and fitted, and agreement
with Python."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

import data
import measure
from measure import Figure
from ridgefold.cli import app
from ridgefold.tables import load_bundled

NOTES = """
`ridgefold predict` on a CSV file of 5 million rows of the power plant's columns, jittered, by a
model of 1,500 rows: most memory resident at once during the command, beyond a process that has
predicted a small file before. Then `ridgefold fit-kernel --partitions auto` on as many rows of six
columns and a target, beyond a process that has fitted a small file. The last part fits all of
california by the command and by `make_pipeline(StandardScaler(), LSSVMRegressor(…))` and compares
their predictions.
"""
BUDGET = "256MB"
FIT_BUDGET = "512MB"
TRAINING_ROWS = 1500


def command(*arguments: object) -> None:
    code = app([str(a) for a in arguments], standalone_mode=False)
    if code:
        raise SystemExit(code)


def write_rows(path: Path, n: int) -> None:
    plant, generator = load_bundled("ccpp"), np.random.default_rng(0)
    names = plant.feature_names
    with pa_csv.CSVWriter(path, pa.schema([(name, pa.float64()) for name in names])) as writer:
        for start in range(0, n, 250_000):
            rows = plant.X[generator.integers(0, len(plant.X), min(250_000, n - start))]
            rows = np.round(rows + generator.normal(scale=0.01, size=rows.shape), 3)
            writer.write_table(pa.table({name: rows[:, j] for j, name in enumerate(names)}))


def write_table(path: Path, X: np.ndarray, y: np.ndarray) -> None:
    columns = {f"x{j}": X[:, j] for j in range(X.shape[1])}
    pa_csv.write_csv(pa.table({**columns, "y": y}), path)


def predict_many(folder: str) -> Callable[[], None]:
    """For `measure.run_in_child`: warm up on a small file, then the long one."""
    here = Path(folder)
    small, large = (
        ("predict", here / "m", here / name, "-o", here / f"{name}.out.csv", "-q", "--force")
        for name in ("small.csv", "large.csv")
    )
    command(*small)
    return lambda: command(*large, "--memory", BUDGET)


def streaming(n: int) -> list[Figure]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plant = load_bundled("ccpp")
        np.savez(
            folder / "train.npz",
            X=plant.X[:TRAINING_ROWS],
            y=plant.y[:TRAINING_ROWS],
            feature_names=np.asarray(plant.feature_names),
        )
        settings = ("--alpha", 0.1, "--length-scale", 1.3, "-q")
        command("fit-kernel", folder / "train.npz", "-t", "y", "-o", folder / "m", *settings)
        write_rows(folder / "small.csv", 1000)
        write_rows(folder / "large.csv", n)
        run = measure.run_in_child(predict_many, str(folder))
        with (folder / "large.csv.out.csv").open("rb") as file:
            lines = sum(1 for _ in file) - 1
        size = (folder / "large.csv").stat().st_size
    if lines != n:
        raise RuntimeError(f"{lines} predictions for {n} rows")
    return [
        Figure(
            f"predict, {n:,} rows of CSV, --memory {BUDGET}: peak memory beyond a small file",
            run.peak_bytes / 1e6,
            "MB",
            at_most=256.0,
            detail={"file, MB": size / 1e6, "seconds": run.seconds},
        )
    ]


def write_targets(path: Path, n: int) -> None:
    """Six columns, and a target that depends on three of them."""
    generator = np.random.default_rng(0)
    names = [*(f"x{j}" for j in range(6)), "y"]
    with pa_csv.CSVWriter(path, pa.schema([(name, pa.float64()) for name in names])) as writer:
        for start in range(0, n, 250_000):
            X = generator.uniform(-3, 3, (min(250_000, n - start), 6))
            y = np.sin(X[:, 0]) * X[:, 1] + np.abs(X[:, 2])
            y += 0.2 * generator.standard_normal(len(X))
            rows = np.round(np.column_stack([X, y]), 4)
            writer.write_table(pa.table({name: rows[:, j] for j, name in enumerate(names)}))


def fit_many(folder: str) -> Callable[[], None]:
    """For `measure.run_in_child`: warm up on a small file, then the long one."""
    here = Path(folder)
    small, large = (
        (
            "fit-kernel",
            here / name,
            "-t",
            "y",
            "-o",
            here / "m",
            "-q",
            "--force",
            "--partitions",
            "auto",
        )
        for name in ("small.csv", "large.csv")
    )
    command(*small)
    return lambda: command(*large, "--memory", FIT_BUDGET)


def fitting(n: int) -> list[Figure]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_targets(folder / "small.csv", 2000)
        write_targets(folder / "large.csv", n)
        run = measure.run_in_child(fit_many, str(folder))
        sizes = {
            "file, MB": (folder / "large.csv").stat().st_size / 1e6,
            "model, MB": (folder / "m").stat().st_size / 1e6,
        }
    return [
        Figure(
            f"fit --partitions auto, {n:,} rows of CSV, --memory {FIT_BUDGET}: peak memory beyond "
            "a small file",
            run.peak_bytes / 1e6,
            "MB",
            at_most=512.0,
            detail={**sizes, "seconds": run.seconds},
        )
    ]


def agreement(n: int | None) -> list[Figure]:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from ridgefold import LSSVMRegressor

    raw = data.raw("california")
    if raw is None:
        return [Figure("california: largest difference", None, "data set not at hand")]
    X, y = raw[0][:n], raw[1][:n]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_table(folder / "c.csv", X, y)
        settings = ("--alpha", 0.1, "--length-scale", 1.5, "--intervals", "none", "-q")
        command("fit-kernel", folder / "c.csv", "-t", "y", "-o", folder / "m", *settings)
        command("predict", folder / "m", folder / "c.csv", "-o", folder / "out.csv", "-q")
        ours = pa_csv.read_csv(folder / "out.csv").column("prediction").to_numpy()
    model = LSSVMRegressor(0.1, kernel="rbf", kernel_params={"length_scale": 1.5})
    theirs = make_pipeline(StandardScaler(), model).fit(X, y).predict(X)
    difference = float(np.max(np.abs(ours - theirs)) / np.max(np.abs(theirs)))
    return [
        Figure(
            f"california, {len(y):,} rows, CSV → fit → predict: largest relative difference from "
            "the Python API",
            difference,
            at_most=1e-9,
        )
    ]


def main(quick: bool) -> bool:
    n = 100_000 if quick else 5_000_000
    figures = streaming(n) + fitting(n) + agreement(500 if quick else None)
    print(measure.markdown_table(figures))
    if quick:
        return True
    measure.write_results("command_line", "The command line", NOTES, figures)
    return measure.all_held(figures)


if __name__ == "__main__":
    measure.command_line(main, __doc__)
