"""Other libraries' cross-validation over ridge values, run by the interpreter that has them.

Stands alone: started by `tanaka.py` with another interpreter. Each line read is a request
{"job", "data", "kernel"}; each line written says how many processor seconds the job took and
what it found.
"""

from __future__ import annotations

import importlib.metadata
import json
import resource
import sys
from typing import Any

import numpy as np

FOLDS = 5


def rlscore(X: Any, y: Any, alphas: Any, kernel: str) -> dict[str, Any]:
    from rlscore.learner import KfoldRLS

    folds = [[int(i) for i in rows] for rows in np.array_split(np.arange(len(y)), FOLDS)]
    kernel = {"precomputed": "PrecomputedKernel", "rbf": "GaussianKernel"}[kernel]
    model = KfoldRLS(X, y, folds, kernel=kernel, regparams=alphas)
    return {"alpha": float(model.regparam), "mse": [float(m) for m in model.cv_performances]}


def himalaya(X: Any, y: Any, alphas: Any, kernel: str) -> dict[str, Any]:
    from himalaya.kernel_ridge import KernelRidgeCV

    model = KernelRidgeCV(kernel=kernel, alpha=alphas, cv=FOLDS).fit(X, y)
    return {"alpha": float(model.best_alphas_[0])}


def grid_search(X: Any, y: Any, alphas: Any, kernel: str) -> dict[str, Any]:
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.model_selection import GridSearchCV, KFold

    search = GridSearchCV(
        KernelRidge(kernel=kernel, gamma=1.0),
        {"alpha": alphas},
        cv=KFold(FOLDS),
        scoring="neg_mean_squared_error",
    ).fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    return {"alpha": float(search.best_params_["alpha"]), "mse": [-float(s) for s in scores]}


JOBS = {"rlscore": rlscore, "himalaya": himalaya, "scikit-learn": grid_search}


def processor_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def answer(request: dict[str, str]) -> dict[str, Any]:
    name = request["job"]
    with np.load(request["data"]) as data:
        X, y, alphas = data["X"], data["y"], data["alphas"]
    kernel = request["kernel"]
    small = X[:50, :50] if kernel == "precomputed" else X[:50]
    try:
        version = importlib.metadata.version(name)
        JOBS[name](small.copy(), y[:50], alphas[:2], kernel)  # loads its modules
    except ImportError as error:
        return {"missing": str(error)}
    started = processor_seconds()
    found = JOBS[name](X, y, alphas, kernel)
    return {"seconds": processor_seconds() - started, "version": version, **found}


if __name__ == "__main__":
    out = sys.stdout
    sys.stdout = sys.stderr  # what the libraries print must not mix with the answers
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=out, flush=True)
