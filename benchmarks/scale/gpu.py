"""One GPU: fits, exact cross-validation, cells, agreement with the processor, and others beside it.

Run by hand where there is a CUDA device; elsewhere it says so and ends. GPyTorch takes part if it
can be imported.
"""

from __future__ import annotations

import gc
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))
import numpy as np
from _gpu_peers import (
    PUBLISHED,
    gpytorch_means,
    gpytorch_or_none,
    plain_torch,
    plain_torch_fold,
)

import measure
from measure import Figure

NOTES = """
Seconds on the wall after one warm-up call at a small size, tensors already on the device, float64
unless stated. Data are made up: 64 columns of normal numbers (8 where it says so), y = sin(x₁) +
noise, RBF of width √(2·columns). *Plain torch* is what one would write in ten lines: the Gram
matrix, `linalg.cholesky`, `cholesky_solve`; for cross-validation one such refit for every fold and
alpha. *GPyTorch* is an exact Gaussian process with the same kernel and noise, timed to its means at
1000 rows; its hyper-parameters are given, not learned.
"""
DEVICE = "cuda"
WIDTH, ALPHA = float(np.sqrt(128.0)), 0.1
ALPHAS = np.geomspace(1e-4, 10.0, 30)
BUDGET = "130GB"


def data(n: int, d: int = 64) -> tuple[Any, Any]:
    import torch

    generator = torch.Generator(device=DEVICE).manual_seed(0)
    X = torch.randn((n, d), generator=generator, device=DEVICE, dtype=torch.float64)
    noise = torch.randn(n, generator=generator, device=DEVICE, dtype=torch.float64)
    return X, torch.sin(X[:, 0]) + 0.3 * noise


def _wait() -> None:
    import torch

    if DEVICE == "cuda":
        torch.cuda.synchronize()


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    _wait()
    started = time.perf_counter()
    result = work()
    _wait()
    return time.perf_counter() - started, result


def _clear() -> None:
    import torch

    gc.collect()
    if DEVICE == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def _peak() -> float:
    import torch

    return torch.cuda.max_memory_allocated() / 1e9 if DEVICE == "cuda" else 0.0


def _timed(
    what: str, work: Callable[[], Any], at_most: float | None = None
) -> tuple[Figure, Any | None]:
    """The time of some work as a figure, with its memory; or why it could not be done."""
    _clear()
    try:
        took, result = seconds(work)
    except Exception as error:
        figure = Figure(what, None, str(error).strip().split("\n")[0][:160])
        result = None
    else:
        figure = Figure(what, took, "s", at_most=at_most, detail={"GB": _peak()})
    print(figure, flush=True)
    return figure, result


# -- rates ---------------------------------------------------------------------------------


def rates() -> tuple[list[Figure], dict[str, Any]]:
    """The device, measured: what everything costs in products, and in bytes a second."""
    from ridgefold import calibrate

    figure, found = _timed("calibrating the device", lambda: calibrate(device=DEVICE))
    assert found is not None
    n = found.by_kind["product"][-1][0]
    product = 2.0 * n**3 / found.at("product", n)
    cholesky = n**3 / 3.0 / found.at("cholesky", n) / product
    inverse = 2.0 * n**3 / 3.0 / found.at("inverse", n) / product
    decomposition = 9.0 * n**3 / found.at("eigendecomposition", n) / product
    rows = f"{n:,.0f} rows"
    figures = [
        figure,
        Figure(f"products of {rows}: 10¹² operations", found.at("product", n) / 1e12, "a second"),
        Figure(f"an eigendecomposition of {rows}, in products", decomposition),
        Figure(f"an inverse of {rows}, in products", cholesky + inverse),
        Figure(f"a Cholesky factorisation of {rows}, in products", cholesky),
        Figure(f"passes over {rows} with 32 vectors: 10¹² bytes", found.at("memory", n) / 1e12),
        Figure("float32 products, time / float64's", found.single_precision),
    ]
    stored = {kind: [list(point) for point in points] for kind, points in found.by_kind.items()}
    return figures, {"rates": {**stored, "single_precision": found.single_precision}}


# -- agreement -----------------------------------------------------------------------------


def agreement(n: int) -> list[Figure]:
    from ridgefold import KernelRidge, cross_val_path
    from ridgefold.kernels import RBF

    kernel, alphas = RBF(4.0), np.geomspace(1e-3, 1.0, 5)
    X, y = data(n, 8)
    on_cpu = X.cpu().numpy(), y.cpu().numpy()
    cpu = KernelRidge(alpha=0.01, kernel=kernel).fit(*on_cpu).predict(on_cpu[0])
    figures = []
    for name, tensors, eps in (
        ("fit", (X, y), np.finfo(np.float64).eps),
        ("fit in float32", (X.float(), y.float()), np.finfo(np.float32).eps),
    ):
        gpu = KernelRidge(alpha=0.01, kernel=kernel).fit(*tensors).predict(tensors[0])
        allowed = 10 * (n + n / 0.01) * eps * np.abs(cpu).max()
        figures.append(_difference(name, gpu.cpu().numpy(), cpu, allowed))
    for method in (
        "eigendecomposition",
        "inverse_blocks",
        "banded",
        "preconditioned",
        "krylov",
        "anchored",
        "refit",
    ):
        settings = {"kernel": kernel, "alpha": alphas, "method": method}
        try:
            gpu = cross_val_path(X, y, **settings).predictions.cpu().numpy()
            cpu = cross_val_path(*on_cpu, **settings).predictions
        except Exception as error:
            figures.append(Figure(f"CPU and GPU, {method}", None, str(error)[:160]))
            continue
        allowed = 10 * (n + n / 1e-3) * np.finfo(float).eps * np.abs(cpu).max()
        if method in ("preconditioned", "krylov", "anchored"):
            allowed += 1e-8 * np.abs(on_cpu[1]).max()
        figures.append(_difference(method, gpu, cpu, allowed))
    return figures


def _difference(name: str, gpu: np.ndarray, cpu: np.ndarray, allowed: float) -> Figure:
    off = float(np.abs(gpu - cpu).max())
    return Figure(
        f"CPU and GPU, {name}: difference / tolerance",
        off / float(allowed),
        "",
        at_most=1.0,
        detail={"difference / largest prediction": off / float(np.abs(cpu).max())},
    )


# -- fits ----------------------------------------------------------------------------------


def fits(sizes: tuple[int, ...]) -> list[Figure]:
    from ridgefold import KernelRidge
    from ridgefold.kernels import RBF

    kernel, figures = RBF(WIDTH), []
    KernelRidge(alpha=ALPHA, kernel=kernel).fit(*data(2000))
    plain_torch(*data(2000), WIDTH, ALPHA)
    for n in sizes:
        X, y = data(n)
        model = KernelRidge(alpha=ALPHA, kernel=kernel, memory_budget=BUDGET)
        figure, _ = _timed(
            f"KernelRidge.fit, n = {n}, cholesky",
            lambda X=X, y=y, model=model: model.fit(X, y),
            2.0 if n == 50_000 else None,
        )
        assert model.plan_.method == "cholesky"
        new = X[:1000]
        residual = y[:1000] - model.predict(new) - ALPHA * model.dual_coef_[:1000]
        figures += [
            figure,
            Figure(
                "the same: largest residual of the system at 1000 rows / largest target",
                float(residual.abs().max() / y.abs().max()),
                "",
                at_most=1e-9,
            ),
        ]
        print(figures[-1], flush=True)
        ours = model.dual_coef_
        if n == 50_000:
            figures += _of_fifty_thousand(model, X, y)
        del model, residual
        figure, plain = _timed(
            f"plain torch, one fit, n = {n}", lambda X=X, y=y: plain_torch(X, y, WIDTH, ALPHA)
        )
        figures.append(figure)
        if plain is not None:
            off = _most(plain, ours) / float(ours.abs().max())
            figures.append(Figure("the same: coefficients, difference / largest of ours", off))
        del plain, ours
        _clear()
    return figures


def _most(a: Any, b: Any) -> float:
    return float((a - b).abs().max())


def _of_fifty_thousand(model: Any, X: Any, y: Any) -> list[Figure]:
    """Prediction of as many rows, and the same fit in float32."""
    from ridgefold import KernelRidge

    n = X.shape[0]
    figure, expected = _timed(f"the same: predict {n} rows", lambda: model.predict(X))
    assert expected is not None
    single = KernelRidge(alpha=ALPHA, kernel=model.kernel, memory_budget=BUDGET)
    rows, targets = X.float(), y.float()
    fit, _ = _timed(f"KernelRidge.fit in float32, n = {n}", lambda: single.fit(rows, targets))
    off = _most(single.predict(rows[:5000]).double(), expected[:5000])
    off /= float(expected.abs().max())
    return [
        figure,
        fit,
        Figure("the same: predictions, difference from float64 / largest", off),
    ]


def gaussian_processes(sizes: tuple[int, ...]) -> list[Figure]:
    """GPyTorch's exact process beside KernelRidge, both to means at 1000 rows."""
    from ridgefold import KernelRidge
    from ridgefold.kernels import RBF

    library = gpytorch_or_none()
    if library is None:
        return [Figure("GPyTorch", None, "is not installed here")]
    figures = []
    for exact in (True, False):
        gpytorch_means(*data(2000), data(100)[0], WIDTH, ALPHA, exact=exact)
    for n in sizes:
        X, y = data(n)
        new = data(1000)[0] + 0.01
        model = KernelRidge(alpha=ALPHA, kernel=RBF(WIDTH), memory_budget=BUDGET)
        figure, ours = _timed(
            f"KernelRidge, fit and predict 1000 rows, n = {n}",
            lambda X=X, y=y, new=new, model=model: model.fit(X, y).predict(new),
        )
        figures.append(figure)
        del model
        for exact, how in ((True, "Cholesky"), (False, "conjugate gradients, as it comes")):
            figure, theirs = _timed(
                f"GPyTorch {library.__version__} ({how}), the same",
                lambda X=X, y=y, new=new, exact=exact: gpytorch_means(
                    X, y, new, WIDTH, ALPHA, exact=exact
                ),
            )
            figures.append(figure)
            if theirs is not None and ours is not None:
                off = _most(theirs, ours) / float(ours.abs().max())
                figures.append(Figure("the same: difference from ours / largest", off))
            del theirs
    return figures


# -- cross-validation ----------------------------------------------------------------------


def paths(n: int, methods: tuple[str, ...], columns: int = 64) -> list[Figure]:
    """With few columns the spectrum falls faster, and other methods win."""
    from ridgefold import cross_val_path
    from ridgefold.kernels import RBF

    kernel, figures = RBF(math.sqrt(2.0 * columns)), []
    X, y = data(n, columns)
    small = data(3000, columns)
    words = "" if columns == 64 else f" and {columns} columns"
    for method in methods:
        settings = {"kernel": kernel, "alpha": ALPHAS, "method": method, "memory_budget": BUDGET}
        what = f"5-fold, 30 alphas, n = {n}{words}, {method}"
        try:
            cross_val_path(*small, **settings)
        except Exception as error:
            figures.append(Figure(what, None, str(error)[:160]))
            continue
        figure, path = _timed(
            what,
            lambda settings=settings: cross_val_path(X, y, **settings),
            15.0 if n == 50_000 else None,
        )
        if path is not None:
            more = {"best mse": float(np.min(path.mse)), "predicted seconds": path.plan.seconds}
            name = what if method != "auto" else f"{what}: {path.method}"
            figure = Figure(
                name, figure.measured, "s", figure.at_most, detail={**figure.detail, **more}
            )
        figures.append(figure)
        del path
    return figures if words else [*figures, *_plain_path(X, y)]


def _plain_path(X: Any, y: Any) -> list[Figure]:
    """All refits where they take seconds; of 50,000 rows one of 150, and what all would take."""
    import torch

    n = int(X.shape[0])
    folds = list(torch.arange(n, device=X.device).chunk(5))
    some = list(torch.arange(2000, device=X.device).chunk(5))
    plain_torch_fold(*data(2000), some, 0, WIDTH, [1.0])
    if n > 20_000:
        one, _ = _timed(
            f"plain torch, one of 150 refits, n = {n}",
            lambda: plain_torch_fold(X, y, folds, 0, WIDTH, ALPHAS[-1:]),
        )
        four, _ = _timed(
            "the same: four of one fold",
            lambda: plain_torch_fold(X, y, folds, 0, WIDTH, ALPHAS[-4:]),
        )
        if one.measured is None or four.measured is None:
            return [one, four]
        refit = (four.measured - one.measured) / 3.0
        whole = 5.0 * (one.measured - refit) + 150.0 * refit
        return [one, four, Figure("the same: all 150, from these", whole, "s, computed")]
    figure, _ = _timed(
        f"plain torch, 5-fold, 30 alphas, n = {n}",
        lambda: [plain_torch_fold(X, y, folds, k, WIDTH, ALPHAS) for k in range(5)],
    )
    return [figure]


# -- cells ---------------------------------------------------------------------------------


def cells(few: int, many: int) -> list[Figure]:
    """Partitioned fits, many cells at once on the device; of `few` rows beside the processor."""
    from ridgefold import Compute, PartitionedLSSVMRegressor

    figures: list[Figure] = []

    def run(n: int, device: str | None, where: str) -> Any:
        rng = np.random.default_rng(0)
        X = rng.uniform(-1.0, 1.0, (n, 10))
        y = np.sin(3.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n)
        new = rng.uniform(-1.0, 1.0, (min(n, 100_000), 10))
        model = PartitionedLSSVMRegressor(
            n_partitions=max(2, n // 512), compute=Compute(device=device)
        )
        fit, _ = _timed(
            f"PartitionedLSSVMRegressor.fit, {n} rows of 10 columns, {where}",
            lambda: model.fit(X, y),
        )
        predict, values = _timed("the same: predict", lambda: model.predict(new))
        figures.append(fit)
        figures.append(Figure(f"the same: predict {len(new)} rows", predict.measured, predict.unit))
        return values

    small = PartitionedLSSVMRegressor(n_partitions=4, compute=Compute(device=DEVICE))
    X = np.random.default_rng(1).uniform(size=(2000, 10))
    small.fit(X, X[:, 0]).predict(X)
    on_device = run(few, DEVICE, f"{few // 512} cells, each its own pair, on the device")
    on_processor = run(few, None, "the same cells on one core of the processor")
    if on_device is not None and on_processor is not None:
        off = float(np.abs(on_device - on_processor).max() / np.abs(on_processor).max())
        figures.append(
            Figure("the same: difference between the two / largest", off, "", at_most=1e-6)
        )
    run(many, DEVICE, f"{many // 512} cells, one pair for all, on the device")
    return figures


# -- what does not fit, and what is learned --------------------------------------------------


def in_blocks(n: int) -> list[Figure]:
    """A fit whose matrix is larger than the device."""
    from ridgefold import Compute, KernelRidge
    from ridgefold.kernels import RBF

    X, y = data(n)
    model = KernelRidge(
        alpha=10.0,
        kernel=RBF(WIDTH),
        memory_budget=BUDGET,
        compute=Compute(tol=1e-6, solver="conjugate_gradient"),
    )
    figure, fitted = _timed(f"KernelRidge.fit, n = {n}, K in blocks", lambda: model.fit(X, y))
    if fitted is None:
        return [figure]
    detail = {**figure.detail, "GB of K": 8e-9 * n**2, "predicted seconds": model.plan_.seconds}
    what = f"KernelRidge.fit, n = {n}, {model.plan_.method}"
    return [
        Figure(what, figure.measured, "s", detail=detail),
        Figure(
            "the same: residual of the system / norm of the targets",
            float(model._model.certificate[0]) / float(y.norm()),
            at_most=1e-6,
        ),
    ]


def scales(n: int) -> list[Figure]:
    from ridgefold import LSSVMRegressorCV

    X, y = data(n, 16)
    model = LSSVMRegressorCV(metric="learned")
    model.fit(X[:300], y[:300])
    figure, _ = _timed(
        f"LSSVMRegressorCV(metric='learned'), n = {n}, 16 columns", lambda: model.fit(X, y)
    )
    return [figure]


# -- the whole -----------------------------------------------------------------------------


def main(quick: bool) -> bool:
    try:
        import torch

        available = torch.cuda.is_available() or DEVICE == "cpu"
    except ImportError:
        available = False
    if not available:
        print("no CUDA device: nothing measured")
        return True
    name = torch.cuda.get_device_name() if DEVICE == "cuda" else "processor"
    figures, more = rates()

    def keep() -> None:
        print(measure.markdown_table(figures), flush=True)
        if not quick:
            measure.write_results(
                "gpu", f"On one {name}", NOTES, figures, more=PUBLISHED, data=more
            )

    large = not quick
    figures += agreement(1000)
    figures += fits((10_000, 14_800, 20_000, 50_000, 100_000) if large else (3000,))
    for n in (10_000, 20_000, 50_000) if large else (3000,):
        known = ("anchored", "banded", "eigendecomposition") if n == 10_000 else ("anchored",)
        figures += paths(n, ("auto", *known))
        figures += paths(n, ("auto", "anchored"), 8)
    figures += cells(*((100_000, 1_000_000) if large else (2000, 4000)))
    keep()
    figures += gaussian_processes((10_000, 50_000) if large else (3000,))
    keep()
    figures += scales(4000 if large else 400)
    figures += in_blocks(150_000 if large else 3000)
    keep()
    return measure.all_held(figures)


if __name__ == "__main__":
    measure.command_line(main, __doc__)
