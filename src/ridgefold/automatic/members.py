"""The models that a prediction is the weighted sum of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from sklearn.base import clone

from ridgefold.automatic.models_of_numbers import in_coordinates
from ridgefold.errors import ModelFileError
from ridgefold.estimators.kernel_ridge_cv import LSSVMRegressorCV
from ridgefold.estimators.partitioned import PartitionedLSSVMRegressor
from ridgefold.estimators.saving import unpack_estimator
from ridgefold.estimators.stored_values import Floats
from ridgefold.kernels import Kernel
from ridgefold.linalg import namespace_of
from ridgefold.linalg.namespace import on_device
from ridgefold.records import FittedModel
from ridgefold.storage.annotations import check_fields, matches


@dataclass(frozen=True)
class Member:
    """A model of numbers with its weights."""

    words: str
    """What it is."""
    model: Any
    """A fitted :class:`LSSVMRegressorCV` or :class:`PartitionedLSSVMRegressor`."""
    coordinates: Kernel | None
    """The learned kernel in whose coordinates the model takes its rows; None for rows as they
    are."""
    weights: np.ndarray
    """What its predictions are multiplied by, one a target (of classes, one a column)."""

    @property
    def in_cells(self) -> bool:
        return isinstance(self.model, PartitionedLSSVMRegressor)

    def predict(self, X: np.ndarray, device: str | None = None) -> np.ndarray:
        """The weighted predictions of rows of numbers, shape (n, t)."""
        values = self._values(self.model.predict(on_device(self._rows(X), device)))
        return values * self.weights

    def predict_without(self, fold: np.ndarray, X: np.ndarray, k: int) -> np.ndarray:
        """The same, by the model that has not seen the rows of fold `k`, which are `fold`.

        Of one model of all rows these models are kept; cells are fitted again.
        """
        if self.in_cells:
            kept = np.setdiff1d(np.arange(len(self.model.X_fit_)), fold)
            weights = self.model._weights
            again = clone(self.model).set_params(n_partitions=self.model.n_partitions_)
            again.fit(
                np.asarray(self.model.X_fit_[kept]),
                np.asarray(self.model.y_fit_[kept]),
                None if weights is None else weights[kept],
            )
            return self._values(again.predict(self._rows(X))) * self.weights
        intervals = self.model.intervals_
        t = len(self.weights)
        columns = slice(k * t, (k + 1) * t)
        kept_models = intervals.model
        without = FittedModel(
            kept_models.dual_coef[:, columns],
            kept_models.intercept[columns],
            None if kept_models.primal_coef is None else kept_models.primal_coef[:, columns],
        )
        rows = namespace_of(self.model.X_fit_).asarray(self._rows(X), self.model.X_fit_)
        return self._values(self.model._predictor()(rows, without)) * self.weights

    def _rows(self, X: np.ndarray) -> np.ndarray:
        return in_coordinates(self.coordinates, X)

    def _values(self, predicted: Any) -> np.ndarray:
        values = np.asarray(namespace_of(predicted).to_numpy(predicted), dtype=np.float64)
        return values.reshape(len(values), -1)


def packed_members(members: tuple[Member, ...]) -> dict[str, Any]:
    """Entries of a state: the models by number, and what is said of them."""
    said = [
        {"words": each.words, "coordinates": each.coordinates, "weights": each.weights}
        for each in members
    ]
    return {"members": said, **{f"model_{k}": each.model for k, each in enumerate(members)}}


def unpacked_members(state: Mapping[str, Any], n_targets: int) -> tuple[Member, ...]:
    """The members that `packed_members` stored, checked."""
    members: list[Member] = []
    fields = {
        "words": str,
        "coordinates": Kernel | None,
        "weights": np.ndarray,
    }
    for k, said in enumerate(state["members"]):
        where = f"model.state.members[{k}]"
        check_fields(where, said, fields, {})
        if not matches(said["weights"], _WEIGHTS) or said["weights"].shape != (n_targets,):
            raise ModelFileError(f"{where}.weights must be one number >= 0 a target")
        model = unpack_estimator(state[f"model_{k}"])
        if type(model) not in (LSSVMRegressorCV, PartitionedLSSVMRegressor):
            raise ModelFileError(f"model.state.model_{k} must be a model of numbers")
        members.append(Member(said["words"], model, said["coordinates"], said["weights"]))
    return tuple(members)


_WEIGHTS = Annotated[np.ndarray, Floats((1,), least=0.0)]
