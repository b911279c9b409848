"""`diagnostics`: how a regressor fits its own rows, and which of them it leans on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ridgefold.estimators.facts import to_numpy
from ridgefold.estimators.posterior import by_ridge, fitted_rows, posterior_of
from ridgefold.estimators.uncertainty import require_one_kernel
from ridgefold.estimators.validation import out_of_memory_is_a_budget_error
from ridgefold.exact.diagnostics import row_diagnostics

if TYPE_CHECKING:
    from ridgefold.estimators.regressor import KernelRegressor

_SHOWN = 5
"""Rows that the printed form names: those of the largest influence."""


@dataclass(frozen=True)
class FitDiagnostics:
    """How a fit stands to its own rows; arrays are of shape (n_rows,) or (n_rows, n_targets).

    Rows of weight zero took no part: their leverage and influence are zero, their residual is that
    of a model without them, and they have no standardised one (NaN).

    Examples
    --------
    >>> import numpy as np
    >>> from ridgefold import LSSVMRegressor
    >>> X = np.linspace(0, 3, 30)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(30)
    >>> y[7] += 2
    >>> print(LSSVMRegressor(0.1, gamma=1.0).fit(X, y).diagnostics().most_influential[0])
    7
    """

    degrees_of_freedom: Any
    """The trace of the smoother: a number, or one a target where ridges differ."""
    noise_std: Any
    """σ, of the noise of a row of weight 1: σ² = Σ w(y − f)²/(n − degrees of freedom)."""
    leverage: np.ndarray = field(repr=False)
    """How much the fitted value of a row follows its own target: from 0 to 1."""
    residuals: np.ndarray = field(repr=False)
    """y − f(x)."""
    leave_one_out_residuals: np.ndarray = field(repr=False)
    """y less the prediction of the model without the row."""
    standardised_residuals: np.ndarray = field(repr=False)
    """Residuals divided by their standard deviation, σ√(1 − leverage)."""
    influence: np.ndarray = field(repr=False)
    """Cook's distance: how far all fitted values move if the row is left out, as a mean square in
    units of degrees of freedom times σ²."""

    @property
    def most_influential(self) -> np.ndarray:
        """Row numbers, the most influential first; of several targets, by the largest."""
        largest = self.influence.reshape(len(self.influence), -1).max(axis=1)
        return np.argsort(-largest, kind="stable")

    def __str__(self) -> str:
        rms = np.sqrt(np.mean(np.asarray(self.leave_one_out_residuals) ** 2, axis=0))
        rows = self.most_influential[:_SHOWN]
        largest = self.influence.reshape(len(self.influence), -1).max(axis=1)
        named = ", ".join(f"{row} ({largest[row]:.3g})" for row in rows)
        return "\n".join(
            (
                f"effective degrees of freedom  {_shown(self.degrees_of_freedom)} of "
                f"{len(self.leverage):,} rows",
                f"noise (standard deviation)    {_shown(self.noise_std)}",
                f"leave-one-out error (rms)     {_shown(rms)}",
                f"largest leverage              {np.max(self.leverage):.3g}",
                f"most influential rows         {named}",
            )
        )


def _shown(values: Any) -> str:
    return ", ".join(f"{each:.4g}" for each in np.ravel(values))


class WithDiagnostics:
    """`diagnostics`, for regressors of one kernel."""

    @out_of_memory_is_a_budget_error("diagnostics")
    def diagnostics(self: KernelRegressor) -> FitDiagnostics:  # type: ignore[misc]
        """Degrees of freedom, leverage, residuals with and without a row, and influence.

        All from one inverse of the system of the training rows, without refitting.

        Returns
        -------
        diagnostics : FitDiagnostics
            Prints as a summary.
        """
        check_is_fitted(self, "X_fit_")
        require_one_kernel(self, "diagnostics")
        known = fitted_rows(self)
        n, t = int(self.y_fit_.shape[0]), int(known.targets.shape[1])
        rows = np.arange(n) if known.rows is None else known.rows
        degrees, noise = np.empty(t), np.empty(t)
        leverage = np.zeros((n, t))
        standardised, influence = np.full((n, t), np.nan), np.zeros((n, t))
        residuals = self._own_residuals(t)
        left_out = residuals.copy()
        for alpha, columns in by_ridge(self):
            found = posterior_of(self, alpha, known, copies=1)
            every = row_diagnostics(found, known.targets)
            degrees[columns] = every.degrees_of_freedom
            noise[columns] = np.sqrt(to_numpy(every.noise_variance))[columns]
            at = np.ix_(rows, columns)
            leverage[at] = to_numpy(every.leverage)[:, None]
            residuals[at] = to_numpy(every.residuals)[:, columns]
            left_out[at] = to_numpy(every.left_out)[:, columns]
            standardised[at] = to_numpy(every.standardised)[:, columns]
            influence[at] = to_numpy(every.influence)[:, columns]
        one_target = self.dual_coef_.ndim == 1
        one_ridge = len(np.unique(degrees)) == 1

        def shaped(values: np.ndarray) -> np.ndarray:
            return values[:, 0] if one_target else values

        return FitDiagnostics(
            degrees_of_freedom=float(degrees[0]) if one_ridge else degrees,
            noise_std=float(noise[0]) if one_target else noise,
            leverage=leverage[:, 0] if one_ridge else leverage,
            residuals=shaped(residuals),
            leave_one_out_residuals=shaped(left_out),
            standardised_residuals=shaped(standardised),
            influence=shaped(influence),
        )

    def _own_residuals(self: KernelRegressor, n_targets: int) -> np.ndarray:  # type: ignore[misc]
        """y − f(x) of the training rows, shape (n, t), in float64."""
        own = to_numpy(self._decision_of_checked(self.X_fit_)).astype(np.float64)
        return np.asarray(to_numpy(self.y_fit_).reshape(-1, n_targets) - own, dtype=np.float64)
