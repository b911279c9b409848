"""The same job on the same device by others: plain torch, and GPyTorch if it is installed."""

from __future__ import annotations

from typing import Any

PUBLISHED = """
## Published by others

Other devices, other data: not to be compared with the figures above but in their order of size.

| library | job | time | source |
|---|---|---|---|
| cuML `KernelRidge` | one fit, 14,800 rows (columns, type and device not stated) | 0.807 s | its author, on <https://github.com/NVIDIA/cuml/pull/4492> |
| GPyTorch | training an exact Gaussian process, more than 10⁶ rows, several GPUs | less than 2 h | abstract of Wang et al. 2019, <https://arxiv.org/abs/1903.08114> |
| Falkon | one fit of some ten thousand rows | none found | |
"""  # noqa: E501 - a table


def plain_torch(X: Any, y: Any, width: float, alpha: float) -> Any:
    """Gram matrix, Cholesky factor, solution: what one would write without a library."""
    import torch

    Z = X / width
    squares = (Z * Z).sum(dim=1)
    K = torch.addmm(squares[:, None] + squares[None, :], Z, Z.T, alpha=-2.0)
    K.clamp_(min=0.0).mul_(-0.5).exp_()
    K.diagonal().add_(alpha)
    return torch.cholesky_solve(y[:, None], torch.linalg.cholesky(K))[:, 0]


def plain_torch_fold(X: Any, y: Any, folds: list[Any], fold: int, width: float, alphas: Any) -> Any:
    """Held-out predictions of one fold for every alpha, by a refit for each: K is computed once."""
    import torch

    test = folds[fold]
    train = torch.cat([rows for k, rows in enumerate(folds) if k != fold])
    Z, new = X[train] / width, X[test] / width
    K = torch.cdist(Z, Z).square_().mul_(-0.5).exp_()
    across = torch.cdist(new, Z).square_().mul_(-0.5).exp_()
    found = []
    for alpha in alphas:
        shifted = K.clone()
        shifted.diagonal().add_(float(alpha))
        factor = torch.linalg.cholesky(shifted)
        del shifted
        found.append(across @ torch.cholesky_solve(y[train, None], factor)[:, 0])
    return torch.stack(found)


def gpytorch_or_none() -> Any:
    try:
        import gpytorch
    except ImportError:
        return None
    return gpytorch


def gpytorch_means(X: Any, y: Any, new: Any, width: float, alpha: float, *, exact: bool) -> Any:
    """Means of an exact Gaussian process with these hyper-parameters: kernel ridge regression.

    `exact` asks for a Cholesky factorisation; without it GPyTorch takes conjugate gradients.
    """
    import gpytorch
    import torch

    class Process(gpytorch.models.ExactGP):
        def __init__(self, likelihood: Any) -> None:
            super().__init__(X, y, likelihood)
            self.mean_module = gpytorch.means.ZeroMean()
            self.covar_module = gpytorch.kernels.RBFKernel()

        def forward(self, x: Any) -> Any:
            mean, covariance = self.mean_module(x), self.covar_module(x)
            return gpytorch.distributions.MultivariateNormal(mean, covariance)

    likelihood = gpytorch.likelihoods.GaussianLikelihood(
        noise_constraint=gpytorch.constraints.GreaterThan(1e-12)
    ).to(X)
    model = Process(likelihood).to(X)
    model.covar_module.lengthscale = width
    likelihood.noise = alpha
    model.eval()
    likelihood.eval()
    most = X.shape[0] + 1 if exact else 800
    with (
        torch.no_grad(),
        gpytorch.settings.max_cholesky_size(most),
        gpytorch.settings.skip_posterior_variances(True),
    ):
        return model(new).mean
