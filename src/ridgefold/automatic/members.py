"""The models that a prediction is the weighted sum of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from sklearn.base import clone

from ridgefold.automatic.models_of_numbers import in_coordinates, slopes_through
from ridgefold.errors import ModelFileError
from ridgefold.estimators.facts import to_numpy
from ridgefold.estimators.kernel_ridge_cv import LSSVMRegressorCV
from ridgefold.estimators.ls_svm import LSSVMRegressor
from ridgefold.estimators.partitioned import PartitionedLSSVMRegressor
from ridgefold.estimators.partitioned_base import PartitionedModel
from ridgefold.estimators.saving import unpack_estimator
from ridgefold.estimators.stored_values import Floats
from ridgefold.kernels import Kernel
from ridgefold.linalg import namespace_of
from ridgefold.linalg.namespace import on_device
from ridgefold.storage.annotations import check_fields, matches


@dataclass(frozen=True)
class Member:
    """A model of numbers with its weights."""

    words: str
    """What it is."""
    model: Any
    """A fitted :class:`LSSVMRegressor` (linear), :class:`LSSVMRegressorCV` (of all rows) or
    :class:`PartitionedLSSVMRegressor` (in cells)."""
    coordinates: Kernel | None
    """The learned kernel in whose coordinates the model takes its rows; None for rows as they
    are."""
    weights: np.ndarray
    """What its predictions are multiplied by, one a target (of classes, one a column)."""
    places: np.ndarray | None = None
    """Numbers of the rows that the model was fitted to, in order; None for all rows."""

    @property
    def in_cells(self) -> bool:
        return isinstance(self.model, PartitionedModel)

    @property
    def kernel(self) -> Any:
        """The kernel; of cells, which have widths of their own, the one whose metric they share."""
        if self.in_cells:
            return self.model.kernels_[0] if self.coordinates is None else self.coordinates
        return self.model.kernel_

    @property
    def ridges(self) -> np.ndarray:
        """The ridge, or one for each cell."""
        return np.ravel(self.model.alpha_ if self.in_cells else self.model._ridge()).astype(float)

    def predict(self, X: np.ndarray, device: str | None = None) -> np.ndarray:
        """The weighted predictions of rows of numbers, shape (n, t)."""
        values = self._values(self.model.predict(on_device(self._rows(X), device)))
        return np.asarray(values * self.weights)

    def placed(self, X: np.ndarray) -> Any:
        """Rows of numbers as the model takes them, in its array library."""
        rows, like = self._rows(X), self.model.X_fit_
        return namespace_of(like).asarray(rows, like)

    def gradients(self, X: np.ndarray) -> np.ndarray:
        """The slopes of the weighted predictions along the columns of numbers, (n, d, t)."""
        slopes = to_numpy(self.model._gradients(self.placed(X))).astype(np.float64)
        return np.asarray(slopes_through(self.coordinates, X, slopes) * self.weights)

    def left_out(
        self, rows: np.ndarray, fold_of: np.ndarray, *, one_by_one: bool
    ) -> Callable[[np.ndarray], np.ndarray]:
        """The same for changed versions of training rows, by models that have not seen them.

        Models of all rows keep those without a fold. Rows are left out of their cells one by one;
        where rows belong together, the cells are fitted again without each fold.
        """
        if self.in_cells and not one_by_one:
            return self._by_cells_fitted_again(rows, fold_of)
        if self.places is not None:
            return self._not_among_some_rows(rows, self.places)
        without, _ = self.model._left_out(rows)
        return lambda X: self._values(without(self._rows(X))) * self.weights

    def _not_among_some_rows(
        self, rows: np.ndarray, places: np.ndarray
    ) -> Callable[[np.ndarray], np.ndarray]:
        """Rows of the fit are predicted without their fold; the others it has not seen."""
        seen = np.flatnonzero(np.isin(rows, places))
        without = None
        if len(seen):
            without, _ = self.model._left_out(np.searchsorted(places, rows[seen]))

        def predict(X: np.ndarray) -> np.ndarray:
            values = self._values(self.model.predict(self._rows(X)))
            if without is not None:
                values[seen] = self._values(without(self._rows(X[seen])))
            return np.asarray(values * self.weights)

        return predict

    def _by_cells_fitted_again(
        self, rows: np.ndarray, fold_of: np.ndarray
    ) -> Callable[[np.ndarray], np.ndarray]:
        weights, models = self.model._weights, {}
        for k in np.unique(fold_of[rows]).tolist():
            kept = np.flatnonzero(fold_of != k)
            again = clone(self.model).set_params(n_partitions=self.model.n_partitions_)
            models[k] = again.fit(
                np.asarray(self.model.X_fit_[kept]),
                np.asarray(self.model.y_fit_[kept]),
                None if weights is None else weights[kept],
            )

        def predict(X: np.ndarray) -> np.ndarray:
            out = np.empty((len(X), len(self.weights)))
            for k, model in models.items():
                here = np.flatnonzero(fold_of[rows] == k)
                out[here] = self._values(model.predict(self._rows(X[here]))) * self.weights
            return out

        return predict

    def with_folds(self) -> Callable[[np.ndarray], np.ndarray] | None:
        """Weighted predictions (n, l, t) of the models without each fold; None of cells."""
        intervals = None if self.in_cells else self.model.intervals_
        if intervals is None or intervals.method != "cv+":
            return None
        decide = self.model._with_folds()

        def predict(X: np.ndarray) -> np.ndarray:
            _, without = decide(self._rows(X))
            return np.asarray(without * self.weights[None, None, :])

        return predict

    def is_outside(self, X: np.ndarray) -> np.ndarray:
        """Which rows are far from those of the fit, where the model takes them."""
        return np.asarray(self.model.is_outside(self._rows(X)))

    def rows_of(self, X: np.ndarray) -> np.ndarray:
        """Rows of numbers where the model measures their distances."""
        return np.asarray(self._rows(X), dtype=np.float64)

    def _rows(self, X: np.ndarray) -> np.ndarray:
        return in_coordinates(self.coordinates, X)

    def _values(self, predicted: Any) -> np.ndarray:
        values = np.asarray(namespace_of(predicted).to_numpy(predicted), dtype=np.float64)
        return values.reshape(len(values), -1)


def packed_members(members: tuple[Member, ...]) -> dict[str, Any]:
    """Entries of a state: the models by number, and what is said of them."""
    said = [
        {
            "words": each.words,
            "coordinates": each.coordinates,
            "weights": each.weights,
            "places": each.places,
        }
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
        "places": np.ndarray | None,
    }
    for k, said in enumerate(state["members"]):
        where = f"model.state.members[{k}]"
        check_fields(where, said, fields, {})
        if not matches(said["weights"], _WEIGHTS) or said["weights"].shape != (n_targets,):
            raise ModelFileError(f"{where}.weights must be one number >= 0 a target")
        model = unpack_estimator(state[f"model_{k}"])
        if type(model) not in _MODELS:
            raise ModelFileError(f"model.state.model_{k} must be a model of numbers")
        places = said["places"]
        if places is not None and (
            places.dtype.kind != "i"
            or places.shape != (model.X_fit_.shape[0],)
            or places[0] < 0
            or np.any(np.diff(places) <= 0)
        ):
            raise ModelFileError(f"{where}.places must be rising numbers, one for each row")
        members.append(Member(said["words"], model, said["coordinates"], said["weights"], places))
    return tuple(members)


_MODELS = (LSSVMRegressor, LSSVMRegressorCV, PartitionedLSSVMRegressor)
_WEIGHTS = Annotated[np.ndarray, Floats((1,), least=0.0)]
