"""Standard errors of average effects: each average is Lᵀy (`exact.effects`, `exact.posterior`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ridgefold.estimators.facts import to_numpy
from ridgefold.estimators.posterior import (
    FittedRows,
    fitted_rows,
    posterior_of,
    ridges,
    slopes_of_unpenalised,
    unpenalised,
)
from ridgefold.exact.effects import (
    Functionals,
    mean_difference,
    mean_slopes,
    weighted_values,
)
from ridgefold.exact.posterior import Posterior, prior_variance
from ridgefold.kernels import Kernel
from ridgefold.linalg import Array
from ridgefold.selection.probability_slopes import probability_slopes

if TYPE_CHECKING:
    from ridgefold.estimators.base import KernelModel
    from ridgefold.estimators.effects import Effect

_NO_VARIANCE = (
    "–: slopes of a kernel as rough as this one (Laplacian, Matérn 1/2) have no prior variance, "
    "and so no posterior one; differences have."
)
_PROBABILITIES = (
    "Standard errors are to first order in the decision values, with the curve of probabilities "
    "as given; labels are not normal, so there is no posterior standard deviation."
)
_STACK = "A stack has no posterior; standard errors count its weights as given."
Errors = tuple[np.ndarray, np.ndarray | None, str]
"""Standard errors and posterior standard deviations, of shape (p, outputs), and a note."""


@dataclass(frozen=True)
class _Member:
    """One kernel of the model with one ridge: targets, and its weight for each of them."""

    kernel: Kernel
    alpha: float
    columns: np.ndarray
    weights: np.ndarray


def _members(model: KernelModel) -> Iterator[_Member]:
    """The kernels of a stack (or the only one), each with the distinct ridges that it has."""
    stack = getattr(model, "stack_", None)
    if stack is None:
        parts = [(model.kernel_, ridges(model), np.ones_like(ridges(model)))]
    else:
        parts = [(each.kernel, each.alpha, each.weight) for each in stack.members]
    for kernel, alphas, weights in parts:
        assert isinstance(kernel, Kernel)
        for alpha in np.unique(alphas):
            columns = np.flatnonzero(alphas == alpha)
            yield _Member(kernel, float(alpha), columns, weights[columns])


class _Noise:
    """Residuals and degrees of freedom of every target, summed over the members of a model."""

    def __init__(self, known: FittedRows) -> None:
        self._known = known
        self._targets = to_numpy(known.targets)
        self.weights = (
            np.ones(len(self._targets)) if known.weights is None else to_numpy(known.weights)
        )
        t = self._targets.shape[1]
        self._residuals = np.zeros_like(self._targets)
        self._free = np.zeros(t)
        self._shares = np.zeros(t)

    def add(self, member: _Member, posterior: Posterior) -> None:
        """Σ w_m (y − f_m) and Σ w_m (n − df_m) of a member."""
        chosen = member.columns
        own = to_numpy(posterior.dual(self._known.targets))[:, chosen]
        own = member.alpha * own / np.sqrt(self.weights)[:, None]
        self._residuals[:, chosen] += own * member.weights
        self._free[chosen] += member.weights * posterior.free
        self._shares[chosen] += member.weights

    def covariance(self, offset: np.ndarray | float = 0.0) -> np.ndarray:
        """Covariances of the noise of the targets at a row of weight 1."""
        left = self._residuals + (1.0 - self._shares) * self._targets - offset
        free = self._free + (1.0 - self._shares) * len(left)
        return np.asarray((left * self.weights[:, None]).T @ left / np.sqrt(np.outer(free, free)))


class _ErrorsOfEffects:
    """What both kinds of errors need: the rows, in float64 and in the library of the model."""

    def __init__(
        self, model: KernelModel, X: np.ndarray, shares: np.ndarray, curves: np.ndarray | None
    ) -> None:
        self.model, self.X, self.shares, self.curves = model, X, shares, curves
        self.known = fitted_rows(model)
        self.like = self.known.targets

    def placed(self, values: np.ndarray) -> Array:
        return self.known.namespace.asarray(np.asarray(values, np.float64), self.like)

    def nothing(self, p: int) -> tuple[Array, Array]:
        """Storage for a and ℓF of p functionals, filled with zeros."""
        zeros, (n, q) = self.known.namespace.zeros, self.known.basis.shape
        return zeros((n, p), self.like), zeros((q, p), self.like)

    def basis_of(self, rows: np.ndarray, weights: Array) -> Array:
        """Σ_r w_rp F(x_r), of shape (q, p) for weights of shape (m, p)."""
        return unpenalised(self.model, self.placed(rows)).T @ weights

    def difference_of_basis(self, effect: Any, up: Array, down: Array) -> Array:
        """Σ_r [u_r F(high_r) − v_r F(low_r)], of shape (q,)."""
        high, low = effect.rows(self.X)
        difference = self.basis_of(high, up[:, None]) - self.basis_of(low, down[:, None])
        return difference[:, 0]


class PlainErrors(_ErrorsOfEffects):
    """Errors of effects on predictions, or on decision values."""

    def of(self, effects: Sequence[Effect]) -> Errors:
        p, t = len(effects), int(self.like.shape[1])
        stack = getattr(self.model, "stack_", None)
        n = int(self.like.shape[0])
        noise, total = _Noise(self.known), np.zeros((n, p, t))
        posterior = np.full((p, t), np.nan)
        # A classifier's labels are no normal numbers, so that only regressors have a posterior.
        gaussian = stack is None and not hasattr(self.model, "classes_")
        functionals: dict[Any, Functionals] = {}
        for member in _members(self.model):
            of_member = posterior_of(
                self.model, member.alpha, self.known, kernel=member.kernel, copies=1
            )
            noise.add(member, of_member)
            if member.kernel not in functionals:
                functionals = {
                    member.kernel: self._functionals(member.kernel, effects, prior=gaussian)
                }
            each = functionals[member.kernel]
            L = to_numpy(of_member.weights_of_targets(each.a, each.phi))
            for j, weight in zip(member.columns, member.weights, strict=True):
                total[:, :, j] += weight * L
            if gaussian:
                assert each.prior is not None
                unit = to_numpy(of_member.variances(self.placed(each.prior), each.a, each.phi))
                s2 = to_numpy(prior_variance(of_member, self.known.targets))[member.columns]
                posterior[:, member.columns] = np.sqrt(np.outer(unit, s2))
        sigma2 = np.diagonal(noise.covariance(0.0 if stack is None else stack.offset))
        norms = np.einsum("npt,npt,n->pt", total, total, 1.0 / noise.weights)
        if not gaussian:
            return np.sqrt(sigma2 * norms), None, "" if stack is None else _STACK
        note = _NO_VARIANCE if np.isnan(posterior).any() else ""
        return np.sqrt(sigma2 * norms), posterior, note

    def _functionals(
        self, kernel: Kernel, effects: Sequence[Effect], *, prior: bool
    ) -> Functionals:
        namespace, p = self.known.namespace, len(effects)
        a, phi = self.nothing(p)
        variance = np.zeros(p)
        slopes = [i for i, each in enumerate(effects) if each.kind == "slope"]
        X, shares = self.placed(self.X), self.placed(self.shares)
        if slopes:
            columns = np.array([effects[i].column for i in slopes])  # type: ignore[union-attr]
            units = np.array([effects[i].unit for i in slopes])  # type: ignore[union-attr]
            coefficients, own = mean_slopes(kernel, X, self.known.X, shares, columns, prior=prior)
            places = namespace.indices(np.array(slopes), a)
            a[:, places] = coefficients * self.placed(units)
            linear = slopes_of_unpenalised(self.model, columns)
            phi[:, places] = linear * self.placed(units * float(np.sum(self.shares)))
            if own is not None:
                variance[slopes] = own * units**2
        for i, each in enumerate(effects):
            if each.kind == "slope":
                continue
            high, low = map(self.placed, each.rows(self.X))  # type: ignore[union-attr]
            column, own = mean_difference(
                kernel, high, low, self.known.X, (shares, shares), prior=prior
            )
            a[:, i] = column[:, 0]
            phi[:, i] = self.difference_of_basis(each, shares, shares)
            variance[i] = 0.0 if own is None else own[0]
        return Functionals(a, phi, variance if prior else None)


class LinkedErrors(_ErrorsOfEffects):
    """Errors of effects on probabilities, to first order in the decision values.

    An effect on the probability of class c changes with the decision values of every column t;
    with L_ct the weights of the labels of column t, its variance is Σ_ts Σ_ts L_ctᵀW⁻¹L_cs, Σ the
    covariance of the labels' residuals.
    """

    def of(self, effects: Sequence[Effect]) -> Errors:
        assert self.curves is not None
        t = int(self.like.shape[1])
        outputs = 1 if t == 1 else t
        n, p = int(self.like.shape[0]), len(effects)
        total, noise = np.zeros((n, p, outputs, t)), _Noise(self.known)
        for member in _members(self.model):
            of_member = posterior_of(
                self.model, member.alpha, self.known, kernel=member.kernel, copies=1
            )
            noise.add(member, of_member)
            for column in member.columns:
                for output in range(outputs):
                    each = self._functionals(member.kernel, effects, output, int(column))
                    total[:, :, output, column] = to_numpy(
                        of_member.weights_of_targets(each.a, each.phi)
                    )
        products = np.einsum("npct,npcs,n->pcts", total, total, 1.0 / noise.weights, optimize=True)
        variances = np.einsum("pcts,ts->pc", products, noise.covariance())
        return np.sqrt(np.maximum(variances, 0.0)), None, _PROBABILITIES

    def _functionals(
        self, kernel: Kernel, effects: Sequence[Effect], output: int, column: int
    ) -> Functionals:
        """Every effect on one probability, as a functional of the decision values of one column."""
        assert self.curves is not None
        namespace, p = self.known.namespace, len(effects)
        a, phi = self.nothing(p)
        slopes = [i for i, each in enumerate(effects) if each.kind == "slope"]
        if slopes:
            columns = np.array([effects[i].column for i in slopes])  # type: ignore[union-attr]
            units = np.array([effects[i].unit for i in slopes])  # type: ignore[union-attr]
            at = self._curve(self.X)
            gradients = to_numpy(self.model._gradients(self._rows(self.X))).astype(np.float64)
            bends = np.einsum(
                "r,rs,rjs->rj", self.shares, at.second[:, output, column], gradients[:, columns]
            )
            X, shares = self.placed(self.X), self.placed(self.shares * at.first[:, output, column])
            coefficients, _ = mean_slopes(kernel, X, self.known.X, shares, columns, prior=False)
            # The slope of a curve of f: where f itself changes, so does the slope of the curve.
            coefficients = coefficients + weighted_values(
                kernel, X, self.known.X, self.placed(bends)
            )
            places = namespace.indices(np.array(slopes), a)
            a[:, places] = coefficients * self.placed(units)
            phi[:, places] = self.basis_of(self.X, self.placed(bends * units))
            linear = slopes_of_unpenalised(self.model, columns)
            phi[:, places] += linear * namespace.xp.sum(shares) * self.placed(units)
        for i, each in enumerate(effects):
            if each.kind == "slope":
                continue
            pair = each.rows(self.X)  # type: ignore[union-attr]
            weights = [
                self.placed(self.shares * self._curve(rows).first[:, output, column])
                for rows in pair
            ]
            high, low = map(self.placed, pair)
            coefficients, _ = mean_difference(
                kernel, high, low, self.known.X, (weights[0], weights[1]), prior=False
            )
            a[:, i] = coefficients[:, 0]
            phi[:, i] = self.difference_of_basis(each, *weights)
        return Functionals(a, phi)

    def _curve(self, rows: np.ndarray) -> Any:
        assert self.curves is not None
        decisions = to_numpy(self.model._decision_of_checked(self._rows(rows))).astype(np.float64)
        return probability_slopes(decisions, self.curves)

    def _rows(self, rows: np.ndarray) -> Array:
        like = self.model.X_fit_
        return self.known.namespace.asarray(rows, like)
