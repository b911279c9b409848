"""Choose kernel and ridge by the (restricted) marginal likelihood of the targets.

One eigendecomposition a kernel gives the likelihood of every ridge (`exact.likelihood`), at the
variance that suits each best. Folds have no part in the choice: what is chosen is then
cross-validated at its one ridge, for held-out predictions and intervals.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse

from ridgefold.crossval import Progress
from ridgefold.errors import BudgetError, NumericalError
from ridgefold.exact.likelihood import Spectrum, spectrum
from ridgefold.kernels import Gram, Kernel
from ridgefold.linalg import namespace_of
from ridgefold.linalg.threads import threads
from ridgefold.planning.amounts import in_bytes
from ridgefold.records import StepRecord
from ridgefold.selection.grids import Candidate
from ridgefold.selection.path_tasks import gram_of
from ridgefold.selection.search import Choice, GridSearch, Trial
from ridgefold.solvers.base import unpenalised_columns

MATRICES = 3
"""Matrices of n × n numbers in float64 that an eigendecomposition takes."""


@dataclass
class LikelihoodSearch(GridSearch):
    """Evaluates kernels over all alphas, one eigendecomposition each."""

    _own_seconds: float = 0.0

    def _can_race(self) -> bool:
        return False

    def _kept_bytes(self, kernels: int, n_alphas: int) -> float:
        return super()._kept_bytes(1, 1)

    def _evaluate(
        self, paths: Sequence[tuple[Candidate, np.ndarray]], progress: Progress
    ) -> list[list[Trial]]:
        trials = []
        for k, (candidate, alphas) in enumerate(paths):
            began = time.perf_counter()
            values = self._log_likelihoods(candidate.kernel, alphas)
            seconds = time.perf_counter() - began
            self._own_seconds += seconds
            folds = np.full(len(self.folds), np.nan)
            by_target = np.empty((1 + len(folds), 0))
            each = seconds / len(alphas)
            for_all = [
                Trial(candidate, float(a), float(v.sum()), folds, by_target, each)
                for a, v in zip(alphas, values, strict=True)
            ]
            if self.settings.alpha_per_target:
                empty = np.full((len(folds), values.shape[1]), np.nan)
                for_all = [
                    replace(trial, by_target=np.concatenate([v[None, :], empty]))
                    for trial, v in zip(for_all, values, strict=True)
                ]
            trials.append(for_all)
            progress((k + 1) / len(paths))
        return trials

    def _log_likelihoods(self, kernel: Kernel | str, alphas: np.ndarray) -> np.ndarray:
        """Shape (n_alphas, t); NaN where the system is singular to rounding."""
        found = self._spectrum(kernel)
        values = np.full((len(alphas), found.squares.shape[1]), np.nan)
        for j in range(len(alphas)):
            with contextlib.suppress(NumericalError):
                values[j] = found.log_likelihoods(alphas[j : j + 1], None)[0]
        # Targets that a kernel fits exactly have an infinite likelihood, which tells nothing.
        return np.where(np.isfinite(values), values, np.nan)

    def _spectrum(self, kernel: Kernel | str) -> Spectrum:
        common = self.paths.common
        namespace = namespace_of(common.targets)
        double = namespace.double()
        targets = namespace.astype(common.targets, double)
        limits = self.paths.resources()
        needed = 8.0 * MATRICES * self.folds.n_rows**2
        if needed > limits.memory_bytes:
            raise BudgetError(
                'scoring="marginal_likelihood" decomposes the kernel matrix, which takes '
                f"{in_bytes(needed)}, and {in_bytes(limits.memory_bytes)} are left of "
                "memory_budget: raise it, or choose by held-out errors (scoring=None)"
            )
        if self.paths.deadline is not None:
            self.paths.deadline.check("choosing by likelihood")
        X = common.X
        X = X.astype(np.float64) if scipy.sparse.issparse(X) else namespace.astype(X, double)
        gram, weights = gram_of(kernel, X, common.fixed), common.weights
        part: Gram = gram
        if weights is not None:
            numbers = namespace.to_numpy(weights)
            rows = np.flatnonzero(numbers > 0)
            if len(rows) < len(numbers):
                part = gram.restricted(rows)
                targets = namespace.take_rows(targets, rows)
            weights = namespace.asarray(numbers[rows], targets, double)
        basis = namespace.ones((int(targets.shape[0]), int(common.bias)), targets)
        if common.fixed:  # any basis of what the columns span gives the same likelihood
            space = unpenalised_columns(part, None, bias=common.bias)
            assert space is not None
            basis = space.basis
        with threads(limits.threads):
            return spectrum(part, targets, weights, basis)

    def _choose(self, trials: list[Trial]) -> Choice:
        choice = super()._choose(trials)
        record: StepRecord = choice.record
        seconds = record.seconds + self._own_seconds
        return replace(choice, record=replace(record, seconds=seconds))
