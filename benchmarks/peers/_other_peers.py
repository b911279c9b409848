"""CatBoost's defaults, the kernel peer xRFM and the neural peer RealMLP: one thread each.

xRFM (arXiv 2508.10053) and RealMLP (pytabkit) take standardised columns and targets; xRFM chooses
its number of rounds on an eighth of the training rows, and its tuned form the best of 24 settings.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np


def catboost_defaults(X: Any, y: Any, seed: int, classify: bool) -> Any:
    """1000 rounds, its own rate and depth, no early stopping."""
    from catboost import CatBoostClassifier, CatBoostRegressor

    return (CatBoostClassifier if classify else CatBoostRegressor)(
        thread_count=1, random_seed=seed, verbose=False, allow_writing_files=False
    ).fit(X, y)


class _Standardised:
    """A regressor of standardised targets, or a classifier of classes 0, 1, …"""

    def __init__(self, model: Any, y: np.ndarray, classify: bool) -> None:
        self.model, self._mean, self._spread = model, float(np.mean(y)), float(np.std(y)) or 1.0
        if classify:
            self.classes_ = np.unique(y)

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self._mean + self._spread * np.asarray(self.model.predict(X)).ravel()

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        shares = np.clip(np.asarray(self.model.predict_proba(X)), 1e-6, None)
        return shares / shares.sum(axis=1, keepdims=True)


def _xrfm(
    X: np.ndarray, y: np.ndarray, seed: int, classify: bool, settings: list[dict[str, Any]]
) -> Any:
    from xrfm import xRFM

    order = np.random.default_rng(seed).permutation(len(y))
    fit, rest = order[len(y) // 8 :], order[: len(y) // 8]
    targets = np.searchsorted(np.unique(y), y) if classify else (y - y.mean()) / (y.std() or 1.0)
    X = np.asarray(X, dtype=np.float32)
    targets = targets.astype(np.int64 if classify else np.float32)
    best: tuple[float, Any] | None = None
    for setting in settings:
        kernel = {"kernel": "l2", "exponent": 1.0, "bandwidth_mode": "constant"}
        model = xRFM(
            {
                "model": {**kernel, "bandwidth": setting["bandwidth"], "diag": setting["diag"]},
                "fit": {"reg": setting["reg"], "iters": 5, "early_stop_rfm": True,
                        "verbose": False},
            },
            device="cpu", n_threads=1, random_state=seed, verbose=False,
            tuning_metric="logloss" if classify else "mse",
        )  # fmt: skip
        model.fit(X[fit], targets[fit], X[rest], targets[rest])
        if len(settings) == 1:
            return _Standardised(model, y, classify)
        if classify:
            shares = np.clip(np.asarray(model.predict_proba(X[rest])), 1e-6, 1.0)
            loss = float(-np.mean(np.log(shares[np.arange(len(rest)), targets[rest]])))
        else:
            loss = float(np.mean((np.asarray(model.predict(X[rest])).ravel() - targets[rest]) ** 2))
        if best is None or loss < best[0]:
            best = loss, model
    assert best is not None
    return _Standardised(best[1], y, classify)


def xrfm_default(X: Any, y: Any, seed: int, classify: bool) -> Any:
    return _xrfm(X, y, seed, classify, [{"bandwidth": 10.0, "reg": 1e-3, "diag": False}])


def xrfm_tuned(X: Any, y: Any, seed: int, classify: bool) -> Any:
    """The best of 24 settings on an eighth of the rows."""
    grid = product((3.0, 10.0, 30.0), (1e-4, 1e-3, 1e-2, 1e-1), (False, True))
    settings = [{"bandwidth": b, "reg": r, "diag": d} for b, r, d in grid]
    return _xrfm(X, y, seed, classify, settings)


def realmlp(X: Any, y: Any, seed: int, classify: bool) -> Any:
    """Tuned defaults of RealMLP."""
    from pytabkit import RealMLP_TD_Classifier, RealMLP_TD_Regressor

    cls = RealMLP_TD_Classifier if classify else RealMLP_TD_Regressor
    return cls(device="cpu", n_threads=1, random_state=seed).fit(X, y)


OTHER_PEERS: dict[str, Callable[[Any, Any, int, bool], Any]] = {
    "CatBoost defaults": catboost_defaults,
    "xRFM": xrfm_default,
    "xRFM tuned": xrfm_tuned,
    "RealMLP": realmlp,
}
