"""Every library for kernel ridge regression that we know of, on one job small enough for all.

Other libraries run in interpreters that have them (see `_peers.py`).
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from _peers import NAMES, run_peer

import data
import measure
from measure import Figure

N_NEW, N_ALPHAS = 2000, 25
NOTES = """
ccpp, which comes with the project: 1,000 rows to train (the exact dual of neo-ls-svm ends at
1,024), 2,000 to predict, columns standardised, mean of the targets taken off. One thread, processor
time, every library once after a small job that loads it; memory is the peak beyond what was
resident then. 7 widths, powers of two around the median distance, times 25 alphas from 1e-4 to 10,
5 folds; liquidSVM, neo-ls-svm and GPyTorch choose from their own ranges, the last by marginal
likelihood.

Falkon, EigenPro and ASkotch are not packaged for installation by name and are not run here; they
are made for GPUs and millions of rows (published: Falkon, 10⁷ rows of HIGGS in 443 s on two GPUs,
Meanti et al. 2020).
"""


def whole_job(path: str, widths: list[float], alphas: list[float]) -> Callable[[], Any]:
    """Ours, to run in a process of its own; leaves its predictions beside the data."""
    from ridgefold import KernelRidgeCV

    with np.load(path) as arrays:
        X, y, new = arrays["X"], arrays["y"], arrays["new"]

    def run(rows: int, some: list[float]) -> None:
        model = KernelRidgeCV(
            kernel="rbf", kernel_params={"length_scale": some}, alpha=alphas, cv=5
        )
        model.fit(X[:rows], y[:rows])
        np.save(path + ".predicted.npy", model.predict(new))

    run(100, widths[:2])
    return lambda: run(len(X), widths)


def main(quick: bool) -> bool:
    found = data.standardised("ccpp", 200 if quick else 1000)
    assert found is not None
    X, y, new, truth = found
    y, truth, new = y - y.mean(), truth[:N_NEW] - y.mean(), new[:N_NEW]
    median = data.median_distance(X)
    widths = [median * 2.0**step for step in range(-3, 4)]
    alphas = [float(a) for a in np.geomspace(1e-4, 10.0, N_ALPHAS)]

    def error_of(path: Path) -> float:
        values = np.ravel(np.load(str(path) + ".predicted.npy"))
        return float(np.sqrt(np.mean((values - truth) ** 2)))

    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        np.savez(path, X=X, y=y, new=new)
        runs = [measure.run_in_child(whole_job, str(path), widths, alphas) for _ in range(3)]
        seconds, peak = min(r.seconds for r in runs), max(r.peak_bytes for r in runs)
        error = error_of(path)
        detail = {"seconds": seconds, "peak, MB": peak / 1e6}
        figures.append(Figure("ours: test RMSE", error, detail=detail))
        for peer, name in NAMES.items():
            result = run_peer(peer, path, widths, alphas)
            print(f"   {name}: {result}", flush=True)
            if "failed" in result:
                figures.append(Figure(f"{name}: time / ours", None, result["failed"]))
                continue
            theirs = error_of(path)
            detail = {
                "seconds": result["seconds"],
                "peak, MB": result["peak_bytes"] / 1e6,
                "test RMSE": theirs,
            }
            figures += [
                Figure(
                    f"{name}: time / ours",
                    result["seconds"] / seconds,
                    "times",
                    at_least=1.0,
                    detail=detail,
                ),
                Figure(f"{name}: peak memory / ours", result["peak_bytes"] / peak, "times"),
                Figure(f"{name}: our test RMSE / theirs", error / theirs),
            ]
    if quick:
        return True
    measure.write_results("every_peer", "Every peer on one small job", NOTES, figures)
    return measure.all_held(figures)


if __name__ == "__main__":
    measure.command_line(main, __doc__)
