"""Exact cross-validation from one eigendecomposition: Tanaka and Imai's experiment.

Other libraries run in an interpreter that has them, named by RIDGEFOLD_PEERS_PYTHON (himalaya,
RLScore, scikit-learn, each if it is there); without it their rows say so.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure
from measure import Figure, best_of, number, processor_seconds

GRIDS = (1, 2, 3, 4, 6, 10, 25, 50, 100)
FOLDS = 5
CALIBRATION = 25
WAYS = {"Fast": "inverse_blocks", "Prop": "eigendecomposition"}
SPLITS: dict[str, Any] = {"5-fold": FOLDS, "leave-one-out": "loo"}
THEIRS = {"R_L": 0.72, "R_I": 1.88, "R_E": 4.69}
"""MATLAB R2019a on an i7-5960X."""
PEERS = {
    "rlscore": "RLScore's KfoldRLS",
    "himalaya": "himalaya's KernelRidgeCV",
    "scikit-learn": "GridSearchCV(KernelRidge)",
}

NOTES = """
The paper's setting: k(x, y) = exp(−(x − y)²), one column, n = 2000, x uniform on [−10, 10],
y standard normal, alphas evenly on [0.1, 1]; float64, one thread, processor time, the best of
several rounds in which the compared calls take turns. 'Fast' is `inverse_blocks`, 'Prop' is
`eigendecomposition`, both by `cross_val_path`, from the data to held-out predictions.
R_L, R_I and R_E are the times of a linear solve, an inverse and an eigendecomposition divided by
that of an n×n product: with our routines (Cholesky in place, potrf and potri, syevd in place) and
with LAPACK's for general matrices (getrf, getri; syevd by `numpy.linalg.eigh`).
Other libraries get the kernel matrix (or, where the row says rbf, the data), 25 alphas and the same
5 folds, choose alpha and fit with it, beside `KernelRidgeCV(method="eigendecomposition").fit` on
the same input; times are the best of two. RLScore is its published source at version 0.8.2a0,
built with Cython 3, since its last release does not compile here.
"""


def alphas_of(count: int) -> Any:
    import numpy as np

    return np.linspace(0.1, 1.0, count) if count > 1 else np.asarray([0.1])


def data(n: int) -> tuple[Any, Any]:
    import numpy as np

    rng = np.random.default_rng(0)
    return rng.uniform(-10.0, 10.0, (n, 1)), rng.standard_normal(n)


def kernel_matrix(X: Any, gamma: float) -> Any:
    from ridgefold.kernels import RBF, KernelGram

    return KernelGram(RBF(gamma=gamma), X).full()


def path(way: str, split: str, X: Any, y: Any, count: int) -> Any:
    from ridgefold import cross_val_path

    return cross_val_path(
        X, y, gamma=1.0, alpha=alphas_of(count), cv=SPLITS[split], method=WAYS[way]
    )


# -- constants of the machine ---------------------------------------------------------------


def ratios(n: int) -> dict[str, dict[str, float]]:
    """R_L, R_I, R_E with our routines and with LAPACK's general ones."""
    import numpy as np
    from scipy.linalg import lapack

    from ridgefold.linalg import numpy_namespace

    namespace = numpy_namespace()
    X, y = data(n)
    K = kernel_matrix(X, 1.0)
    namespace.add_to_diagonal_in_place(K, 0.5)
    space, out, right = K.copy(), np.empty_like(K), y[:, None]
    work = int(lapack.dgetri_lwork(n)[0])

    def copy() -> Any:
        space[...] = K
        return space

    def factor() -> Any:
        assert namespace.cholesky_in_place(copy())
        return space

    def general_inverse() -> None:
        lu, pivots, _ = lapack.dgetrf(copy().T, overwrite_a=1)
        lapack.dgetri(lu, pivots, lwork=work, overwrite_lu=1)

    timings = best_of(
        {
            "product": lambda: np.matmul(K, K, out=out),
            "copy": copy,
            "ours R_L": lambda: namespace.solve_cholesky(factor(), right),
            "ours R_I": lambda: namespace.inverse_from_cholesky_in_place(factor()),
            "ours R_E": lambda: namespace.eigh_in_place(copy()),
            "general R_L": lambda: lapack.dgesv(copy().T, right, overwrite_a=1),
            "general R_I": general_inverse,
            "general R_E": lambda: np.linalg.eigh(copy()),
        },
        repeats=3,
        most=8,
    )
    seconds = {name: timing.seconds for name, timing in timings.items()}
    copied, product = seconds["copy"], seconds["product"]
    return {
        whose: {r: (seconds[f"{whose} {r}"] - copied) / product for r in THEIRS}
        for whose in ("ours", "general")
    } | {"seconds": seconds}


def crossover(r: Mapping[str, float], folds: int) -> float:
    """The number of alphas above which 'Prop' wins, n_Γ > ℓR_E/(ℓR_I − 1)."""
    return folds * r["R_E"] / (folds * r["R_I"] - 1.0)


# -- time against the number of alphas ------------------------------------------------------


def times(n: int, grids: tuple[int, ...], split: str) -> dict[int, dict[str, float]]:
    X, y = data(n)
    found = {}
    for count in grids:
        timings = best_of(
            {way: (lambda w=way, c=count: path(w, split, X, y, c)) for way in WAYS},
            repeats=3 if count <= 10 else 2,
            most=6 if count <= 10 else 3,
            warm=count == grids[0],
        )
        found[count] = {way: timing.seconds for way, timing in timings.items()}
        print(f"   {split}, {count} alphas: {found[count]}", flush=True)
    return found


def measured_crossover(found: Mapping[int, Mapping[str, float]]) -> float:
    """Where the two lines meet, between the last grid that 'Fast' wins and the next."""
    grids = sorted(found)
    gaps = [found[g]["Prop"] - found[g]["Fast"] for g in grids]
    for (a, b), (left, right) in zip(pairwise(grids), pairwise(gaps), strict=True):
        if left > 0.0 >= right:
            return a + (b - a) * left / (left - right)
    return float(grids[0]) if gaps[0] <= 0.0 else float("inf")


# -- against the work it cannot avoid -------------------------------------------------------


def least_work(n: int) -> Figure:
    """`eigendecomposition` beside one eigh and one syrk for each fold and alpha."""
    import numpy as np
    from scipy.linalg import blas

    from ridgefold.linalg import numpy_namespace

    namespace = numpy_namespace()
    X, y = data(n)
    K = kernel_matrix(X, 1.0)
    space = np.empty_like(K)
    parts = [np.asfortranarray(p) for p in np.array_split(np.linalg.qr(K)[0], FOLDS)]

    def copy() -> Any:
        space[...] = K
        return space

    def symmetric_products() -> None:
        for _ in range(CALIBRATION):
            for part in parts:
                blas.dsyrk(1.0, part, trans=0, lower=0)

    timings = best_of(
        {
            "ours": lambda: path("Prop", "5-fold", X, y, CALIBRATION),
            "eigh": lambda: namespace.eigh_in_place(copy()),
            "syrk": symmetric_products,
            "copy": copy,
        },
        repeats=5,
    )
    seconds = {name: timing.seconds for name, timing in timings.items()}
    eigh = seconds["eigh"] - seconds["copy"]
    return Figure(
        f"n = {n}, 5-fold, {CALIBRATION} alphas: eigendecomposition / "
        "(eigh + syrk of every fold and alpha)",
        seconds["ours"] / (eigh + seconds["syrk"]),
        at_most=1.3,
        detail={
            "ours, s": seconds["ours"],
            "eigh, s": eigh,
            "syrk, s": seconds["syrk"],
            "largest difference of two best runs": max(t.noise for t in timings.values()),
        },
    )


# -- other libraries ------------------------------------------------------------------------


class Peers:
    """A process that runs other libraries' jobs on request."""

    def __init__(self, interpreter: str) -> None:
        script = Path(__file__).with_name("_tanaka_peers.py")
        self._process = subprocess.Popen(
            [interpreter, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, job: str, path: Path, kernel: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = json.dumps({"job": job, "data": str(path), "kernel": kernel})
        print(request, file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


@contextmanager
def peers() -> Iterator[Peers | None]:
    interpreter = os.environ.get("RIDGEFOLD_PEERS_PYTHON")
    if not interpreter:
        yield None
        return
    process = Peers(interpreter)
    try:
        yield process
    finally:
        process.close()


def choose_and_fit(X: Any, y: Any, alphas: Any, kernel: str) -> tuple[float, Any]:
    """Processor seconds of our fit, and the model."""
    from ridgefold import KernelRidgeCV, Search

    model = KernelRidgeCV(
        alpha=alphas, kernel=kernel, gamma=1.0, cv=FOLDS, search=Search(method="eigendecomposition")
    )
    gc.collect()
    started = processor_seconds()
    model.fit(X, y)
    return processor_seconds() - started, model


def beside_peers(
    process: Peers | None,
    what: str,
    X: Any,
    y: Any,
    targets: Mapping[str, float | None],
    rounds: int,
    kernel: str = "precomputed",
) -> list[Figure]:
    """Their time divided by ours, in rounds in which all take turns."""
    import numpy as np

    alphas = alphas_of(CALIBRATION)
    label = f"{what}, n = {len(y)}, 5-fold, {CALIBRATION} alphas"
    mine: list[float] = []
    answers: dict[str, list[dict[str, Any]]] = {name: [] for name in targets}
    with tempfile.TemporaryDirectory() as folder, measure.one_thread():
        stored = Path(folder) / "data.npz"
        np.savez(stored, X=X, y=y, alphas=alphas)
        small = X[:50, :50] if kernel == "precomputed" else X[:50]
        choose_and_fit(small.copy(), y[:50], alphas[:2], kernel)
        for _ in range(rounds):
            for name in targets:
                seconds, model = choose_and_fit(X, y, alphas, kernel)
                mine.append(seconds)
                if process is not None:
                    answers[name].append(process.run(name, stored, kernel))
    figures = []
    for name, least in targets.items():
        what = f"{label}: time of {PEERS[name]} / ours"
        runs = answers[name]
        if not runs or "missing" in runs[0]:
            figures.append(Figure(what, None, "not installed", at_least=least))
            continue
        assert all(np.isclose(run["alpha"], model.alpha_) for run in runs)
        theirs = min(run["seconds"] for run in runs)
        detail = {"theirs, s": theirs, "ours, s": min(mine)}
        if "mse" in runs[0]:
            errors = -model.cv_results_["mean_test_score"]
            detail["largest difference of errors · 1e12"] = float(
                1e12 * np.max(np.abs(errors - runs[0]["mse"]))
            )
        what += f" (version {runs[0]['version']})"
        figures.append(Figure(what, theirs / min(mine), at_least=least, detail=detail))
    return figures


def peer_figures(n: int, rounds: int) -> list[Figure]:
    import numpy as np

    rng = np.random.default_rng(1)
    wide = rng.standard_normal((n, 20))
    with peers() as process:
        X, y = data(n)
        K = kernel_matrix(X, 1.0)
        given = {"rlscore": 2.0, "himalaya": 4.0, "scikit-learn": None}
        figures = beside_peers(process, "The paper's kernel matrix", K, y, given, rounds)
        figures += beside_peers(
            process, "The paper's data, rbf", X, y, {"scikit-learn": 8.0}, rounds, kernel="rbf"
        )
        return figures + beside_peers(
            process,
            "Kernel matrix of full rank (20 normal columns)",
            kernel_matrix(wide, 1 / 20),
            np.sin(wide[:, 0]) + 0.1 * rng.standard_normal(n),
            {"rlscore": 2.0},
            rounds,
        )


# -- table and plot -------------------------------------------------------------------------


def page(
    found: Mapping[str, Mapping[int, Mapping[str, float]]],
    constants: Mapping[str, Mapping[str, float]],
) -> str:
    rows = ["| | R_L | R_I | R_E | crossover by formula, ℓ = 5 | leave-one-out | measured, ℓ = 5 |"]
    rows[0] += " leave-one-out |"
    rows.append("|---|---|---|---|---|---|---|---|")
    n = 2000
    names = {"ours": "our routines", "general": "LAPACK's for general matrices"}
    for whose, r in (*((names[w], constants[w]) for w in names), ("the paper", THEIRS)):
        cells = [number(r[name]) for name in THEIRS]
        cells += [number(crossover(r, FOLDS)), number(crossover(r, n))]
        if whose == names["ours"]:
            cells += [number(measured_crossover(found[split])) for split in SPLITS]
        else:
            cells += ["", ""]
        rows.append(f"| {whose} | " + " | ".join(cells) + " |")
    constants_table = "\n".join(rows)
    header = ["n_Γ", *(f"{split}, {way}, s" for split in SPLITS for way in WAYS)]
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    for count in found["5-fold"]:
        cells = [number(found[split][count][way]) for split in SPLITS for way in WAYS]
        lines.append(f"| {count} | " + " | ".join(cells) + " |")
    grid_table = "\n".join(lines)
    return (
        f"{COMMENT.strip()}\n\n## Constants and crossover\n\n{constants_table}\n\n"
        "## Time against the number of alphas (Figure 1)\n\n"
        f"![Time against the number of alphas](tanaka.png)\n\n{grid_table}"
    )


def plot(found: Mapping[str, Mapping[int, Mapping[str, float]]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, len(found), figsize=(10, 3.8), layout="constrained")
    for axes, (split, by_count) in zip(panels, found.items(), strict=True):
        for way, method in WAYS.items():
            seconds = [times[way] for times in by_count.values()]
            axes.plot(list(by_count), seconds, "o-", markersize=4, label=f"'{way}' ({method})")
        meet = measured_crossover(by_count)
        axes.axvline(meet, color="0.6", linewidth=1, linestyle="--")
        axes.annotate(f"crossover {meet:.1f}", (meet, 0.6), xycoords=("data", "axes fraction"))
        axes.set_title(f"{split}, n = 2000")
        axes.set_xlabel("number of alphas")
        axes.set_ylabel("processor seconds")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.legend()
    figure.savefig(path, dpi=110)
    plt.close(figure)


COMMENT = """
'Fast' is a stronger opponent here than in the paper: its inverse is that of a symmetric matrix, in
place, so R_I is well below that of the general inverse and 'Prop' needs a few more alphas to win.
The formula charges a fold's block as a general product; ours is a symmetric one, half the work.

RLScore keeps only eigenvectors of positive computed eigenvalues. Of the paper's kernel matrix, of
numerical rank about 75, it keeps 979 of 2000, so its products are half as large; the kernel matrix
of full rank shows it where all count. Ours leaves out eigenvectors whose eigenvalue is zero but
for rounding, about 1,920 here, so that little more than the eigendecomposition itself is left: less
than the eigendecomposition and a product for every fold and alpha (the first row).
"""


def main(quick: bool) -> bool:
    n, grids = (500, (1, 5, 10)) if quick else (2000, GRIDS)
    figures = [least_work(n)]
    figures += peer_figures(n, 1 if quick else 2)
    print(measure.markdown_table(figures), flush=True)
    constants = ratios(n)
    print(constants, flush=True)
    found = {split: times(n, grids, split) for split in SPLITS}
    figures += [
        Figure(
            f"{split}: time of 'Fast' / 'Prop' at {grids[-1]} alphas",
            found[split][grids[-1]]["Fast"] / found[split][grids[-1]]["Prop"],
        )
        for split in SPLITS
    ]
    if quick:
        return True
    plot(found, measure.RESULTS / "tanaka.png")
    title = "Exact cross-validation from one eigendecomposition (Tanaka and Imai)"
    measure.write_results(
        "tanaka",
        title,
        NOTES,
        figures,
        more=page(found, constants),
        data={"constants": constants, "seconds": found},
    )
    return measure.all_held(figures)


if __name__ == "__main__":
    measure.command_line(main, __doc__)
