"""Gradient boosting beside us: three libraries, settings fixed beforehand, one thread each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

PATIENCE = 100
"""Rounds without progress on the held-out eighth after which LightGBM and CatBoost stop."""


def _without_an_eighth(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.random.default_rng(seed).permutation(n)
    return order[n // 8 :], order[: n // 8]


def hist_gradient_boosting(X: Any, y: Any, seed: int, classify: bool) -> Any:
    """scikit-learn's: 1000 rounds, rate 0.05, its own early stopping."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    cls = HistGradientBoostingClassifier if classify else HistGradientBoostingRegressor
    return cls(max_iter=1000, learning_rate=0.05, early_stopping=True, random_state=seed).fit(X, y)


def lightgbm(X: Any, y: Any, seed: int, classify: bool) -> Any:
    """5000 rounds, rate 0.03, 63 leaves, rows and columns sampled by 0.8; stops early."""
    from lightgbm import LGBMClassifier, LGBMRegressor, early_stopping

    train, rest = _without_an_eighth(len(y), seed)
    model = (LGBMClassifier if classify else LGBMRegressor)(
        n_estimators=5000,
        learning_rate=0.03,
        num_leaves=63,
        subsample=0.8,
        subsample_freq=1,
        colsample_bytree=0.8,
        n_jobs=1,
        random_state=seed,
        verbose=-1,
    )
    return model.fit(
        X[train],
        y[train],
        eval_set=[(X[rest], y[rest])],
        callbacks=[early_stopping(PATIENCE, verbose=False)],
    )


def catboost(X: Any, y: Any, seed: int, classify: bool) -> Any:
    """3000 rounds, rate 0.05, depth 8; stops early."""
    from catboost import CatBoostClassifier, CatBoostRegressor

    train, rest = _without_an_eighth(len(y), seed)
    model = (CatBoostClassifier if classify else CatBoostRegressor)(
        iterations=3000,
        learning_rate=0.05,
        depth=8,
        thread_count=1,
        random_seed=seed,
        verbose=False,
        allow_writing_files=False,
    )
    return model.fit(
        X[train], y[train], eval_set=(X[rest], y[rest]), early_stopping_rounds=PATIENCE
    )


BOOSTERS: dict[str, Callable[[Any, Any, int, bool], Any]] = {
    "HistGradientBoosting": hist_gradient_boosting,
    "LightGBM": lightgbm,
    "CatBoost": catboost,
}
