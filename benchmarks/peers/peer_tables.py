"""Our models beside boosting, xRFM and RealMLP on many tables: errors, log-losses, seconds.

Every (table, rows, split, model) is kept in results/peer_tables.json as soon as it is measured, so
that a run that was stopped goes on where it was; `--hours` stops it after so many processor hours.
`--models`, `--tables`, `--sizes` and `--splits` run a part, `--report` only writes the page.
Models whose package is not installed are left out.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import sys
import warnings
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from _boosters import BOOSTERS
from _other_peers import OTHER_PEERS

import data
import measure
from measure import Figure
from ridgefold import (
    LSSVMClassifierCV,
    LSSVMRegressorCV,
    MetricLearning,
    RidgefoldClassifier,
    RidgefoldRegressor,
    Search,
)

REGRESSION = (
    "ccpp", "cpusmall", "california", "kin8nm", "protein", "puma32h", "elevators", "pol",
    "kin40k", "keggdirected", "blogfeedback", "ujiindoorloc",
)  # fmt: skip
CLASSES = (
    "magic", "german", "banana", "ripley", "electricity", "credit", "letter_binary", "digits",
    "ujiindoorloc_floor",
)  # fmt: skip
SHOWN = ("bike", "ctslice_682", "steel_plates", "eeg")
"""Measured and shown, but not counted: the target leaks into columns, or rows are too few."""
TUNED_ON = ("ccpp", "cpusmall", "california", "kin8nm", "pol", "magic", "german", "banana")
"""Tables on which defaults of ours were chosen; the others were kept apart."""
SIZES = (1000, 4000, 12000)
MOST_TESTED = 5000
"""Rows beyond those of training that errors are measured on, at most."""
SPLITS = 3
STORE = measure.RESULTS / "peer_tables.json"
FEW = 1e-15
NOTES = """
Three random splits of each table into so many training rows (all but a fifth where there are fewer)
and up to 5,000 others. Every model sees the same rows, columns standardised by the training rows,
chooses everything on the training rows, and runs on one thread. Regression: root mean square error
over the standard deviation of the test targets; classes: log-loss. Seconds are processor time to
tune and fit. Ratios are means over splits first, then geometric means over tables, clipped to
[0.5, 2].
"""


@dataclass(frozen=True)
class Outcome:
    """One model on one split."""

    error: float
    seconds: float
    """Processor time to tune and fit."""


# -- tables ------------------------------------------------------------------------------


def load(name: str) -> tuple[np.ndarray, np.ndarray] | None:
    """All rows and targets of a table; None if it is not at hand."""
    if name == "digits":
        from sklearn.datasets import load_digits

        return load_digits(return_X_y=True)
    if name.startswith("ujiindoorloc"):
        path = data.folder() / "ujiindoorloc.npz"
        if not path.exists():
            return None
        with np.load(path, allow_pickle=False) as arrays:
            X = np.where(arrays["X"] == 100, -105.0, arrays["X"]).astype(np.float64)
            return X, arrays["floor" if name.endswith("floor") else "y"].astype(np.float64)
    found = data.raw(name) or data.raw(f"uci_gp/{name}")
    if found is not None and name == "blogfeedback":
        return found[0], np.log1p(found[1])
    return found


def split_of(name: str, n_rows: int, seed: int) -> tuple[np.ndarray, ...] | None:
    """Training rows and targets, test rows and targets; None if the table is not at hand."""
    found = load(name)
    if found is None:
        return None
    X, y = found
    order = np.random.default_rng(seed).permutation(len(y))
    n_rows = min(n_rows, round(0.8 * len(y)))
    train, test = order[:n_rows], order[n_rows : n_rows + MOST_TESTED]
    mean, spread = X[train].mean(axis=0), X[train].std(axis=0)
    X = (X - mean) / np.where(spread > 0, spread, 1.0)
    return X[train], y[train], X[test], y[test]


def sizes_of(name: str) -> list[int]:
    """The sizes that a table has rows for; the largest may be all of them."""
    found = load(name)
    if found is None:
        return []
    most = round(0.8 * len(found[1]))
    return [size for size in SIZES if size <= most] + ([most] if 1100 <= most < SIZES[-1] else [])


# -- models ------------------------------------------------------------------------------


def fixed_kernel(X: np.ndarray, y: np.ndarray, seed: int, classify: bool) -> Any:
    """The isotropic RBF kernel, its width and the ridge chosen by exact cross-validation."""
    return (LSSVMClassifierCV if classify else LSSVMRegressorCV)(**_seeded(seed, classify)).fit(
        X, y
    )


def learned_scales(X: np.ndarray, y: np.ndarray, seed: int, classify: bool) -> Any:
    """Family, transforms, scales and ridge left to the library."""
    settings = {"kernel": "auto", "metric": MetricLearning(transforms="auto")}
    model = LSSVMClassifierCV if classify else LSSVMRegressorCV
    return model(**settings, **_seeded(seed, classify)).fit(X, y)


def everything_chosen(X: np.ndarray, y: np.ndarray, seed: int, classify: bool) -> Any:
    """The estimators for people with a table, as they are."""
    model = RidgefoldClassifier if classify else RidgefoldRegressor
    return model(random_state=seed).fit(X, y)


def stack(X: np.ndarray, y: np.ndarray, seed: int, classify: bool) -> Any:
    """The same, but several kernels that are combined by their held-out predictions."""
    settings = {
        "kernel": "auto",
        "metric": MetricLearning(transforms="auto"),
        "search": Search(stack=True),
    }
    model = LSSVMClassifierCV if classify else LSSVMRegressorCV
    return model(**settings, **_seeded(seed, classify)).fit(X, y)


def _seeded(seed: int, classify: bool) -> dict[str, Any]:
    return {"random_state": seed, **({"probability": True} if classify else {})}


EVERYTHING = "RidgefoldRegressor defaults"
OURS: dict[str, Callable[..., Any]] = {
    EVERYTHING: everything_chosen,
    "learned scales": learned_scales,
    "stack": stack,
    "fixed kernel": fixed_kernel,
}
MODELS: dict[str, Callable[..., Any]] = {**OURS, **BOOSTERS, **OTHER_PEERS}
BOOSTING = ("HistGradientBoosting", "LightGBM", "CatBoost", "CatBoost defaults")
PACKAGES = {"LightGBM": "lightgbm", "CatBoost": "catboost", "xRFM": "xrfm", "RealMLP": "pytabkit"}
SMALL_ONLY = {"xRFM tuned": 4000, "RealMLP": 4000}
"""Peers that take too long on more rows than these."""


def installed(model: str) -> bool:
    package = next((p for start, p in PACKAGES.items() if model.startswith(start)), None)
    return package is None or importlib.util.find_spec(package) is not None


def log_loss(y: np.ndarray, shares: np.ndarray, classes: np.ndarray) -> float:
    """Of predicted probabilities; a class that was never seen in training has none."""
    place = np.searchsorted(classes, y)
    place = np.minimum(place, len(classes) - 1)
    given = np.where(classes[place] == y, shares[np.arange(len(y)), place], 0.0)
    return float(-np.mean(np.log(np.clip(given, FEW, 1.0))))


def run_one(model: str, name: str, n_rows: int, split: int) -> Outcome:
    rows = split_of(name, n_rows, split)
    assert rows is not None
    X, y, X_test, y_test = rows
    classify = is_classification(name)
    with measure.one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = measure.processor_seconds()
        fitted = MODELS[model](X, y, split, classify)
        seconds = measure.processor_seconds() - started
        if classify:
            error = log_loss(y_test, np.asarray(fitted.predict_proba(X_test)), fitted.classes_)
        else:
            residuals = np.asarray(fitted.predict(X_test)).ravel() - y_test
            error = float(np.sqrt(np.mean(residuals**2)) / np.std(y_test))
    return Outcome(error, seconds)


def is_classification(name: str) -> bool:
    return name in (*CLASSES, "steel_plates", "eeg")


# -- the store ---------------------------------------------------------------------------


def store() -> AbstractContextManager[dict[str, Any]]:
    """The results so far, to be changed."""
    return measure.kept(STORE)


def measure_all(
    models: list[str], tables: list[str], sizes: list[int], splits: int, hours: float
) -> None:
    """What is missing, a split of all tables before the next, small tables first."""
    begun = measure.processor_seconds()
    for split, size, name, model in product(range(splits), sizes, tables, models):
        key = f"{name}/{size}/{split}/{model}"
        with store() as record:
            known = key in record["runs"]
        asked = size in sizes_of(name) and size <= SMALL_ONLY.get(model, size)
        if known or not asked or not installed(model):
            continue
        if measure.processor_seconds() - begun > 3600 * hours:
            print(f"stopped after {hours:g} processor hours; run again to go on", flush=True)
            return
        outcome = run_one(model, name, size, split)
        print(f"{key}: {outcome.error:.5g}, {outcome.seconds:.1f} s", flush=True)
        with store() as record:
            record["runs"][key] = {"error": outcome.error, "seconds": outcome.seconds}


# -- the page ----------------------------------------------------------------------------


class Results:
    """Means over splits of what was measured."""

    def __init__(self, runs: dict[str, Any]) -> None:
        self.by_case: dict[tuple[str, int], dict[str, list[dict[str, float]]]] = {}
        for key, run in sorted(runs.items()):
            name, size, _, model = key.split("/", 3)
            self.by_case.setdefault((name, int(size)), {}).setdefault(model, []).append(run)

    def mean(self, case: tuple[str, int], model: str, what: str) -> float | None:
        runs = self.by_case.get(case, {}).get(model)
        return None if not runs else float(np.mean([run[what] for run in runs]))

    def least(self, case: tuple[str, int], models: tuple[str, ...]) -> float | None:
        """The smallest mean error of some models."""
        errors = [self.mean(case, model, "error") for model in models]
        known = [error for error in errors if error is not None]
        return min(known) if known else None

    def cases(self, tables: tuple[str, ...], model: str) -> list[tuple[str, int]]:
        """Where a model of ours and boosting were both measured, in the order of the tables."""
        known = [
            case
            for case, models in self.by_case.items()
            if case[0] in tables and model in models and any(b in models for b in BOOSTING)
        ]
        return sorted(known, key=lambda case: (tables.index(case[0]), case[1]))

    def ratios(
        self, tables: tuple[str, ...], model: str, peers: tuple[str, ...]
    ) -> dict[tuple[str, int], float]:
        """Error of a model over the least error of some peers, by table and size."""
        found = {}
        for case in self.cases(tables, model):
            ours, theirs = self.mean(case, model, "error"), self.least(case, peers)
            if ours is not None and theirs is not None:
                found[case] = float(np.clip(ours / theirs, 0.5, 2.0))
        return found

    def cases_of(self, cases: Iterable[tuple[str, int]], models: tuple[str, ...]) -> int:
        """In how many cases one of some models was measured."""
        return sum(any(model in self.by_case[case] for model in models) for case in cases)

    def times(self, tables: tuple[str, ...], model: str, peer: str) -> list[float]:
        """Seconds of a model over those of a peer."""
        pairs = [
            (self.mean(case, model, "seconds"), self.mean(case, peer, "seconds"))
            for case in self.cases(tables, model)
        ]
        return [ours / theirs for ours, theirs in pairs if ours and theirs]


def geometric(values: Any) -> float:
    values = list(values)
    return float(np.exp(np.mean(np.log(values)))) if values else float("nan")


def page_of(results: Results) -> str:
    """One table for each kind of target: mean errors and seconds, the least error in bold."""
    parts = []
    for title, tables in (("Regression", REGRESSION), ("Classes", CLASSES), ("Not counted", SHOWN)):
        cases = sorted(
            (case for case in results.by_case if case[0] in tables),
            key=lambda case: (tables.index(case[0]), case[1]),
        )
        models = [m for m in MODELS if any(m in results.by_case[case] for case in cases)]
        lines = [f"### {title}\n", f"| table, rows | {' | '.join(models)} |"]
        lines.append("|---" * (len(models) + 1) + "|")
        for case in cases:
            best = results.least(case, tuple(models))
            cells = []
            for model in models:
                error, took = (results.mean(case, model, w) for w in ("error", "seconds"))
                text = "" if error is None else f"{error:.4g} ({took:.1f} s)"
                cells.append(f"**{text}**" if error is not None and error == best else text)
            apart = "" if case[0] in TUNED_ON else " ·"
            lines.append(f"| {case[0]}{apart} {case[1]} | {' | '.join(cells)} |")
        if cases:
            parts.append("\n".join(lines))
    parts.append("Tables marked · were never looked at while defaults of ours were chosen.")
    return "\n\n".join(parts)


Targets = dict[str, dict[str, float]]
_LEARNED: Targets = {
    "regression": {"error": 0.88, "won": 0.8, "time": 1.5},
    "classes": {"error": 0.95, "won": 0.6, "time": 3.0},
}
TARGETS: dict[str, Targets] = {
    "learned scales": _LEARNED,
    "stack": _LEARNED,
    EVERYTHING: {
        "regression": {"error": 0.90, "won": 0.75, "time": 2.0},
        "classes": {"error": 0.97, "won": 0.55, "time": 2.0},
    },
}
"""What models of ours are to reach beside boosting."""


def figures_of(results: Results, model: str) -> list[Figure]:
    peers = tuple(m for m in MODELS if m not in OURS)
    figures = []
    for kind, tables in (("regression", REGRESSION), ("classes", CLASSES)):
        target = TARGETS[model][kind]
        ratios = results.ratios(tables, model, BOOSTING)
        if not ratios:
            continue
        count = f"tables and sizes: {len(ratios)}"
        # Of the others, where most tables have one.
        others, measured = (
            [],
            results.cases_of(ratios, tuple(p for p in peers if p not in BOOSTING)),
        )
        if 2 * measured >= len(ratios):
            others = [
                Figure(f"{kind}: {model}, error / best of all peers",
                       geometric(results.ratios(tables, model, peers).values()), count,
                       **({"at_most": 0.95} if kind == "regression" else {})),
            ]  # fmt: skip
        apart = [ratio for case, ratio in ratios.items() if case[0] not in TUNED_ON]
        figures += [
            Figure(f"{kind}: {model}, error / best boosting", geometric(ratios.values()), count,
                   at_most=target["error"]),
            Figure(f"{kind}: {model}, error / best boosting, tables kept apart", geometric(apart),
                   f"tables and sizes: {len(apart)}"),
            *others,
            Figure(f"{kind}: {model}, share at or below the best boosting",
                   float(np.mean([ratio <= 1.0 for ratio in ratios.values()])), count,
                   at_least=target["won"]),
            Figure(f"{kind}: {model}, seconds / CatBoost's 3,000 rounds",
                   geometric(results.times(tables, model, "CatBoost")), count,
                   at_most=target["time"]),
        ]  # fmt: skip
    return figures


def measured_so_far(runs: dict[str, Any]) -> str:
    """How much of the whole plan there is, in words."""
    keys = [key.split("/", 3) for key in runs]
    splits = sorted({int(split) for _, _, split, _ in keys})
    by_model = {model: sum(each[3] == model for each in keys) for model in MODELS}
    counts = ", ".join(f"{model} {count}" for model, count in by_model.items() if count)
    return (
        f"Of the {SPLITS} splits {len(splits)} measured so far. Tables and sizes of each model, "
        f"times splits: {counts}. Sizes that are missing were not run."
    )


def report() -> bool:
    """results/peer_tables.md, from what was measured."""
    with store() as record:
        results = Results(record["runs"])
        figures = [figure for model in TARGETS for figure in figures_of(results, model)]
        versions = [
            f"{package} {importlib.metadata.version(package)}"
            for package in PACKAGES.values()
            if importlib.util.find_spec(package) is not None
        ]
        notes = f"{NOTES}\n{measured_so_far(record['runs'])}\n\n{', '.join(versions)}."
        measure.write_results(
            "peer_tables", "Many tables, many peers", notes, figures, more=page_of(results),
            data={"runs": dict(sorted(record["runs"].items()))},
        )  # fmt: skip
    print(page_of(results))
    return measure.all_held(figures)


def main(quick: bool) -> bool:
    if quick:
        for model in filter(installed, MODELS):
            for name in ("ccpp", "banana"):
                if load(name) is not None:
                    print(model, name, run_one(model, name, 300, 0))
        return True
    measure_all(list(MODELS), [*REGRESSION, *CLASSES, *SHOWN], list(SIZES), SPLITS, hours=8.0)
    return report()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="300 rows, nothing written")
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    parser.add_argument("--tables", nargs="*", default=[*REGRESSION, *CLASSES, *SHOWN])
    parser.add_argument("--sizes", nargs="*", type=int, default=list(SIZES))
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--hours", type=float, default=8.0)
    parser.add_argument("--report", action="store_true", help="only write the page")
    options = parser.parse_args()
    if options.quick:
        sys.exit(0 if main(True) else 1)
    if not options.report:
        measure_all(options.models, options.tables, options.sizes, options.splits, options.hours)
    sys.exit(0 if report() else 1)
