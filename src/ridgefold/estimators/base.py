"""What all exact models share: describe the problem, plan, run, keep the result, predict."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import scipy.sparse
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ridgefold.errors import InvalidInputError, ModelFileError, UnsupportedInputError
from ridgefold.estimators.facts import ModelFacts, numbered_columns, to_numpy
from ridgefold.estimators.fixed_columns import (
    WithFixedColumns,
    numbers_of_fixed,
    require_fixed_effects,
)
from ridgefold.estimators.given_work import GivenModelWork
from ridgefold.estimators.kept_targets import require_targets
from ridgefold.estimators.model_surroundings import KnowsItsSurroundings
from ridgefold.estimators.models_without_rows import LeavesRowsOut, keeps_rows
from ridgefold.estimators.posterior import (
    factor_record,
    forget_posterior,
    in_double,
    without_posterior,
)
from ridgefold.estimators.saving import Storable
from ridgefold.estimators.slopes import WithSlopes
from ridgefold.estimators.stored_values import Floats, require_kernel
from ridgefold.estimators.validation import (
    check_new_rows,
    out_of_memory_is_a_budget_error,
)
from ridgefold.exact import Fit, SystemWork, compress, predict_dual, predict_primal
from ridgefold.kernels import (
    PRECOMPUTED,
    CallableKernel,
    Kernel,
    KernelGram,
    KernelSettings,
    PrecomputedGram,
    resolve_kernel,
    takes_sparse_and_negative,
)
from ridgefold.linalg import Array, namespace_of
from ridgefold.options import TakesOptions, compute_of
from ridgefold.planning import (
    Explanation,
    available_resources,
    device_of,
    explain_plans,
    explain_run,
)
from ridgefold.records import FittedModel, FixedEffects, Plan, Problem, RunRecord
from ridgefold.records.kinds import Limit
from ridgefold.runtime import Step, perform_all
from ridgefold.runtime.training_data import TrainingData, seconds_left
from ridgefold.selection.describe import TrainingGram, describe
from ridgefold.selection.fit_steps import Solve
from ridgefold.solvers import RidgeSystem
from ridgefold.storage.annotations import check_fields, matches

_STATE = {
    "kernel": Kernel | str,
    "rows": np.ndarray | scipy.sparse.csr_matrix | scipy.sparse.csr_array,
    "model": FittedModel,
    "one_target": bool,
    "column_names": list[str] | None,
    "plan": Plan,
}
_CERTIFICATE = Annotated[np.ndarray, Floats((1,), least=0.0, infinite=True, unknown=True)]


class KernelModel(
    WithFixedColumns, WithSlopes, LeavesRowsOut, KnowsItsSurroundings, TakesOptions, Storable
):
    """Base of the exact kernel models; subclasses add their arguments, `fit` and `predict`."""

    alpha: Any
    kernel: Any
    gamma: float | None
    kernel_params: dict[str, Any] | None
    fit_intercept: bool
    fixed: Any = None
    memory_budget: Any
    time_budget: float | None
    compute: Any

    _without_use: ClassVar[Mapping[str, str]] = {
        "compute.device": "an exact model computes where X is, so pass a tensor that is there",
        "compute.n_jobs": "it makes one fit",
        "compute.executor": "it makes one fit",
        "compute.run_dir": "it makes one fit",
    }
    _nature: str
    """What the model is, in words."""

    @property
    def _weights(self) -> np.ndarray | None:
        """Weights of the rows of the fit, wherever the fit was made."""
        weights = getattr(self, "weights_fit_", None)
        return None if weights is None else to_numpy(weights)

    # -- fitting -------------------------------------------------------------------------

    def _steps(self) -> list[Step[Problem, Any]]:
        """What a fit does, in order; `explain` goes through the same list."""
        return [Solve(compute_of(self).solver)]

    def _fit_given(
        self, data: TrainingData, targets: Array, classes: np.ndarray | None = None
    ) -> GivenModelWork:
        """Fit to `targets` (n, t) with this model's own kernel and alpha."""
        work = GivenModelWork(self, data, targets, classes)
        _, records = perform_all(self._steps(), work.problem(), work)
        self.run_record_ = RunRecord(records)
        return work

    def _solve(self, work: GivenModelWork) -> None:
        self._solve_with(work.data, work.targets, work.gram, work.alphas)

    # Overflow needs no warning of NumPy's: what comes out is checked, and raises a typed error.
    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def _solve_with(
        self,
        data: TrainingData,
        targets: Array,
        gram: TrainingGram,
        alphas: np.ndarray,
        further: Array | None = None,
        *,
        observed: Array | None = None,
    ) -> FittedModel | None:
        """Plan, run, and set the fitted attributes.

        `further` targets, a multiple of as many columns with the same alphas, are solved by the
        same factorisation; their model is returned. `observed` are the targets as they were given,
        where others are fitted: standard errors are of these.
        """
        self._require_room_for_fixed(data)
        errors, t = self._fixed_errors(data, gram, alphas), int(targets.shape[1])
        parts, ridges = [targets], alphas
        if further is not None:
            parts.append(further)
            ridges = np.tile(alphas, 1 + int(further.shape[1]) // t)
        asked = len(ridges)
        if errors is not None:
            parts.append(targets if observed is None else observed)
            parts.append(errors.targets())
            ridges = np.concatenate([ridges, alphas, errors.ridges()])
        everything = targets if len(parts) == 1 else data.namespace.xp.concat(parts, axis=1)
        problem = describe(data, everything, gram, ridges, bias=self.fit_intercept)
        system = RidgeSystem(
            gram=gram,
            targets=everything,
            alphas=ridges,
            weights=data.weights,
            bias=problem.bias,
            tolerance=self._tolerance(data),
        )
        resources = available_resources(
            self.memory_budget, seconds_left(self.time_budget, data), device_of(data.like)
        )
        work = SystemWork(system, resources)
        _, record = Fit(compute_of(self).solver).perform(problem, work)
        model = work.model
        assert model is not None
        self.plan_ = record.plan
        self.run_record_ = RunRecord((record,))
        self.kernel_ = gram.kernel if isinstance(gram, KernelGram) else PRECOMPUTED
        self.X_fit_ = data.X
        self.weights_fit_ = data.weights
        forget_posterior(self)
        self.__dict__.pop("compression_bound_", None)
        std = None
        if errors is not None:
            own = model.dual_coef[:, asked : asked + t]
            std = errors.standard_errors(model.dual_coef[:, asked + t :], parts[-2], own)
        self._set_fixed(errors, std)
        if len(parts) == 1:
            self._model = model
            return None
        self._model = _columns(model, slice(0, t))
        return None if further is None else _columns(model, slice(t, asked))

    def _tolerance(self, data: TrainingData) -> float:
        tol = compute_of(self).tol
        if tol is None:
            return 1e-3 if self._single(data) else 1e-10
        return float(tol)

    @staticmethod
    def _single(data: TrainingData) -> bool:
        return data.namespace.itemsize(data.like) == 4

    @np.errstate(over="ignore", invalid="ignore")
    def _gram(self, X: Array) -> TrainingGram:
        """The Gram matrix of training rows, as a source."""
        if isinstance(self.kernel, str) and self.kernel == PRECOMPUTED:
            self._fixed_columns()
            return PrecomputedGram(X)
        kernel = resolve_kernel(self.kernel, self._settings(), int(X.shape[1]))
        return KernelGram(kernel, X, fixed=self._fixed_columns())

    def _settings(self) -> KernelSettings:
        """Arguments of a named kernel."""
        return KernelSettings(gamma=self.gamma, parameters=self.kernel_params)

    # -- explanation ---------------------------------------------------------------------

    def explain(self) -> Explanation:
        """How the fit was computed: the methods chosen, those not and why, and the cost.

        Once standard deviations or standard errors were asked for, also the factor that they need.
        Prints as text; `to_json()` gives JSON, and notebooks show it as HTML.
        """
        check_is_fitted(self, "plan_")
        if hasattr(self, "run_record_"):
            return explain_run(RunRecord((*self.run_record_.steps, *factor_record(self))))
        return self._explained_fit()

    def _explained_fit(self) -> Explanation:
        """The fit alone, whatever was asked of the model afterwards."""
        if hasattr(self, "run_record_"):
            return explain_run(self.run_record_)
        plans = [("choosing kernel and alpha", "cv_plan_"), ("fitting", "plan_")]
        return explain_plans([(w, getattr(self, a)) for w, a in plans if hasattr(self, a)])

    def report_facts(self) -> ModelFacts:
        """What a report may know of the fitted model."""
        check_is_fitted(self, "X_fit_")
        targets = getattr(self, "y_fit_", None)
        return ModelFacts(
            name=type(self).__name__,
            nature=self._nature,
            rows=self.X_fit_,
            n_rows=int(self.X_fit_.shape[0] if targets is None else targets.shape[0]),
            n_targets=int(self._model.intercept.shape[0]),
            column_names=numbered_columns(
                getattr(self, "feature_names_in_", None), int(self.n_features_in_)
            ),
            targets=None if targets is None else to_numpy(targets),
            kernels=(self.kernel_,),
            alphas=np.ravel(self._ridge()).astype(np.float64),
            bias=bool(self.fit_intercept),
            fixed=numbers_of_fixed(self),
            predict=self.predict,
            compressed=getattr(self, "compression_bound_", None) is not None,
            effects=self._effects_of_some_rows,
            run=getattr(self, "run_record_", None),
            explain=self._explained_fit,
            importances=self._importances_for_facts(),
            effect_curves=self._curves_for_facts if keeps_rows(self) else None,
            is_outside=self.is_outside if keeps_rows(self) else None,
        )

    def _ridge(self) -> Any:
        """The ridge of the fit: one number, or one for each target."""
        return self.alpha

    # -- prediction ----------------------------------------------------------------------

    @staticmethod
    def _given_back(values: Array, X: Any) -> Array:
        """Values for the rows of X, where these are: there they were computed."""
        return values

    @out_of_memory_is_a_budget_error("predicting")
    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def _decision(self, X: Any) -> Array:
        """f(x) for every row and target, shape (n, t)."""
        check_is_fitted(self, "X_fit_")
        return self._decision_of_checked(self._checked_rows(X))

    def _decision_of_checked(self, X: Array) -> Array:
        return self._predictor()(X, self._model)

    def _checked_rows(self, X: Any) -> Array:
        return check_new_rows(self, X, self.X_fit_)

    def _predictor(self) -> Callable[[Array, FittedModel], Array]:
        """f(x) of checked rows for any model on the same training rows, which are prepared once."""
        kernels, like = (self.kernel_, *self._further_kernels()), self._model.intercept
        budget = available_resources(self.memory_budget, device=device_of(like)).memory_bytes
        prepared: dict[int, KernelGram | PrecomputedGram] = {}

        def of_one(place: int, X: Array, model: FittedModel) -> Array:
            kernel = kernels[place]
            fixed = self._fixed_part(X, model.fixed_coef)
            if model.primal_coef is not None:
                assert isinstance(kernel, Kernel)
                return predict_primal(kernel, X, model.primal_coef, model.intercept, budget) + fixed
            if place not in prepared:
                prepared[place] = (
                    KernelGram(kernel, self.X_fit_)
                    if isinstance(kernel, Kernel)
                    else PrecomputedGram(self.X_fit_)
                )
            return (
                predict_dual(prepared[place], X, model.dual_coef, model.intercept, budget) + fixed
            )

        def predict(X: Array, model: FittedModel) -> Array:
            values = of_one(0, X, model)
            for place, further in enumerate(model.further, start=1):
                values = values + of_one(place, X, further)
            return values

        return predict

    def _further_kernels(self) -> tuple[Kernel | str, ...]:
        """Those of the other members of a stack, in the order of `FittedModel.further`."""
        return ()

    @out_of_memory_is_a_budget_error("compress")
    def compress(self, n_centers: int, *, tol: float = 0.0) -> Self:
        """A model that predicts from few training rows, with a bound on what that loses.

        Parameters
        ----------
        n_centers : int
            At most this many training rows are kept.
        tol : float, default=0
            Keep fewer once the bound below is at most this.

        Returns
        -------
        model : estimator of the same class
            Its `compression_bound_` says: for every x, the prediction (for classifiers, the
            decision value) differs from this model's by at most
            ``compression_bound_ * sqrt(k(x, x))``, one number a target.
        """
        check_is_fitted(self, "X_fit_")
        if self._model.further:
            raise UnsupportedInputError(
                "compress takes a model of one kernel, and this one is a stack of "
                f"{1 + len(self._model.further)}: fit without search.stack=True"
            )
        if not isinstance(self.kernel_, Kernel):
            raise InvalidInputError(
                'a model with kernel="precomputed" keeps no training rows to choose centres from'
            )
        if not (self.kernel_.semidefinite or isinstance(self.kernel_, CallableKernel)):
            raise UnsupportedInputError(
                "compress needs a positive semi-definite kernel, which "
                f"{type(self.kernel_).__name__} is not known to be: its bound would not hold"
            )
        if not isinstance(n_centers, (int, np.integer)) or n_centers < 1:
            raise InvalidInputError(f"n_centers must be a whole number >= 1, got {n_centers!r}")
        if not isinstance(tol, (int, float)) or not 0 <= tol < math.inf:
            raise InvalidInputError(f"tol must be a finite number >= 0, got {tol!r}")
        gram = KernelGram(self.kernel_, in_double(self.X_fit_))
        dual, primal = self._model.dual_coef, self._model.primal_coef
        small = compress(gram, dual, int(n_centers), tol)
        bound = small.bound
        if primal is not None:  # predictions are of w, Φᵀa but for rounding
            namespace, double = gram.namespace, gram.namespace.double()
            gap = namespace.astype(primal, double)
            gap = gap - gram.features().T @ namespace.astype(dual, double)
            bound = bound + np.linalg.norm(namespace.to_numpy(gap), axis=0)
        model = copy.copy(self)
        if hasattr(model, "intervals_"):
            model.intervals_ = None
        model.__dict__.pop("weights_fit_", None)  # of rows that it does not keep
        rows = small.centres
        model.X_fit_ = (
            self.X_fit_[rows]
            if scipy.sparse.issparse(self.X_fit_)
            else namespace_of(self.X_fit_).take_rows(self.X_fit_, rows)
        )
        model._model = type(self._model)(
            small.dual_coef, self._model.intercept, fixed_coef=self._model.fixed_coef
        )
        model._set_coefficients(self.dual_coef_.ndim == 1)
        model.compression_bound_ = float(bound[0]) if self.dual_coef_.ndim == 1 else bound
        return model

    def _set_coefficients(self, one_target: bool) -> None:
        """`dual_coef_` and `intercept_` in the shape of the targets that were given."""
        model = self._model
        self.dual_coef_ = model.dual_coef[:, 0] if one_target else model.dual_coef
        self.intercept_ = model.intercept[0] if one_target else model.intercept
        self._set_fixed_coefficients(one_target)

    # -- model files ---------------------------------------------------------------------

    _further_state: Mapping[str, Any] = {}
    """What subclasses store beside the values of every kernel model, with its types."""
    _optional_state: Mapping[str, tuple[str, Any]] = {
        "compression_bound": (
            "compression_bound_",
            Limit | Annotated[np.ndarray, Floats((1,), least=0.0, infinite=True)],
        ),
        "targets": ("y_fit_", np.ndarray),
        "weights": ("weights_fit_", Annotated[np.ndarray, Floats((1,), least=0.0)] | None),
        "run_record": ("run_record_", RunRecord),
        "fixed": ("fixed_effects_", FixedEffects),
    }
    """What a file may lack, as older ones do: the attribute that it becomes, and its type."""

    def _state(self) -> dict[str, Any]:
        names = getattr(self, "feature_names_in_", None)
        state = {
            "kernel": self.kernel_,
            "rows": self.X_fit_,
            "model": self._model,
            "one_target": self.dual_coef_.ndim == 1,
            "column_names": None if names is None else [str(name) for name in names],
            "plan": self.plan_,
        }
        for name, (attribute, _) in self._optional_state.items():
            if hasattr(self, attribute):
                state[name] = getattr(self, attribute)
        return state

    def _restore(self, state: Mapping[str, Any]) -> None:
        optional = {name: kind for name, (_, kind) in self._optional_state.items()}
        check_fields("model.state", state, {**_STATE, **self._further_state}, optional)
        self.kernel_, self.X_fit_, self._model = state["kernel"], state["rows"], state["model"]
        self.plan_ = state["plan"]
        self._require_consistent()
        self.n_features_in_ = int(self.X_fit_.shape[1])
        names = state["column_names"]
        if names is not None:
            if len(names) != self.n_features_in_:
                raise ModelFileError("model.state.column_names must name every column")
            self.feature_names_in_ = np.asarray(names, dtype=object)
        for name, (attribute, _) in self._optional_state.items():
            if name in state:
                setattr(self, attribute, state[name])
        require_fixed_effects(state.get("fixed"), self._model, self.n_features_in_)
        if state["one_target"] and self._model.intercept.shape[0] != 1:
            raise ModelFileError("model.state.one_target is true of a model of several targets")
        self._set_coefficients(state["one_target"])
        compressed = "compression_bound" in state
        n_rows = None if compressed else int(self.X_fit_.shape[0])
        weights = state.get("weights")
        if weights is not None and n_rows is not None and len(weights) != n_rows:
            raise ModelFileError("model.state.weights must hold one number for each row")
        if "targets" in state:
            require_targets(state, n_rows, int(self._model.intercept.shape[0]))

    def _require_consistent(self) -> None:
        """Rows and coefficients are finite numbers of one type, and their shapes fit together."""
        for kernel, model in zip(
            (self.kernel_, *self._further_kernels()),
            (self._model, *self._model.further),
            strict=True,
        ):
            self._require_one_consistent(kernel, model)

    def _require_one_consistent(self, kernel: Kernel | str, model: FittedModel) -> None:
        rows = self.X_fit_
        numbers = rows.data if scipy.sparse.issparse(rows) else rows
        arrays = [numbers, model.dual_coef, model.intercept]
        arrays += [] if model.primal_coef is None else [model.primal_coef]
        if not all(
            type(a) is np.ndarray
            and a.dtype in (np.float32, np.float64)
            and a.dtype == numbers.dtype
            and np.all(np.isfinite(a))
            for a in arrays
        ):
            raise ModelFileError("model.state must hold finite numbers of one type")
        n, t = rows.shape[0], self._model.intercept.size
        good = (
            rows.ndim == 2
            and min(n, rows.shape[1], t) > 0
            and model.dual_coef.shape == (n, t)
            and model.intercept.shape == (t,)
        )
        if isinstance(kernel, str):
            good = good and kernel == PRECOMPUTED and model.primal_coef is None
            good = good and isinstance(rows, np.ndarray) and rows.shape[0] == rows.shape[1]
        elif good and model.primal_coef is not None:
            width = kernel.feature_dimension(int(rows.shape[1]))
            good = model.primal_coef.shape == (width, t)
        certificate = model.certificate
        if certificate is not None:
            good = good and matches(certificate, _CERTIFICATE) and certificate.shape == (t,)
        if not good:
            raise ModelFileError("model.state holds arrays whose shapes do not fit together")
        if isinstance(kernel, Kernel):
            require_kernel(kernel, rows, "model.state.kernel")

    def __getstate__(self) -> dict[str, Any]:
        """Without what can be computed again."""
        state = without_posterior(super().__getstate__())
        state.pop("_known_surroundings", None)
        return state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        sparse, negative = takes_sparse_and_negative(self.kernel)
        tags.input_tags.sparse = sparse
        tags.input_tags.positive_only = not negative
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == PRECOMPUTED
        return tags


def _columns(model: FittedModel, columns: slice) -> FittedModel:
    """Some of the targets of a model, as arrays of their own."""
    namespace = namespace_of(model.dual_coef)
    primal, certificate = model.primal_coef, model.certificate
    return FittedModel(
        namespace.copy(model.dual_coef[:, columns]),
        namespace.copy(model.intercept[columns]),
        None if primal is None else namespace.copy(primal[:, columns]),
        None if certificate is None else certificate[columns],
        fixed_coef=None
        if model.fixed_coef is None
        else namespace.copy(model.fixed_coef[:, columns]),
    )
