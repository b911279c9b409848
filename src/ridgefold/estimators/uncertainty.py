"""Standard deviations, draws and likelihoods of fitted regressors: their Gaussian-process view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ridgefold.errors import InvalidInputError, UnsupportedInputError
from ridgefold.estimators.facts import to_numpy
from ridgefold.estimators.posterior import (
    FittedRows,
    by_ridge,
    fitted_rows,
    in_double,
    posterior_of,
    require_memory,
    ridges,
    unpenalised,
)
from ridgefold.estimators.validation import check_new_rows, out_of_memory_is_a_budget_error
from ridgefold.exact.feature_posterior import FeaturePosterior, feature_posterior, pays
from ridgefold.exact.likelihood import spectrum
from ridgefold.exact.posterior import Posterior, prior_variance
from ridgefold.kernels import Kernel, KernelGram
from ridgefold.linalg import Array, namespace_of
from ridgefold.linalg.blocks import row_blocks

if TYPE_CHECKING:
    from ridgefold.estimators.regressor import KernelRegressor

_BLOCK_BYTES = 32e6
"""Rows whose kernel with the training rows is alive at once: wide enough for fast solves."""


class WithPosterior:
    """What a regressor of one kernel knows as a Gaussian process."""

    @property
    def prior_variance_(self: KernelRegressor) -> Any:  # type: ignore[misc]
        """s² of every target: f is a Gaussian process of covariance s²·k(x, x').

        The s² of the largest (restricted) likelihood, yᵀCy/(n − q) with q unpenalised columns. The
        noise of a row of weight w has the variance s²·alpha/w.
        """
        check_is_fitted(self, "X_fit_")
        variances = prior_variances(self, fitted_rows(self), None)
        return float(variances[0]) if self.dual_coef_.ndim == 1 else variances

    @out_of_memory_is_a_budget_error("log_marginal_likelihood")
    def log_marginal_likelihood(  # type: ignore[misc]
        self: KernelRegressor,
        alpha: float | Sequence[float] | None = None,
        *,
        variance: Any = None,
    ) -> Any:
        """The logarithm of the (restricted) marginal likelihood of the targets.

        Parameters
        ----------
        alpha : float, sequence of float or None
            The ridge, or several; None for the model's own. All come from one decomposition.
        variance : float or array of shape (n_targets,), optional
            s² of the process s²·k; the one of the largest likelihood otherwise.

        Returns
        -------
        values : float, or array of shape (n_alphas,)
            The sum over targets.

        Notes
        -----
        With a bias it is the restricted likelihood: that of what no constant changes. Without one
        it is the value of :class:`sklearn.gaussian_process.GaussianProcessRegressor` with the
        kernel ``variance * k`` and ``alpha = variance * alpha``.
        """
        check_is_fitted(self, "X_fit_")
        require_one_kernel(self, "log_marginal_likelihood")
        known = fitted_rows(self)
        variances = check_variance(variance, int(known.targets.shape[1]))
        alphas = ridges(self) if alpha is None else check_alphas(alpha)
        n = int(known.targets.shape[0])
        require_memory(self, 24.0 * n**2, f"the eigendecomposition of {n:,} rows")
        gram = known.gram(self.kernel_)
        likelihood_by_ridge = spectrum(gram, known.targets, known.weights, known.basis)
        if alpha is None:
            every = likelihood_by_ridge.log_likelihoods(np.unique(alphas), variances)
            return float(sum(every[np.searchsorted(np.unique(alphas), a), t]
                             for t, a in enumerate(alphas)))  # fmt: skip
        values = likelihood_by_ridge.log_likelihoods(alphas, variances).sum(axis=1)
        return float(values[0]) if np.ndim(alpha) == 0 else values

    @out_of_memory_is_a_budget_error("sample_y")
    def sample_y(  # type: ignore[misc]
        self: KernelRegressor,
        X: Any,
        n_samples: int = 1,
        random_state: Any = 0,
        *,
        noise: bool = False,
        variance: Any = None,
    ) -> np.ndarray:
        """Functions drawn from the posterior, at the rows of X.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)
            Few rows: their covariances are an n_rows × n_rows matrix.
        n_samples : int, default=1
        random_state : int, RandomState or None, default=0
        noise, variance
            As in :meth:`predict`.

        Returns
        -------
        samples : array of shape (n_rows, n_samples) or (n_rows, n_targets, n_samples)
        """
        if not isinstance(n_samples, (int, np.integer)) or n_samples < 1:
            raise InvalidInputError(f"n_samples must be a whole number >= 1, got {n_samples!r}")
        mean, covariance = self.predict(X, return_cov=True, noise=noise, variance=variance)
        mean, covariance = to_numpy(mean).astype(np.float64), to_numpy(covariance)
        one_target = mean.ndim == 1
        means = mean.reshape(len(mean), -1)
        covariances = covariance.astype(np.float64).reshape(len(mean), len(mean), -1)
        random = check_random_state(random_state)
        drawn = []
        for t in range(means.shape[1]):
            values, vectors = np.linalg.eigh(covariances[:, :, t])
            root = vectors * np.sqrt(np.maximum(values, 0.0))
            drawn.append(
                means[:, t : t + 1] + root @ random.standard_normal((len(mean), n_samples))
            )
        return drawn[0] if one_target else np.stack(drawn, axis=1)

    def predict(  # type: ignore[misc]
        self: KernelRegressor,
        X: Any,
        return_std: bool = False,
        return_cov: bool = False,
        *,
        noise: bool = False,
        variance: Any = None,
    ) -> Any:
        """Predictions for the rows of X, in blocks of bounded memory.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)
        return_std : bool, default=False
            Also the standard deviation of f(x) given the targets, for a Gaussian process of
            covariance s²·k and noise of variance s²·alpha. The first time, the n × n matrix of the
            training rows is factorised again and kept in memory.
        return_cov : bool, default=False
            Also the covariances of the rows of X, an n_rows × n_rows matrix.
        noise : bool, default=False
            Add the variance of the noise of a new observation: the standard deviation of y.
        variance : float or array of shape (n_targets,), optional
            s²; :attr:`prior_variance_`, the most likely one, otherwise.

        Returns
        -------
        mean : array of shape (n_rows,) or (n_rows, n_targets)
        std or cov : arrays of the shape of `mean`, or (n_rows, n_rows[, n_targets]), if asked for
        """
        if not (return_std or return_cov):
            if noise or variance is not None:
                raise InvalidInputError(
                    "noise and variance are about standard deviations: give return_std=True or "
                    "return_cov=True with them"
                )
            return self._predict_numbers(X)
        if return_std and return_cov:
            raise InvalidInputError(
                "return_std and return_cov are both true: the standard deviations are the roots "
                "of the diagonal of the covariances, so ask for those alone"
            )
        mean = self._predict_numbers(X)
        with out_of_memory_is_a_budget_error("predict"):
            spread = self._spread(X, bool(return_cov), bool(noise), variance)
        namespace = namespace_of(mean)
        spread = namespace.astype(spread, mean.dtype)
        return mean, (spread[..., 0] if mean.ndim == 1 else spread)

    def _spread(  # type: ignore[misc]
        self: KernelRegressor,
        X: Any,
        covariances: bool,
        noise: bool,
        variance: Any,
    ) -> Array:
        """Standard deviations (m, t), or covariances (m, m, t), in float64."""
        require_one_kernel(self, "return_std")
        if not isinstance(self.kernel_, Kernel):
            raise UnsupportedInputError(
                'a model with kernel="precomputed" does not know k(x, x) of new rows, which a '
                "standard deviation needs: fit with a kernel object on the rows themselves"
            )
        known = fitted_rows(self)
        namespace, t = known.namespace, int(known.targets.shape[1])
        variances = check_variance(variance, t)
        X = in_double(check_new_rows(self, X, self.X_fit_))
        m = int(X.shape[0])
        if covariances:
            n = int(known.targets.shape[0])
            require_memory(self, 8.0 * (m**2 * (t + 2) + 2 * m * n), f"covariances of {m:,} rows")
        training = KernelGram(self.kernel_, known.X)
        parts: dict[int, Array] = {}
        for alpha, columns in by_ridge(self):
            few = None if covariances else in_features(self, alpha, known)
            if few is not None:
                s2 = to_numpy(few.prior_variances) if variances is None else variances
                unit = few.variances(_features(self.kernel_, X), unpenalised(self, X))
                unit = unit + (alpha if noise else 0.0)
                for j in columns:
                    parts[int(j)] = namespace.xp.sqrt(unit * float(s2[j]))
                continue
            posterior = posterior_of(self, alpha, known)
            s2 = (
                variances
                if variances is not None
                else to_numpy(prior_variance(posterior, known.targets))
            )
            if covariances:
                unit = _unit_covariance(self, posterior, training, X)
                if noise:
                    namespace.add_to_diagonal_in_place(unit, alpha)
            else:
                unit = _unit_variances(self, posterior, training, X) + (alpha if noise else 0.0)
            for j in columns:
                scaled = unit * float(s2[j])
                parts[int(j)] = scaled if covariances else namespace.xp.sqrt(scaled)
        return namespace.xp.stack([parts[j] for j in range(t)], axis=-1)


def _unit_variances(
    model: KernelRegressor, posterior: Posterior, training: KernelGram, X: Array
) -> Array:
    """Var f(x)/s² of every row of X."""
    namespace = posterior.namespace
    out = namespace.empty(int(X.shape[0]), training.like)
    for rows in row_blocks(int(X.shape[0]), 8.0 * posterior.n_rows, _BLOCK_BYTES):
        new = X[rows, ...]
        cross = training.against(new).block()
        prior = training.kernel.diagonal(namespace, new)
        out[rows] = posterior.variances(prior, cross.T, unpenalised(model, new).T)
    return out


def _unit_covariance(
    model: KernelRegressor, posterior: Posterior, training: KernelGram, X: Array
) -> Array:
    prior = KernelGram(training.kernel, X).full()
    cross = training.against(X).block()
    return posterior.covariance(prior, cross.T, unpenalised(model, X).T)


def prior_variances(model: KernelRegressor, known: FittedRows, variance: Any) -> np.ndarray:
    """s² of every target."""
    require_one_kernel(model, "the prior variance")
    t = int(known.targets.shape[1])
    if variance is not None:
        return np.asarray(variance)
    out = np.empty(t)
    for alpha, columns in by_ridge(model):
        few = in_features(model, alpha, known)
        if few is not None:
            out[columns] = to_numpy(few.prior_variances)[columns]
            continue
        posterior = posterior_of(model, alpha, known)
        out[columns] = to_numpy(prior_variance(posterior, known.targets))[columns]
    return out


def in_features(model: KernelRegressor, alpha: float, known: FittedRows) -> FeaturePosterior | None:
    """The posterior without the kernel matrix, where the kernel has few features."""
    kernel, (n, q) = model.kernel_, known.basis.shape
    p = kernel.feature_dimension(int(known.X.shape[1])) if isinstance(kernel, Kernel) else None
    if not pays(int(n), p, int(q), alpha):
        return None
    require_memory(model, 24.0 * n * (p + q), f"the features of {n:,} training rows")
    features = _features(kernel, known.X)
    return feature_posterior(
        known.namespace,
        features,
        known.basis,
        known.targets,
        weights=known.weights,
        alpha=alpha,
    )


def _features(kernel: Kernel | str, X: Array) -> Array:
    assert isinstance(kernel, Kernel)
    return KernelGram(kernel, X).features()


def require_one_kernel(model: KernelRegressor, what: str) -> None:
    """A stack is no Gaussian process: its weights were chosen by held-out predictions."""
    if hasattr(model, "stack_"):
        raise UnsupportedInputError(
            f"{what} is of one kernel, and this model is a stack: its members have a posterior "
            "each but the stack has none; use predict_interval, or fit without search.stack=True"
        )


def check_variance(variance: Any, n_targets: int) -> np.ndarray | None:
    """s² of every target, if it was given."""
    if variance is None:
        return None
    try:
        values = np.asarray(variance, dtype=np.float64)
        by_target = np.broadcast_to(values, (n_targets,))
    except (TypeError, ValueError):
        by_target = np.full(1, np.nan)
    if not (np.all(np.isfinite(by_target)) and np.all(by_target > 0)):
        raise InvalidInputError(
            "variance must be a number > 0, or one for each of the "
            f"{n_targets} targets, got {variance!r}"
        )
    return by_target


def check_alphas(alpha: Any) -> np.ndarray:
    """Ridges whose likelihood is asked for."""
    try:
        values = np.atleast_1d(np.asarray(alpha, dtype=np.float64))
    except (TypeError, ValueError):
        values = np.full(1, np.nan)
    if values.ndim != 1 or len(values) == 0 or not np.all(np.isfinite(values) & (values >= 0)):
        raise InvalidInputError(
            f"alpha must be a number >= 0, a sequence of them, or None, got {alpha!r}"
        )
    return values
