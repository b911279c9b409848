"""Kernels with learned scales beside gradient boosting: same rows, ten splits, tuning included.

Every (set, split, model) is kept in results/boosting.json as soon as it is measured, so that a
run that was stopped goes on where it was. `--models`, `--sets` and `--splits` run a part.
"""

from __future__ import annotations

import argparse
import fcntl
import importlib.metadata
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from _boosters import BOOSTERS

import data
import measure
from measure import Figure
from ridgefold import LSSVMClassifierCV, LSSVMRegressorCV, MetricLearning

TRAINING_ROWS = {
    "ccpp": 7500,
    "puma32h": 6500,
    "kin8nm": 6500,
    "cpusmall": 6000,
    "california": 8000,
    "protein": 12000,
}
SPLITS = 10
STORE = measure.RESULTS / "boosting.json"
NOTES = """
Test RMSE, mean over random splits, each into the training rows named and all others. Every model
sees the same rows and columns, chooses everything on the training rows, and runs on one thread;
processor seconds to tune and fit are in brackets. Only splits on which all four were measured
count.

- learned scales: `LSSVMRegressorCV(kernel="auto", metric=MetricLearning(transforms="auto"))`
- HistGradientBoosting (scikit-learn): 1000 rounds, rate 0.05, early stopping
- LightGBM: 5000 rounds, rate 0.03, 63 leaves, rows and columns sampled by 0.8
- CatBoost: 3000 rounds, rate 0.05, depth 8

LightGBM and CatBoost stop early on an eighth of the training rows, after 100 rounds without
progress.

The errors do not depend on the machine; the seconds do. Those of learned scales in the committed
results are from a 16-core machine with all cores busy, those of the boosters from the one named
below.
"""


@dataclass(frozen=True)
class Outcome:
    """One model on one split."""

    rmse: float
    seconds: float
    """Processor time to tune and fit."""


def learned_scales(X: np.ndarray, y: np.ndarray, seed: int, classify: bool) -> Any:
    """Everything left to the library: family, transforms, scales and ridge."""
    settings = {
        "kernel": "auto",
        "metric": MetricLearning(transforms="auto"),
        "random_state": seed,
    }
    return (LSSVMClassifierCV if classify else LSSVMRegressorCV)(**settings).fit(X, y)


MODELS: dict[str, Callable[..., Any]] = {"learned scales": learned_scales, **BOOSTERS}


@contextmanager
def store() -> Iterator[dict[str, Any]]:
    """The results so far, to be changed; two processes may add to them at the same time."""
    STORE.parent.mkdir(parents=True, exist_ok=True)
    with open(STORE, "a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        text = file.read()
        record = json.loads(text) if text else {"machine": measure.machine_facts(), "runs": {}}
        before = json.dumps(record)
        yield record
        if json.dumps(record) != before:
            file.seek(0)
            file.truncate(0)
            file.write(json.dumps(record, indent=1, ensure_ascii=False) + "\n")


def run_one(model: str, name: str, split: int, n_rows: int) -> Outcome:
    rows = data.standardised(name, n_rows, seed=split)
    assert rows is not None
    X, y, X_test, y_test = rows
    with measure.one_thread(), warnings.catch_warnings():
        # LightGBM names the columns of arrays, then warns that arrays have no names.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        warnings.filterwarnings("ignore", message="The argument 'eval_set' is deprecated")
        started = measure.processor_seconds()
        fitted = MODELS[model](X, y, split, False)
        seconds = measure.processor_seconds() - started
        error = np.asarray(fitted.predict(X_test)) - y_test
    return Outcome(float(np.sqrt(np.mean(error**2))), seconds)


def at_hand(name: str) -> bool:
    return data.standardised(name, 10) is not None


def measure_all(models: list[str], sets: list[str], splits: int) -> None:
    """What is missing, a split of all sets before the next."""
    for split, name, model in product(range(splits), sets, models):
        key = f"{name}/{split}/{model}"
        with store() as record:
            known = key in record["runs"]
        if known or not at_hand(name):
            continue
        outcome = run_one(model, name, split, TRAINING_ROWS[name])
        print(f"{key}: {outcome.rmse:.5g}, {outcome.seconds:.1f} s", flush=True)
        with store() as record:
            record["runs"][key] = {"rmse": outcome.rmse, "seconds": outcome.seconds}


# -- tables --------------------------------------------------------------------------------


def complete_splits(runs: dict[str, Any], name: str) -> list[int]:
    """Splits on which every model was measured."""
    return [s for s in range(SPLITS) if all(f"{name}/{s}/{model}" in runs for model in MODELS)]


def mean_of(runs: dict[str, Any], name: str, model: str, what: str) -> float:
    splits = complete_splits(runs, name)
    return float(np.mean([runs[f"{name}/{s}/{model}"][what] for s in splits]))


def _error(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def table(runs: dict[str, Any]) -> str:
    """Mean test error (and processor seconds) of every model, the best in bold."""
    lines = [
        f"| set, training rows (splits) | {' | '.join(MODELS)} | learned / best boosting |",
        "|---" * (len(MODELS) + 2) + "|",
    ]
    for name, n_rows in TRAINING_ROWS.items():
        splits = complete_splits(runs, name)
        if not splits:
            continue
        errors = {model: mean_of(runs, name, model, "rmse") for model in MODELS}
        best = min(errors.values())
        cells = [
            f"{'**' if e == best else ''}{_error(e)}{'**' if e == best else ''} "
            f"({mean_of(runs, name, model, 'seconds'):.0f} s)"
            for model, e in errors.items()
        ]
        ratio = errors["learned scales"] / min(errors[model] for model in BOOSTERS)
        lines.append(f"| {name} {n_rows} ({len(splits)}) | {' | '.join(cells)} | {ratio:.3f} |")
    return "\n".join(lines)


def figures_of(runs: dict[str, Any]) -> list[Figure]:
    known = [name for name in TRAINING_ROWS if complete_splits(runs, name)]
    ours = {name: mean_of(runs, name, "learned scales", "rmse") for name in known}
    theirs = {
        name: {model: mean_of(runs, name, model, "rmse") for model in BOOSTERS} for name in known
    }
    figures = [
        Figure(
            f"{name}: mean test RMSE, learned scales / HistGradientBoosting",
            ours[name] / theirs[name]["HistGradientBoosting"],
            f"(splits: {len(complete_splits(runs, name))})",
            at_most=1.0,
        )
        for name in known
    ]
    lower = sum(ours[n] <= 0.9 * theirs[n]["HistGradientBoosting"] for n in known)
    beaten = sum(ours[n] <= min(theirs[n]["LightGBM"], theirs[n]["CatBoost"]) for n in known)
    return [
        *figures,
        Figure(
            "sets with at least 10% less error than HistGradientBoosting",
            lower,
            f"of {len(known)}",
            at_least=3,
        ),
        Figure(
            "sets with no more error than the better of LightGBM and CatBoost",
            beaten,
            f"of {len(known)}",
            at_least=5,
        ),
    ]


def report() -> bool:
    """results/boosting.md, from what was measured."""
    with store() as record:
        runs = dict(sorted(record["runs"].items()))
        figures, page = figures_of(runs), table(runs)
        counts = {m: sum(key.endswith(f"/{m}") for key in runs) for m in MODELS}
        versions = [f"{p} {importlib.metadata.version(p)}" for p in ("lightgbm", "catboost")]
        notes = (
            f"{NOTES}\nMeasured so far, of {SPLITS * len(TRAINING_ROWS)} runs each: "
            f"{', '.join(f'{m} {count}' for m, count in counts.items())}. {', '.join(versions)}."
        )
        measure.write_results(
            "boosting", "Learned scales and gradient boosting", notes, figures, more=page,
            data={"runs": runs},
        )  # fmt: skip
    print(page)
    return measure.all_held(figures)


def main(quick: bool) -> bool:
    if quick:
        for model in MODELS:
            print(model, run_one(model, "ccpp", 0, 300))
        return True
    measure_all(list(MODELS), list(TRAINING_ROWS), SPLITS)
    return report()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="300 rows, nothing written")
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    parser.add_argument("--sets", nargs="*", default=list(TRAINING_ROWS))
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--report", action="store_true", help="only write the tables")
    options = parser.parse_args()
    if options.quick:
        sys.exit(0 if main(True) else 1)
    if not options.report:
        measure_all(options.models, options.sets, options.splits)
    sys.exit(0 if report() else 1)
