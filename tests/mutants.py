"""Break the library in one place at a time and see whether the tests notice.

Every mutant is one line of `src` made wrong: a sign, an index off by one, the wrong fold, a
forgotten weight. It is put into a copy of the project and the tests are run until one fails, those
that mirror its folder first. `make mutants` runs all; names on the command line choose some.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAY_SURVIVE = 2
LONGEST = 1800.0
"""Seconds that a run of the tests may take."""


@dataclass(frozen=True)
class Mutant:
    """One place to break."""

    name: str
    path: str
    before: str
    after: str


MUTANTS = (
    Mutant(
        "bias of a centred system",
        "linalg/centring.py",
        "self.space.basis.T @ y - self.product.T @ solution",
        "self.space.basis.T @ y + self.product.T @ solution",
    ),
    Mutant(
        "half of the shift in centring",
        "linalg/centring.py",
        "(inner, 0.5 * shift)",
        "(inner, -0.5 * shift)",
    ),
    Mutant(
        "weight of a held-out residual",
        "crossval/shared/shortcut.py",
        "return values / self.namespace.take_rows(self.roots, position)[:, None]",
        "return values * self.namespace.take_rows(self.roots, position)[:, None]",
    ),
    Mutant(
        "targets of weighted rows",
        "crossval/shared/shortcut.py",
        "return y if self.roots is None else y * self.roots[:, None]",
        "return y",
    ),
    Mutant(
        "bias of rows without weight",
        "crossval/shared/shortcut.py",
        "layout.unpenalised() is None:\n        return values\n    product",
        "True:\n        return values\n    product",
    ),
    Mutant(
        "diagonal of the bordered inverse",
        "linalg/unpenalised.py",
        "diagonal = diagonal - xp.sum(along * shares, axis=-1)",
        "diagonal = diagonal + xp.sum(along * shares, axis=-1)",
    ),
    Mutant(
        "intercept left in the solution",
        "linalg/unpenalised.py",
        "return plain - along @ coordinates, coordinates, diagonal",
        "return plain, coordinates, diagonal",
    ),
    Mutant(
        "mask of training rows",
        "crossval/shared/masked.py",
        "mask[folds.training_rows(k), k] = 1.0",
        "mask[folds.training_rows(max(k - 1, 0)), k] = 1.0",
    ),
    Mutant(
        "scale of the bias",
        "linalg/unpenalised.py",
        "namespace.asarray([[1.0 / size]], direction)",
        "namespace.asarray([[1.0]], direction)",
    ),
    Mutant(
        "reach with a bias",
        "crossval/shared/masked.py",
        "return 2.0 * largest",
        "return 0.1 * largest",
    ),
    Mutant(
        "certificate of anchored",
        "crossval/anchored.py",
        "bound=bounds.of(residuals)",
        "bound=1e-12 * bounds.of(residuals)",
    ),
    Mutant(
        "certificate of preconditioned",
        "crossval/preconditioned.py",
        "bound=bounds.of(residuals)",
        "bound=1e-12 * bounds.of(residuals)",
    ),
    Mutant(
        "projection of spaces",
        "crossval/shared/spaces.py",
        "return vectors - (vectors @ self.basis) @ self.basis.T",
        "return vectors + (vectors @ self.basis) @ self.basis.T",
    ),
    Mutant(
        "sign in conjugate gradients",
        "linalg/conjugate_gradients.py",
        "r = r - length[None, :] * q",
        "r = r + length[None, :] * q",
    ),
    Mutant(
        "remainder of a partial Cholesky factor",
        "linalg/partial_cholesky.py",
        "self.remainder -= taken",
        "self.remainder -= 2.0 * taken",
    ),
    Mutant(
        "the better of several kernels",
        "cells/local_search.py",
        "looked.sort(key=lambda pair: pair[0].score)",
        "looked.sort(key=lambda pair: -pair[0].score)",
    ),
    Mutant(
        "limits of cells without noise",
        "selection/limits.py",
        "(errors <= _PRECISE * (highest - lowest))",
        "(errors >= _PRECISE * (highest - lowest))",
    ),
    Mutant(
        "slopes of a product of kernels",
        "kernels/composite.py",
        "self._each(left, right), reversed(self._values(namespace, left, right)), strict=True",
        "self._each(left, right), self._values(namespace, left, right), strict=True",
    ),
    Mutant(
        "slope of a rough kernel where rows meet",
        "kernels/distances.py",
        "slope[meeting] = 0.0",
        "slope[meeting] = 1.0",
    ),
    Mutant(
        "widths of Manhattan distances",
        "kernels/width_table.py",
        "kernel.length_scale**-kernel.width_power",
        "kernel.length_scale**-2.0",
    ),
    Mutant(
        "pivots below the rounding of a partial Cholesky factor",
        "linalg/partial_cholesky.py",
        "> max(self.floor, pivots[kept - 1])",
        "> 1e30",
    ),
    Mutant(
        "order statistic of an interval",
        "exact/interval_ranks.py",
        "low - 1, axis=1)[:, low - 1]",
        "low, axis=1)[:, low]",
    ),
    Mutant(
        "weights of jackknife+",
        "exact/leave_one_out.py",
        "            pulls = pulls * roots[None, :]\n        return",
        "        return",
    ),
    Mutant(
        "the bias in jackknife+",
        "exact/leave_one_out.py",
        "found = centring.space.basis - inverse @ centring.product",
        "found = centring.space.basis + inverse @ centring.product",
    ),
    Mutant(
        "ridge of a cell",
        "cells/combine/base.py",
        "return alpha * n_cell / n_rows if combiner.scales_alpha else alpha",
        "return alpha",
    ),
    Mutant(
        "weights of a blend",
        "cells/cut/hyperplanes.py",
        "np.concatenate([1.0 - above, above])",
        "np.concatenate([above, 1.0 - above])",
    ),
    Mutant(
        "side of a hyperplane",
        "cells/cut/hyperplanes.py",
        "np.concatenate([cut, cut + 1])",
        "np.concatenate([cut, cut])",
    ),
    Mutant(
        "neighbours in different cells",
        "cells/cut/stratified.py",
        "labels[neighbours_together] = _dealt(n, m, rng)",
        "labels[...] = _dealt(n, m, rng)",
    ),
    Mutant(
        "rows that share x are left out together",
        "cells/merged_rows.py",
        "left = 1.0 - self.spread(leverage) * self.shares[:, None]",
        "left = 1.0 - self.spread(leverage)",
    ),
    Mutant(
        "copies of a row are taken for observations",
        "cells/distinct_rows.py",
        "return bool(np.sum(differ) > _DRAWS * np.sum(repeated))",
        "return bool(np.any(repeated))",
    ),
    Mutant(
        "the coarse model forgets its bias in leverages",
        "cells/coarse_model.py",
        'leverage = w * (1.0 / coarse_model.total_weight + np.einsum("ij,ij->i", psi, psi))',
        'leverage = w * np.einsum("ij,ij->i", psi, psi)',
    ),
    Mutant(
        "intervals without the coarse model",
        "cells/cell_intervals.py",
        "shift += self.coarse_model.share * (coarse - shift)",
        "shift += 0.0 * (coarse - shift)",
    ),
    Mutant(
        "weights in comparisons",
        "linalg/quick.py",
        "residuals /= self._roots[:, None]",
        "residuals *= self._roots[:, None]",
    ),
    Mutant(
        "digits of comparisons",
        "linalg/quick.py",
        "if trace <= largest * alpha:",
        "if trace <= 1e3 * largest * alpha:",
    ),
    Mutant(
        "offset of targets in comparisons",
        "linalg/quick.py",
        "self._offset + self._scale * coordinates.astype(np.float64)",
        "self._scale * coordinates.astype(np.float64)",
    ),
    Mutant(
        "rows of a block",
        "cells/cut/base.py",
        "Membership(of_block.rows + rows.start, of_block.cells, of_block.weights)",
        "Membership(of_block.rows, of_block.cells, of_block.weights)",
    ),
    Mutant(
        "Platt's target",
        "selection/probabilities.py",
        "(n_in + 1.0) / (n_in + 2.0), 1.0 / (n_out + 2.0)",
        "1.0, 0.0",
    ),
    Mutant(
        "the share of a fold in a race",
        "selection/scoring.py",
        "return np.asarray(totals / totals.sum())",
        "return np.full(len(totals), 1.0 / len(totals))",
    ),
    Mutant(
        "who is dropped from a race",
        "selection/race.py",
        "possible < certain - slack",
        "possible < 0.9 * certain - slack",
    ),
    Mutant(
        "weights of scores",
        "selection/scoring.py",
        "sums = np.add.reduceat(values * weights, starts, axis=1)",
        "sums = np.add.reduceat(values, starts, axis=1)",
    ),
    Mutant(
        "gradient by length scales",
        "kernels/scale_gradient.py",
        "return 2.0 * total",
        "return total",
    ),
    Mutant(
        "memory of the eigendecomposition",
        "crossval/eigendecomposition.py",
        "* (3.0 * n**2 + 2 * largest * n",
        "* (0.5 * n**2 + 2 * largest * n",
    ),
    Mutant(
        "what fits a budget",
        "planning/choose.py",
        "return in_time and option.cost.peak_bytes <= resources.memory_bytes",
        "return in_time",
    ),
    Mutant(
        "durable before it is renamed",
        "storage/atomic.py",
        "            os.fsync(file.fileno())\n        if replace:",
        "        if replace:",
    ),
    Mutant(
        "the sum over a model file",
        "storage/container.py",
        'if hashlib.sha256(text).hexdigest() != metadata["sha256"]:',
        "if False:",
    ),
)


def copy_of_project(folder: Path) -> None:
    for name in ("src", "tests", "docs", "examples", "benchmarks"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile"):
        shutil.copy(ROOT / name, folder / name)


def is_caught(mutant: Mutant, folder: Path) -> bool:
    """True if some test fails with the mutant in place."""
    path = folder / "src" / "ridgefold" / mutant.path
    whole = path.read_text()
    if whole.count(mutant.before) != 1:
        raise SystemExit(
            f"{mutant.name}: {mutant.path} has {whole.count(mutant.before)} places that read "
            f"{mutant.before!r}; it must have one"
        )
    path.write_text(whole.replace(mutant.before, mutant.after))
    try:
        near = "tests/" + mutant.path.split("/", maxsplit=1)[0]
        return any(_fails(folder, tests) for tests in ([near], ["tests/contracts"], ["tests"]))
    finally:
        path.write_text(whole)


def _fails(folder: Path, tests: list[str]) -> bool:
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "2", "-p", "no:cacheprovider"]
    try:
        done = subprocess.run(  # noqa: S603
            [*command, "-m", "not full and not browser", *tests],
            cwd=folder,
            env=environment,
            capture_output=True,
            check=False,
            timeout=LONGEST,
        )
    except subprocess.TimeoutExpired:
        return True  # tests that do not come to an end are noticed too
    if done.returncode not in (0, 1, 2):  # passed, failed, stopped at the first failure
        raise SystemExit(done.stdout.decode()[-2000:] + done.stderr.decode()[-2000:])
    return done.returncode != 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "names", nargs="*", help="run only mutants whose name contains one of these"
    )
    names = parser.parse_args().names
    chosen = [m for m in MUTANTS if not names or any(name in m.name for name in names)]
    survivors = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        copy_of_project(folder)
        for mutant in chosen:
            started = time.perf_counter()
            caught = is_caught(mutant, folder)
            survivors += [] if caught else [mutant.name]
            print(
                f"{'caught' if caught else 'SURVIVED':8} {time.perf_counter() - started:4.0f} s  "
                f"{mutant.name} ({mutant.path})",
                flush=True,
            )
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} caught")
    return 0 if len(survivors) <= MAY_SURVIVE * len(chosen) / len(MUTANTS) else 1


if __name__ == "__main__":
    sys.exit(main())
