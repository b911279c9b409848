"""One GPU, float64: fits, exact cross-validation, and agreement with the CPU.

Run by hand where there is a CUDA device; elsewhere it says so and ends.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import numpy as np

import measure
from measure import Figure

NOTES = """
Seconds on the wall after one warm-up call at a small size, tensors already on the device, float64.
Data are made up: 64 columns of normal numbers, y = sin(x₁) + noise, RBF of width √(2·64).
"""


def data(n: int, d: int = 64) -> tuple[Any, Any]:
    import torch

    generator = torch.Generator(device="cuda").manual_seed(0)
    X = torch.randn((n, d), generator=generator, device="cuda", dtype=torch.float64)
    noise = torch.randn(n, generator=generator, device="cuda", dtype=torch.float64)
    return X, torch.sin(X[:, 0]) + 0.3 * noise


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    import torch

    torch.cuda.synchronize()
    started = time.perf_counter()
    result = work()
    torch.cuda.synchronize()
    return time.perf_counter() - started, result


def peak() -> float:
    import torch

    return torch.cuda.max_memory_allocated() / 1e9


def fits(sizes: tuple[int, ...]) -> list[Figure]:
    import torch

    from ridgefold import KernelRidge
    from ridgefold.kernels import RBF

    figures = []
    kernel = RBF(np.sqrt(128.0))
    KernelRidge(alpha=0.1, kernel=kernel).fit(*data(2000))
    for n in sizes:
        X, y = data(n)
        torch.cuda.reset_peak_memory_stats()
        took, model = seconds(
            lambda X=X, y=y: KernelRidge(alpha=0.1, kernel=kernel, memory_budget="130GB").fit(X, y)
        )
        memory = peak()
        new = X[:1000]
        residual = y[:1000] - model.predict(new) - 0.1 * model.dual_coef_[:1000]
        figures += [
            Figure(
                f"KernelRidge.fit, n = {n}, {model.plan_.method}",
                took,
                "s",
                at_most=2.0 if n == 50_000 else None,
                detail={"GB": memory},
            ),
            Figure(
                "the same: largest residual of the system at 1000 rows / largest target",
                float(residual.abs().max() / y.abs().max()),
                "",
                at_most=1e-9,
            ),
        ]
        print(figures[-2], figures[-1], flush=True)
        del model, X, y, new, residual
        torch.cuda.empty_cache()
    return figures


def paths(n: int, methods: tuple[str, ...]) -> list[Figure]:
    import torch

    from ridgefold import cross_val_path
    from ridgefold.kernels import RBF

    alphas, kernel = np.geomspace(1e-4, 10.0, 30), RBF(np.sqrt(128.0))
    figures: list[Figure] = []
    X, y = data(n)
    small = data(3000)
    for method in methods:
        try:
            cross_val_path(*small, kernel=kernel, alphas=alphas, method=method)
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            took, path = seconds(
                lambda m=method: cross_val_path(
                    X, y, kernel=kernel, alphas=alphas, method=m, memory_budget="130GB"
                )
            )
        except Exception as error:
            figures.append(Figure(f"5-fold, 30 alphas, n = {n}, {method}", None, str(error)[:160]))
            print(figures[-1], flush=True)
            continue
        figures.append(
            Figure(
                f"5-fold, 30 alphas, n = {n}, {method}",
                took,
                "s",
                at_most=15.0 if n == 50_000 else None,
                detail={"GB": peak(), "best mse": float(np.min(path.mse))},
            )
        )
        print(figures[-1], flush=True)
        del path
        torch.cuda.empty_cache()
    return figures


def agreement(n: int) -> list[Figure]:
    from ridgefold import KernelRidge, cross_val_path
    from ridgefold.kernels import RBF

    kernel, alphas = RBF(8.0), np.geomspace(1e-3, 1.0, 5)
    X, y = data(n)
    on_cpu = X.cpu().numpy(), y.cpu().numpy()
    figures = []
    gpu = KernelRidge(alpha=0.01, kernel=kernel).fit(X, y).predict(X).cpu().numpy()
    cpu = KernelRidge(alpha=0.01, kernel=kernel).fit(*on_cpu).predict(on_cpu[0])
    condition = n / 0.01
    allowed = 10 * (n + condition) * np.finfo(float).eps * np.abs(cpu).max()
    figures.append(
        Figure(
            "CPU and GPU, fit: difference / tolerance",
            float(np.abs(gpu - cpu).max() / allowed),
            "",
            at_most=1.0,
        )
    )
    for method in ("eigendecomposition", "inverse_blocks", "banded", "krylov", "anchored", "refit"):
        settings = {"kernel": kernel, "alphas": alphas, "method": method}
        try:
            gpu = cross_val_path(X, y, **settings).predictions.cpu().numpy()
            cpu = cross_val_path(*on_cpu, **settings).predictions
        except Exception as error:
            figures.append(Figure(f"CPU and GPU, {method}", None, str(error)[:160]))
            continue
        allowed = 10 * (n + n / 1e-3) * np.finfo(float).eps * np.abs(cpu).max()
        if method in ("krylov", "anchored"):
            allowed += 1e-8 * np.abs(on_cpu[1]).max()
        figures.append(
            Figure(
                f"CPU and GPU, {method}: difference / tolerance",
                float(np.abs(gpu - cpu).max() / allowed),
                "",
                at_most=1.0,
            )
        )
    return figures


def main(quick: bool) -> bool:
    try:
        import torch

        available = torch.cuda.is_available()
    except ImportError:
        available = False
    if not available:
        print("no CUDA device: nothing measured")
        return True
    figures = agreement(1000)
    print(measure.markdown_table(figures), flush=True)
    figures += fits((5000,) if quick else (10_000, 20_000, 50_000, 100_000))
    for n in (5000,) if quick else (10_000, 20_000, 50_000):
        ways = (
            ("anchored", "krylov", "banded", "eigendecomposition")
            if n < 20_000
            else ("anchored", "krylov")
        )
        figures += paths(n, ways)
    name = torch.cuda.get_device_name()
    if not quick:
        measure.write_results("gpu", f"On one {name}", NOTES, figures)
    return measure.all_held(figures)


if __name__ == "__main__":
    measure.command_line(main, __doc__)
