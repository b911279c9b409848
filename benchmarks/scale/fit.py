"""Time and memory of exact fits, and prediction of many rows, beside scikit-learn."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure
from measure import Figure, best_of, peak_memory

COLUMNS = 20
ALPHA = 1.0
NOTES = """
One thread; data drawn from a normal distribution, 20 columns, float64, alpha = 1, gamma = 1/20.
Times are processor time, the best of at least three rounds in which the compared calls take
turns; on a shared machine ratios still vary by up to a tenth from run to run. Memory is the most
that was resident during the call beyond the training data, in a fresh process. "The Gram matrix
and its factor alone" allocates the matrix, writes one triangle of the kernel and calls LAPACK's
potrf on it: the least a direct fit can do. The first use of BLAS in a process adds the buffers in
which it packs blocks, about 384 rows of the matrix with this OpenBLAS; they are kept until the
process ends, and a second line gives the peak without them.
"""


def data(n: int, dtype: str = "float64") -> tuple[Any, Any]:
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, COLUMNS))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n)
    return X.astype(dtype), y.astype(dtype)


# -- the calls that are compared ------------------------------------------------------------


def our_model(kind: str, **options: Any) -> Any:
    import ridgefold

    return getattr(ridgefold, kind)(ALPHA, **options)


def their_model(**options: Any) -> Any:
    from sklearn.kernel_ridge import KernelRidge

    return KernelRidge(alpha=ALPHA, **options)


def gram_and_factor(X: Any) -> None:
    """The work that no direct solver can avoid."""
    from scipy.linalg import lapack

    from ridgefold.kernels import RBF, KernelGram

    matrix = KernelGram(RBF(gamma=1 / COLUMNS), X).lower()
    matrix.flat[:: len(matrix) + 1] += ALPHA
    lapack.dpotrf(matrix.T, lower=0, overwrite_a=1, clean=0)


def setup_fit(
    whose: str, n: int, dtype: str, options: dict[str, Any], used: bool
) -> Callable[[], Any]:
    """A fit to measure the memory of; a tiny one first loads every module it needs.

    With `used`, BLAS has factorised a matrix of this size before: it keeps the buffers in
    which it packs blocks (for OpenBLAS about 384 rows of the matrix) until the process ends.
    """
    X, y = data(n, dtype)
    if used:
        gram_and_factor(X)
    if whose == "alone":
        gram_and_factor(X[:10])
        return lambda: gram_and_factor(X)
    model = their_model(**options) if whose == "theirs" else our_model(whose, **options)
    model.fit(X[:10], y[:10])
    return lambda: model.fit(X, y)


def setup_predict(n: int, rows: int, budget: str) -> Callable[[], Any]:
    model = our_model("KernelRidge", kernel="rbf", memory_budget=budget).fit(*data(n))
    new = data(rows)[0]
    model.predict(new[:10])
    return lambda: model.predict(new)


# -- the measurements -----------------------------------------------------------------------


def fit_time(n: int) -> list[Figure]:
    X, y = data(n)
    ours, theirs = our_model("KernelRidge", kernel="rbf"), their_model(kernel="rbf")
    seconds = best_of(
        {
            "alone": lambda: gram_and_factor(X),
            "ours": lambda: ours.fit(X, y),
            "theirs": lambda: theirs.fit(X, y),
        },
        repeats=7 if n <= 4000 else 4,
    )
    alone, mine, other = (seconds[k].seconds for k in ("alone", "ours", "theirs"))
    detail = {
        "ours, s": mine,
        "Gram and factor alone, s": alone,
        "scikit-learn, s": other,
        "largest difference of two best runs": max(t.noise for t in seconds.values()),
    }
    return [
        Figure(
            f"KernelRidge.fit, n = {n}: time / Gram matrix and its factor alone",
            mine / alone,
            at_most=1.15,
            detail=detail,
        ),
        Figure(
            f"KernelRidge.fit, n = {n}: time / scikit-learn's",
            mine / other,
            at_most=1.0,
        ),
    ]


def other_fit_times(n: int) -> list[Figure]:
    """Linear and polynomial kernels, and the bias, each beside scikit-learn's KernelRidge."""
    X, y = data(n)
    figures = []
    for kernel, extra in (("linear", {}), ("polynomial", {"degree": 2}), ("laplacian", {})):
        ours = our_model("KernelRidge", kernel=kernel, **extra)
        theirs = their_model(kernel=kernel, **extra)
        seconds = best_of(
            {"ours": lambda m=ours: m.fit(X, y), "them": lambda m=theirs: m.fit(X, y)}
        )
        mine, other = seconds["ours"].seconds, seconds["them"].seconds
        degree = f" of degree {extra['degree']}" if extra else ""
        figures.append(
            Figure(
                f"KernelRidge.fit, {kernel} kernel{degree}, n = {n} ({ours.plan_.method}): "
                "time / scikit-learn's",
                mine / other,
                at_most=1.0,
                detail={"ours, s": mine, "scikit-learn, s": other},
            )
        )
    model = our_model("LSSVMRegressor", kernel="rbf")
    seconds = best_of({"alone": lambda: gram_and_factor(X), "ours": lambda: model.fit(X, y)})
    alone, mine = seconds["alone"].seconds, seconds["ours"].seconds
    figures.append(
        Figure(
            f"LSSVMRegressor.fit (unpenalised bias), n = {n}: time / Gram matrix and its "
            "factor alone",
            mine / alone,
            detail={"ours, s": mine, "Gram and factor alone, s": alone},
        )
    )
    return figures


def fit_memory(n: int) -> list[Figure]:
    options = {"kernel": "rbf"}
    matrix = 8.0 * n**2
    peaks = {
        (whose, used): peak_memory(setup_fit, whose, n, "float64", options, used)
        for whose in ("alone", "KernelRidge", "theirs")
        for used in (False, True)
    }
    mine, other = peaks["KernelRidge", False], peaks["theirs", False]
    return [
        Figure(
            f"KernelRidge.fit, n = {n}: peak memory beyond the data / 8n² bytes",
            mine / matrix,
            at_most=1.15,
            detail={
                "ours, MB": mine / 1e6,
                "Gram and factor alone, MB": peaks["alone", False] / 1e6,
                "scikit-learn, MB": other / 1e6,
            },
        ),
        Figure(f"scikit-learn's, n = {n}: the same", other / matrix),
        Figure(
            f"KernelRidge.fit, n = {n}: the same, in a process that has used BLAS before",
            peaks["KernelRidge", True] / matrix,
            at_most=1.15,
            detail={
                "ours, MB": peaks["KernelRidge", True] / 1e6,
                "Gram and factor alone, MB": peaks["alone", True] / 1e6,
                "scikit-learn, MB": peaks["theirs", True] / 1e6,
            },
        ),
    ]


def other_fit_memory(n: int) -> list[Figure]:
    figures = []
    for what, kind, itemsize, dtype in (
        ("LSSVMRegressor.fit (unpenalised bias)", "LSSVMRegressor", 8, "float64"),
        ("KernelRidge.fit in float32", "KernelRidge", 4, "float32"),
    ):
        peak = peak_memory(setup_fit, kind, n, dtype, {"kernel": "rbf"}, False)
        figures.append(
            Figure(
                f"{what}, n = {n}: peak memory beyond the data / {itemsize}n² bytes",
                peak / (itemsize * float(n) ** 2),
                detail={"MB": peak / 1e6},
            )
        )
    return figures


def prediction(n: int, rows: int, block: int, budgets: tuple[str, ...]) -> list[Figure]:
    """Rows a second in bounded memory, against the fastest way to do one large block."""
    import numpy as np
    from sklearn.metrics.pairwise import rbf_kernel

    from ridgefold.kernels import RBF, KernelGram

    X, y = data(n)
    new = data(rows)[0]
    models = {b: our_model("KernelRidge", kernel="rbf", memory_budget=b).fit(X, y) for b in budgets}
    coefficients = models[budgets[0]].dual_coef_
    large, kernel = new[:block], RBF(gamma=1 / COLUMNS)
    # Storage that has been touched before: fresh pages would slow the large block down.
    storage, everything = np.zeros((block, n)), slice(None)

    def one_block() -> None:
        KernelGram(kernel, large, X).write_block(everything, everything, storage)
        storage @ coefficients

    seconds = best_of(
        {
            "one block": one_block,
            "one block, scikit-learn's kernel": lambda: rbf_kernel(large, X) @ coefficients,
            **{b: (lambda m=m: m.predict(new)) for b, m in models.items()},
        },
        most=6,
    )
    speeds = {
        name: (rows if name in models else block) / timing.seconds
        for name, timing in seconds.items()
    }
    best_block = max(speeds["one block"], speeds["one block, scikit-learn's kernel"])
    figures = []
    for budget in budgets:
        figures.append(
            Figure(
                f'predict, {rows:,} rows, n = {n}, memory_budget="{budget}": speed / one block '
                f"of {block:,} rows",
                speeds[budget] / best_block,
                at_least=0.8,
                detail={
                    "rows/s": speeds[budget],
                    "one block, rows/s": speeds["one block"],
                    "one block with scikit-learn's kernel, rows/s": speeds[
                        "one block, scikit-learn's kernel"
                    ],
                },
            )
        )
        peak = peak_memory(setup_predict, n, rows, budget)
        figures.append(
            Figure(
                f'predict, {rows:,} rows, n = {n}, memory_budget="{budget}": peak memory '
                "beyond the data",
                peak / 1e6,
                "MB",
                at_most=float(budget.removesuffix("MB")),
            )
        )
    return figures


def import_time(repeats: int) -> list[Figure]:
    """Seconds that an import adds to starting Python, in fresh processes."""

    def start(code: str) -> Callable[[], Any]:
        return lambda: subprocess.run([sys.executable, "-c", code], check=True)

    seconds = {
        name: timing.seconds
        for name, timing in best_of(
            {
                "python": start("pass"),
                "ridgefold": start("import ridgefold"),
                "sklearn": start("import sklearn"),
                "ours": start("from ridgefold import KernelRidge"),
                "theirs": start("from sklearn.kernel_ridge import KernelRidge"),
            },
            repeats=repeats,
        ).items()
    }
    added = {name: 1e3 * (seconds[name] - seconds["python"]) for name in seconds}
    return [
        Figure(
            "import ridgefold: time / import sklearn",
            added["ridgefold"] / added["sklearn"],
            at_most=1.0,
            detail={"ridgefold, ms": added["ridgefold"], "sklearn, ms": added["sklearn"]},
        ),
        Figure(
            "from ridgefold import KernelRidge: time / the same from sklearn.kernel_ridge",
            added["ours"] / added["theirs"],
            detail={"ridgefold, ms": added["ours"], "sklearn, ms": added["theirs"]},
        ),
    ]


def main(quick: bool) -> bool:
    sizes = (500, 1000) if quick else (2000, 4000, 8000)
    figures: list[Figure] = []

    def add(new: list[Figure]) -> None:
        figures.extend(new)
        print(measure.markdown_table(new).split("\n", 2)[2], flush=True)

    for n in sizes:
        add(fit_time(n))
    add(other_fit_times(sizes[1]))
    for n in sizes:
        add(fit_memory(n))
    add(other_fit_memory(sizes[1]))
    if quick:
        add(prediction(500, 20_000, 5_000, ("64MB",)))
    else:
        add(prediction(2000, 1_000_000, 20_000, ("256MB", "64MB")))
    add(import_time(3 if quick else 7))
    if quick:
        return True
    title = "Exact fits and predictions"
    measure.write_results("fit", title, NOTES, figures)
    return measure.all_held(figures)


if __name__ == "__main__":
    measure.command_line(main, __doc__)
