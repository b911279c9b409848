"""Held-out predictions for every ridge value, as a function."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

import numpy as np

from ridgefold.crossval import Folds
from ridgefold.errors import ConditionWarning, InvalidInputError
from ridgefold.estimators.kernel_ridge import KernelRidge
from ridgefold.estimators.validation import check_training_data, out_of_memory_is_a_budget_error
from ridgefold.kernels import KernelGram
from ridgefold.linalg import Array
from ridgefold.linalg.symmetric import expected_digits
from ridgefold.notices import warn
from ridgefold.options import check_method
from ridgefold.planning import available_resources, device_of, explain_run
from ridgefold.records import Plan, RunRecord, StepRecord
from ridgefold.runtime.progress import progress_bar
from ridgefold.runtime.training_data import require_comparable, seconds_left
from ridgefold.selection.cross_validate import (
    CrossValidateKernel,
    PathWork,
    giving_up_is_a_budget_error,
)
from ridgefold.selection.describe import describe
from ridgefold.selection.grids import alphas_from_data, check_alphas
from ridgefold.selection.held_out_predictions import by_row
from ridgefold.selection.splits import folds_of


@dataclass(frozen=True)
class CrossValidationPath:
    """Held-out predictions and errors for every ridge value: what `cross_val_path` gives.

    Examples
    --------
    >>> import numpy as np
    >>> from ridgefold import cross_val_path
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> path = cross_val_path(X, np.sin(X[:, 0]), alpha=[1e-3, 1e-1, 10.0], cv=5)
    >>> path.predictions.shape, path.fold_mse.shape, path.by_row(1e-3).shape
    ((3, 60, 1), (3, 5), (60, 1))
    """

    alphas: np.ndarray
    predictions: Array
    """Shape (n_alphas, rows of all folds one after the other, n_targets), in the array library
    of X; `test_rows` says which rows of X they are."""
    targets: np.ndarray
    """The targets of those rows."""
    folds: Folds
    plan: Plan
    record: StepRecord
    """The plan with its measured time and memory."""
    conditions: np.ndarray
    """Condition number of K + alpha·I for every alpha, where it is known and matters, else NaN."""
    warnings: tuple[str, ...]
    method: str
    """The method that computed the predictions."""
    certificate: np.ndarray | None
    """Bound on the error of the predictions, shape (n_alphas, n_folds, n_targets); None if they
    are right to rounding error."""

    def _repr_html_(self) -> str:
        """A table of the errors, the best marked, and how they were computed."""
        best, errors = int(np.argmin(self.mse)), np.sqrt(self.mse)
        marks = [' style="font-weight:bold"' if i == best else "" for i in range(len(errors))]
        rows = "".join(
            f"<tr{mark}><td>{alpha:.4g}</td><td>{error:.4g}</td></tr>"
            for mark, alpha, error in zip(marks, self.alphas, errors, strict=True)
        )
        notes = "".join(f"<p>{html.escape(message)}</p>" for message in self.warnings)
        head = "<tr><th>alpha</th><th>root mean square error</th></tr>"
        plan = explain_run(RunRecord((self.record,)))._repr_html_()
        return f'<div class="ridgefold-path"><table>{head}{rows}</table>{notes}{plan}</div>'

    @property
    def test_rows(self) -> np.ndarray:
        return self.folds.stacked

    @property
    def _errors(self) -> np.ndarray:
        return np.asarray(np.square(_to_numpy(self.predictions) - self.targets))

    @property
    def mse(self) -> np.ndarray:
        """Mean squared error over all held-out rows and targets, for every alpha."""
        return np.asarray(np.mean(self._errors, axis=(1, 2)))

    @property
    def fold_mse(self) -> np.ndarray:
        """Mean squared error of every fold, shape (n_alphas, n_folds)."""
        errors = self._errors.mean(axis=2)
        return np.stack([errors[:, run].mean(axis=1) for run in self.folds.runs], axis=1)

    @property
    def target_mse(self) -> np.ndarray:
        """Mean squared error of every target, shape (n_alphas, n_targets)."""
        return np.asarray(np.mean(self._errors, axis=1))

    @property
    def best_alpha(self) -> float:
        """The first alpha with the least mean squared error."""
        return float(self.alphas[int(np.argmin(self.mse))])

    def by_row(self, alpha: float) -> np.ndarray:
        """Held-out predictions of one alpha for each row of X, shape (n_rows, n_targets).

        Rows that several folds test get the mean, rows that none tests NaN.
        """
        same = np.isclose(self.alphas, alpha, rtol=1e-9, atol=0.0)
        if not same.any():
            raise InvalidInputError(
                f"alpha={alpha!r} is not one of this path: take one of {self.alphas.tolist()}"
            )
        index = int(np.flatnonzero(same)[0])
        return by_row(self.folds, _to_numpy(self.predictions)[index])


def _to_numpy(a: Array) -> np.ndarray:
    from ridgefold.linalg import namespace_of

    return namespace_of(a).to_numpy(a)


@out_of_memory_is_a_budget_error("cross_val_path")
def cross_val_path(
    X: Any,
    y: Any,
    *,
    alpha: Any = None,
    kernel: Any = "rbf",
    gamma: float | None = None,
    kernel_params: dict[str, Any] | None = None,
    fit_intercept: bool = False,
    fixed: Any = None,
    cv: Any = 5,
    method: str = "auto",
    sample_weight: Any = None,
    groups: Any = None,
    memory_budget: Any = "auto",
    time_budget: float | None = None,
    verbose: int = 0,
) -> CrossValidationPath:
    """Exact held-out predictions of kernel ridge regression for every ridge value.

    Parameters
    ----------
    X, y, sample_weight
        As for :meth:`KernelRidge.fit`.
    alpha : None, float or sequence of float
        Ridge values, each > 0; from the data if not given.
    kernel, gamma, kernel_params, fit_intercept, fixed, memory_budget, time_budget
        As for :class:`KernelRidge`; a polynomial's degree is ``kernel_params={"degree": 2}``.
    cv : int, "loo", splitter or iterable of (train, test), default=5
    method : str, default="auto"
        A name that ``ridgefold methods`` lists ("refit", "inverse_blocks", "eigendecomposition",
        "block_recursive", "banded", "low_rank", "preconditioned", "krylov", "anchored"), or "auto"
        for the one that is predicted to be fastest within the memory budget.
    groups : array of shape (n_rows,), optional
        Passed to the splitter.
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    path : CrossValidationPath
        `predictions`, `mse`, `fold_mse`, `best_alpha`, `method`, `plan`, `warnings`.

    Examples
    --------
    >>> import numpy as np
    >>> from ridgefold import cross_val_path
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> path = cross_val_path(X, np.sin(X[:, 0]), alpha=[1e-3, 1e-1, 10.0], cv="loo")
    >>> path.mse.shape, path.best_alpha
    ((3,), 0.001)
    """
    check_method("method", method)
    model = KernelRidge(
        kernel=kernel,
        gamma=gamma,
        kernel_params=kernel_params,
        fit_intercept=fit_intercept,
        fixed=fixed,
        memory_budget=memory_budget,
        time_budget=time_budget,
    )
    data = check_training_data(model, X, y, sample_weight, numeric_targets=True)
    targets = data.y[:, None] if data.y.ndim == 1 else data.y
    numbers = data.namespace.to_numpy(targets).astype(np.float64)
    require_comparable(numbers)
    folds = folds_of(cv, data.X, numbers, classifier=False, groups=groups)
    model._require_room_for_fixed(data)
    model._warn_of_folds(data, folds)
    gram = model._gram(data.X)
    values = (
        alphas_from_data(gram.kernel if isinstance(gram, KernelGram) else kernel, data)
        if alpha is None
        else check_alphas(alpha)
    )
    problem = describe(data, targets, gram, values, bias=fit_intercept, folds=folds, method=method)
    limits = available_resources(
        memory_budget, seconds_left(time_budget, data), device_of(data.like)
    )
    work = PathWork(
        gram,
        folds,
        targets,
        values,
        data.weights,
        bool(fit_intercept),
        limits,
        lambda: progress_bar(verbose, "cross-validating"),
        data.deadline,
    )
    with giving_up_is_a_budget_error(method, limits):
        _, record = CrossValidateKernel("cross-validating", method).perform(problem, work)
    result = work.held_out
    assert result is not None
    messages = _condition_messages(values, result.conditions, data.namespace.eps(data.like))
    for message in messages:
        warn(message, ConditionWarning)
    return CrossValidationPath(
        alphas=values,
        predictions=result.predictions,
        targets=numbers[folds.stacked],
        folds=folds,
        plan=record.plan,
        record=record,
        conditions=result.conditions,
        warnings=messages,
        method=result.method,
        certificate=result.certificate,
    )


def _condition_messages(alphas: np.ndarray, conditions: np.ndarray, eps: float) -> tuple[str, ...]:
    known = ~np.isnan(conditions)
    if not known.any() or expected_digits(float(conditions[known].max()), eps) >= 3:
        return ()
    poor = [
        float(alpha)
        for alpha, condition in zip(alphas[known], conditions[known], strict=True)
        if expected_digits(float(condition), eps) < 3
    ]
    return (
        f"K + alpha·I is ill-conditioned for {len(poor)} of {len(alphas)} alphas (up to "
        f"{max(poor):.2g}; condition number up to {np.nanmax(conditions):.1e}): expect fewer than "
        "3 correct digits there",
    )
