"""Other libraries' whole job, run by an interpreter that has them.

Stands alone: started by `_peers.py`. Reads one request {"peer", "data", "widths", "alphas"} from
standard input; writes processor seconds, peak memory beyond what was held before, the chosen pair
where there is one, and the file of its predictions.
"""

from __future__ import annotations

import json
import resource
import sys
from typing import Any

import numpy as np

FOLDS = 5


def squared_distances(A: Any, B: Any) -> Any:
    from scipy.spatial.distance import cdist

    return cdist(A, B, "sqeuclidean")


def scikit_learn(X: Any, y: Any, new: Any, widths: Any, alphas: Any) -> tuple[Any, dict]:
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.model_selection import GridSearchCV, KFold

    grid = {"alpha": list(alphas), "gamma": [0.5 / w**2 for w in widths]}
    search = GridSearchCV(
        KernelRidge(kernel="rbf"), grid, cv=KFold(FOLDS), scoring="neg_mean_squared_error"
    ).fit(X, y)
    width = float(np.sqrt(0.5 / search.best_params_["gamma"]))
    found = {"width": width, "alpha": search.best_params_["alpha"], "mse": -search.best_score_}
    return search.predict(new), found


def himalaya(X: Any, y: Any, new: Any, widths: Any, alphas: Any) -> tuple[Any, dict]:
    from himalaya.kernel_ridge import KernelRidgeCV
    from sklearn.model_selection import KFold

    best = None
    for width in widths:
        kernel = np.exp(-squared_distances(X, X) / (2 * width**2))
        model = KernelRidgeCV(kernel="precomputed", alpha=alphas, cv=KFold(FOLDS)).fit(kernel, y)
        score = float(np.max(model.cv_scores_))
        if best is None or score > best[0]:
            best = (score, width, model)
    _, width, model = best
    values = model.predict(np.exp(-squared_distances(new, X) / (2 * width**2)))
    return values, {"width": float(width), "alpha": float(np.ravel(model.best_alphas_)[0])}


def rlscore(X: Any, y: Any, new: Any, widths: Any, alphas: Any) -> tuple[Any, dict]:
    from rlscore.learner import KfoldRLS

    folds = [[int(i) for i in rows] for rows in np.array_split(np.arange(len(y)), FOLDS)]
    best = None
    for width in widths:
        model = KfoldRLS(
            X, y, folds, kernel="GaussianKernel", gamma=0.5 / width**2, regparams=alphas
        )
        error = float(np.min(model.cv_performances))
        if best is None or error < best[0]:
            best = (error, width, model)
    _, width, model = best
    return model.predict(new), {"width": float(width), "alpha": float(model.regparam)}


def liquidsvm(X: Any, y: Any, new: Any, widths: Any, alphas: Any) -> tuple[Any, dict]:
    import sysconfig

    sysconfig.get_config_vars()["SO"] = sysconfig.get_config_var("EXT_SUFFIX")
    from liquidSVM import lsSVM

    model = lsSVM(X, y, threads=1, folds=FOLDS)
    return np.ravel(model.predict(new)), {}


def lssvr(X: Any, y: Any, new: Any, widths: Any, alphas: Any) -> tuple[Any, dict]:
    from lssvr import LSSVR
    from sklearn.model_selection import GridSearchCV, KFold

    grid = {"C": [1.0 / a for a in alphas], "gamma": [0.5 / w**2 for w in widths]}
    search = GridSearchCV(
        LSSVR(kernel="rbf"), grid, cv=KFold(FOLDS), scoring="neg_mean_squared_error"
    ).fit(X, y)
    width = float(np.sqrt(0.5 / search.best_params_["gamma"]))
    found = {"width": width, "alpha": 1.0 / search.best_params_["C"], "mse": -search.best_score_}
    return np.ravel(search.predict(new)), found


def neo_ls_svm(X: Any, y: Any, new: Any, widths: Any, alphas: Any) -> tuple[Any, dict]:
    """Chooses its own features and ridge by leave-one-out."""
    from neo_ls_svm import NeoLSSVM

    model = NeoLSSVM(estimator_type="regressor").fit(X, y)
    return np.ravel(model.predict(new)), {}


def gpytorch(X: Any, y: Any, new: Any, widths: Any, alphas: Any) -> tuple[Any, dict]:
    """Width, variance and noise by the marginal likelihood, 100 steps of Adam."""
    import gpytorch as gp
    import torch

    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    rows, targets = torch.from_numpy(X), torch.from_numpy(y / y.std())

    class Exact(gp.models.ExactGP):
        def __init__(self, likelihood: Any) -> None:
            super().__init__(rows, targets, likelihood)
            self.mean = gp.means.ZeroMean()
            self.kernel = gp.kernels.ScaleKernel(gp.kernels.RBFKernel())

        def forward(self, x: Any) -> Any:
            return gp.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

    likelihood = gp.likelihoods.GaussianLikelihood()
    model = Exact(likelihood)
    model.kernel.base_kernel.lengthscale = float(np.median(widths))
    with gp.settings.fast_computations(False, False, False):
        model.train()
        objective = gp.mlls.ExactMarginalLogLikelihood(likelihood, model)
        adam = torch.optim.Adam(model.parameters(), lr=0.1)
        for _ in range(100):
            adam.zero_grad()
            loss = -objective(model(rows), targets)
            loss.backward()
            adam.step()
        model.eval()
        with torch.no_grad():
            values = model(torch.from_numpy(new)).mean.numpy()
    width = float(model.kernel.base_kernel.lengthscale.detach())
    alpha = float(likelihood.noise.detach() / model.kernel.outputscale.detach())
    return values * y.std(), {"width": width, "alpha": alpha}


PEERS = {
    f.__name__: f for f in (scikit_learn, himalaya, rlscore, liquidsvm, lssvr, neo_ls_svm, gpytorch)
}


def resident() -> float:
    """Bytes resident now."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(1024.0 * int(line.split()[1]) for line in file if line.startswith("VmRSS"))


def main() -> None:
    request = json.loads(sys.stdin.readline())
    with np.load(request["data"]) as arrays:
        X, y, new = arrays["X"], arrays["y"], arrays["new"]
    run, widths, alphas = PEERS[request["peer"]], request["widths"], request["alphas"]
    run(X[:100], y[:100], new[:10], widths[:1], alphas[:2])  # loads and compiles what is needed
    held, before = resident(), resource.getrusage(resource.RUSAGE_SELF)
    values, found = run(X, y, new, widths, alphas)
    after = resource.getrusage(resource.RUSAGE_SELF)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    np.save(request["data"] + ".predicted.npy", np.asarray(values, dtype=float))
    figures = {"seconds": seconds, "peak_bytes": 1024.0 * after.ru_maxrss - held}
    print("RESULT " + json.dumps(figures | found), flush=True)


if __name__ == "__main__":
    main()
