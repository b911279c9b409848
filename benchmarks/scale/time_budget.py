"""Is a time budget kept, and does more time lower errors? 60 tables, budgets of 2 to 120 seconds.

Every problem runs in this process, one after the other. `--problems N` runs the first N of them
and writes nothing; `--quick` small ones.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import numpy as np

import measure  # before NumPy: it sets one BLAS thread
from measure import Figure
from ridgefold import RidgefoldClassifier, RidgefoldRegressor
from ridgefold.errors import BudgetError

ROWS, COLUMNS, BUDGETS = (300, 60_000), (3, 200), (2.0, 120.0)
COUNT = 60
TESTED = 2000
LADDER = (2.0, 5.0, 12.0, 30.0, 75.0)
"""Budgets of the same table, to see what more time gains."""
LADDER_TABLES = ((1000, 10), (4000, 20), (20_000, 20))
SHARE_KEPT = 0.95
NOTES = """
Made-up tables of 300 to 60,000 rows and 3 to 200 columns, a quarter of them with two classes, and
budgets of 2 to 120 s, drawn evenly on logarithmic scales. A fit is in time if it ends within 1.15
times its budget and a second, or refuses before the work; it is never to take more than 1.5 times
its budget and a second. Seconds are
processor seconds on one thread, which fits go by as well: what a clock on the wall would show on an
idle machine. The second table is one table with more and more time: root
mean square error over the deviation of the targets without their noise.
"""


class Regressor(RidgefoldRegressor):
    _clock = staticmethod(measure.processor_seconds)


class Classifier(RidgefoldClassifier):
    _clock = staticmethod(measure.processor_seconds)


@dataclass(frozen=True)
class Outcome:
    """One fit."""

    rows: int
    columns: int
    classes: bool
    budget: float
    seconds: float
    error: float | None
    """Of new rows without noise: relative, or the share of wrong classes; None if refused."""
    refused: str = ""

    @property
    def over(self) -> float:
        """Seconds beyond 1.15 budgets and a second, as a share of the budget."""
        return (self.seconds - 1.15 * self.budget - 1.0) / self.budget


def table_of(rows: int, columns: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, targets, and targets without noise: curved, with steps and an interaction."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns))
    X[:, 0] = np.exp(X[:, 0])
    signal = np.log1p(X[:, 0]) * X[:, 1] + np.sin(2.0 * X[:, 2]) + 0.5 * (X[:, columns // 2] > 0)
    signal += 0.1 * X[:, : min(columns, 10)].sum(axis=1)
    return X, signal + 0.3 * rng.standard_normal(rows), signal


def fitted(rows: int, columns: int, budget: float, *, classes: bool, seed: int) -> Outcome:
    X, y, signal = table_of(rows + TESTED, columns, seed)
    model: Any = Classifier if classes else Regressor
    targets = y > np.median(y) if classes else y
    begun = measure.processor_seconds()
    refused, error = "", None
    try:
        made = model(time_budget=budget).fit(X[:rows], targets[:rows])
    except BudgetError as refusal:
        refused = str(refusal)
    seconds = measure.processor_seconds() - begun
    if not refused:
        predicted = made.predict(X[rows:])
        if classes:
            error = float(np.mean(predicted != (signal[rows:] > np.median(y))))
        else:
            error = float(np.sqrt(np.mean((predicted - signal[rows:]) ** 2)) / signal.std())
    return Outcome(rows, columns, classes, budget, seconds, error, refused)


def problems() -> list[tuple[int, int, float, bool]]:
    """Rows, columns, budget, and whether classes are predicted."""
    rng = np.random.default_rng(0)

    def drawn(least: float, most: float) -> np.ndarray:
        return np.exp(rng.uniform(np.log(least), np.log(most), COUNT))

    rows, columns, budgets = drawn(*ROWS), drawn(*COLUMNS), drawn(*BUDGETS)
    return [
        (round(n), round(d), round(float(b), 1), k % 4 == 0)
        for k, (n, d, b) in enumerate(zip(rows, columns, budgets, strict=True))
    ]


def run(which: list[tuple[int, int, float, bool]]) -> list[Outcome]:
    outcomes = []
    for k, (rows, columns, budget, classes) in enumerate(which):
        outcome = fitted(rows, columns, budget, classes=classes, seed=k)
        outcomes.append(outcome)
        print(
            f"{rows:6d} × {columns:3d}, {budget:5.1f} s: took {outcome.seconds:.1f} s, "
            f"error {outcome.error} "
            f"{outcome.refused[:80]}",
            flush=True,
        )
    return outcomes


def figures_of(outcomes: list[Outcome]) -> list[Figure]:
    late = [each.over for each in outcomes]
    beyond = [(each.seconds - 1.0) / each.budget for each in outcomes]
    refused = [each for each in outcomes if each.refused]
    return [
        Figure("share of fits in time", float(np.mean([o <= 0 for o in late])),
               f"{len(outcomes)} problems", at_least=SHARE_KEPT),
        Figure("longest fit: (seconds − 1) / budget", max(beyond), at_most=1.5),
        Figure("seconds / budget, median",
               float(np.median([each.seconds / each.budget for each in outcomes]))),
        Figure("refused", float(len(refused)), f"of {len(outcomes)}"),
    ]  # fmt: skip


def ladder_page(ladder: list[list[Outcome]]) -> str:
    lines = [
        "## More time, less error",
        "",
        f"| rows × columns | {' | '.join(f'{b:g} s' for b in LADDER)} |",
        "|---" * (len(LADDER) + 1) + "|",
    ]
    for steps in ladder:
        first = steps[0]
        cells = ["refused" if o.error is None else f"{o.error:.3f}" for o in steps]
        lines.append(f"| {first.rows:,} × {first.columns} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(quick: bool, count: int | None = None, longest: float = BUDGETS[1]) -> bool:
    if quick:
        run([(300, 3, 2.0, False), (300, 5, 2.0, True), (3000, 5, 3.0, False)])
        return True
    outcomes = run([each for each in problems()[:count] if each[2] <= longest])
    figures = figures_of(outcomes)
    if count is not None or longest < BUDGETS[1]:
        print(measure.markdown_table(figures))
        return True
    ladder = [
        [fitted(rows, columns, budget, classes=False, seed=7) for budget in LADDER]
        for rows, columns in LADDER_TABLES
    ]
    measure.write_results(
        "time_budget", "Time budgets", NOTES, figures, more=ladder_page(ladder),
        data={
            "problems": [asdict(each) for each in outcomes],
            "ladder": [[asdict(each) for each in steps] for steps in ladder],
        },
    )  # fmt: skip
    return measure.all_held(figures)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three small fits, nothing written")
    parser.add_argument("--problems", type=int, help="only so many, nothing written")
    parser.add_argument(
        "--longest", type=float, default=BUDGETS[1], help="leave longer budgets out, write nothing"
    )
    options = parser.parse_args()
    sys.exit(0 if main(options.quick, options.problems, options.longest) else 1)
