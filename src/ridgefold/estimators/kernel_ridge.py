"""Kernel ridge regression with a given kernel and ridge."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import MultiOutputMixin, RegressorMixin

from ridgefold.estimators.regressor import KernelRegressor
from ridgefold.estimators.validation import check_training_data, unchanged_on_error
from ridgefold.kernels import KernelSettings
from ridgefold.options import Compute


class KernelRidge(MultiOutputMixin, RegressorMixin, KernelRegressor):
    """Kernel ridge regression: minimise Σ wᵢ(yᵢ − f(xᵢ))² + alpha·‖f‖².

    A drop-in replacement for ``sklearn.kernel_ridge.KernelRidge``: the same arguments give
    the same predictions, in half the memory, with an optional unpenalised bias.

    Parameters
    ----------
    alpha : float or array of shape (n_targets,), default=1
        Ridge: the system solved is (K + alpha·I) a = y. One number, or one a target; >= 0.
    kernel : str, kernel object or callable, default="linear"
        A name ("rbf", "laplacian", "matern", "rational_quadratic", "polynomial", "linear",
        "sobolev", "precomputed" and scikit-learn's others), an object such as
        ``RBF(0.5) + 1``, or a function of two rows.
    gamma, degree, coef0 : float
        Parameters of named kernels, as in scikit-learn; ``gamma=None`` is 1/n_columns.
    kernel_params : dict, optional
        Further parameters: of a callable, or of a named kernel (``{"nu": 0.5}``).
    fit_intercept : bool, default=False
        Add a bias that is not penalised.
    fixed : None, "linear", list of str or int, or mask, default=None
        Columns of X (names, numbers, or a truth value for each) whose linear effect is not
        penalised, as the bias is not; "linear" is every column. The kernel sees them, too:
        :class:`~ridgefold.kernels.Columns` leaves them out of it
        (``docs/how-to/fixed-columns.md``).
    intervals : {"auto", "cv+", "jackknife+", None}, default="auto"
        What to keep for :meth:`predict_interval`: "cv+" the models without one of 10 folds, 10
        numbers a row; "jackknife+" those without one row, an n × n matrix. Either costs about one
        more factorisation. "auto" keeps what costs next to nothing, which here is nothing.
    memory_budget : "auto", int or str, default="auto"
        Most memory to take beyond what the process holds, as "2GB"; "auto" is a share of what is
        free.
    time_budget : float, optional
        Most seconds to take: if no method is predicted to be that fast, fitting is refused, and
        the error says what would do. What takes longer than predicted is stopped.
    compute : Compute, optional
        Which solver, and how exactly it solves.

    Attributes
    ----------
    dual_coef_ : array of shape (n_rows,) or (n_rows, n_targets)
        a in f(x) = Σ aᵢ k(xᵢ, x) + b.
    intercept_ : float or array of shape (n_targets,)
        b; zero without ``fit_intercept``.
    fixed_coef_, fixed_coef_std_ : array of shape (n_fixed,) or (n_fixed, n_targets)
        With `fixed`: the coefficients of those columns, and their standard errors (as in a mixed
        model whose smooth part has the kernel as covariance; NaN where the rows do not determine a
        coefficient).
    fixed_names_ : array of shape (n_fixed,)
        The names of those columns.
    X_fit_ : array of shape (n_rows, n_columns)
        The training rows (the kernel matrix if precomputed).
    y_fit_ : array with the shape of y
        The targets of the training rows.
    kernel_ : Kernel
        The kernel object that was used.
    intervals_ : Intervals or None
        What is kept for :meth:`predict_interval`.
    plan_ : Plan
        The solver chosen, its predicted cost, and the others with the reason.

    Examples
    --------
    >>> import numpy as np
    >>> from ridgefold import KernelRidge
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> model = KernelRidge(alpha=1e-3, kernel="rbf", gamma=1.0).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(model.predict([[1.5]])[0] - np.sin(1.5)) < 1e-3)
    True
    """

    _nature = "kernel ridge regression"

    def __init__(
        self,
        alpha: Any = 1,
        *,
        kernel: Any = "linear",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        fit_intercept: bool = False,
        fixed: Any = None,
        intervals: str | None = "auto",
        memory_budget: Any = "auto",
        time_budget: float | None = None,
        compute: Compute | None = None,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.fit_intercept = fit_intercept
        self.fixed = fixed
        self.intervals = intervals
        self.memory_budget = memory_budget
        self.time_budget = time_budget
        self.compute = compute

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X and targets y.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_columns)
            The kernel matrix (n_rows, n_rows) if ``kernel="precomputed"``.
        y : array of shape (n_rows,) or (n_rows, n_targets)
        sample_weight : float or array of shape (n_rows,), optional
            A row of weight 2 counts as two rows, one of weight 0 not at all.
        """
        with unchanged_on_error(self):
            self._check_options()
            data = check_training_data(self, X, y, sample_weight, numeric_targets=True)
            self._fit_numbers(data)
        return self

    def _settings(self) -> KernelSettings:
        return KernelSettings(self.gamma, self.degree, self.coef0, self.kernel_params)
