"""Estimators to model files and back: `model.save(path)`, `ridgefold.load(path)`."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ridgefold.errors import (
    InvalidInputError,
    LeftOutWarning,
    ModelFileError,
    UnsupportedInputError,
)
from ridgefold.estimators.facts import ModelFacts
from ridgefold.estimators.stored_arguments import OF_WORK, checked_arguments, storable_argument
from ridgefold.linalg import namespace_of
from ridgefold.linalg.namespace import is_foreign_array
from ridgefold.notices import warn
from ridgefold.options import OptionObject
from ridgefold.storage.annotations import check_fields
from ridgefold.storage.model_file import named_in_errors, read_model, write_model
from ridgefold.storage.tree import Packer

STORABLE: Mapping[str, str] = {
    "KernelRidge": "ridgefold.estimators.kernel_ridge",
    "KernelRidgeCV": "ridgefold.estimators.kernel_ridge_cv",
    "LSSVMClassifier": "ridgefold.estimators.ls_svm",
    "LSSVMClassifierCV": "ridgefold.estimators.ls_svm_cv",
    "LSSVMRegressor": "ridgefold.estimators.ls_svm",
    "LSSVMRegressorCV": "ridgefold.estimators.kernel_ridge_cv",
    "PartitionedKernelRidge": "ridgefold.estimators.partitioned",
    "PartitionedLSSVMClassifier": "ridgefold.estimators.partitioned",
    "PartitionedLSSVMRegressor": "ridgefold.estimators.partitioned",
    "RidgefoldClassifier": "ridgefold.automatic.classifier",
    "RidgefoldRegressor": "ridgefold.automatic.regressor",
}
"""Every estimator that a model file may name, and where it is defined."""
SINGLE = ("rows", "model", "held_out", "intervals", "targets")
"""Entries of a state that may be rounded to float32: those whose size grows with the data."""


class Storable(BaseEstimator):
    """An estimator that can be kept in a model file.

    A subclass gives its fitted values by name (`_state`) and takes them back, checked
    (`_restore`); its arguments are stored here.
    """

    _interval_entries: tuple[str, ...] = ("intervals",)
    """Entries of the state that only `predict_interval` needs."""

    def _state(self) -> dict[str, Any]:
        """Fitted values that cannot be computed from the others."""
        raise NotImplementedError

    def _restore(self, state: Mapping[str, Any]) -> None:
        """Check stored values, and become the estimator that they came from."""
        raise NotImplementedError

    def report_facts(self) -> ModelFacts:
        """What a report may know of the fitted model."""
        raise NotImplementedError

    def predict(self, X: Any) -> Any:
        """Predictions for the rows of X."""
        raise NotImplementedError

    def save(
        self,
        path: str | PathLike[str],
        *,
        dtype: str | None = None,
        intervals: bool = True,
        notes: Mapping[str, str] | None = None,
    ) -> None:
        """Write the fitted model to a file that :func:`ridgefold.load` reads.

        The file holds numbers and text, no code: safetensors with a checked JSON document, and
        a SHA-256 over all of it. It is written whole or not at all; an older file at `path` is
        replaced only once the new one is complete.

        Parameters
        ----------
        path : str or path
        dtype : {None, "float32"}
            "float32" halves the file: rows and coefficients are rounded to seven digits, and
            the loaded model computes in float32.
        intervals : bool, default=True
            False leaves out what `predict_interval` needs (one number a row and fold for CV+, an
            n × n matrix for jackknife+).
        notes : dict of str to str, optional
            Kept in the file as they are; ``ridgefold inspect`` shows them.
        """
        check_is_fitted(self)
        if dtype not in (None, "float32"):
            raise InvalidInputError(f'dtype must be None or "float32", got {dtype!r}')
        contents = pack_estimator(self, single=dtype == "float32", intervals=intervals)
        write_model(path, contents, notes)
        if contents["left_out"]:
            left_out = ", ".join(f"{key}={text}" for key, text in contents["left_out"].items())
            warn(
                f"the model file does not keep {left_out}: predictions do not depend on it, but "
                "a loaded model has the default instead",
                LeftOutWarning,
            )


def pack_estimator(
    model: Storable, *, single: bool = False, intervals: bool = True
) -> dict[str, Any]:
    """An estimator as a tree of values."""
    name = type(model).__name__
    if name not in STORABLE or type(model) is not _class(name):
        raise UnsupportedInputError(
            f"{type(model).__module__}.{name} cannot be stored in a model file, which names "
            f"ridgefold's own estimators only ({', '.join(STORABLE)}): keep it by pickle"
        )
    parameters, left_out = {}, {}
    for key, value in model.get_params(deep=False).items():
        if isinstance(value, Storable) or key in OF_WORK:
            continue  # the fitted one is part of the state
        if isinstance(value, OptionObject):
            parameters[key], lost = _packed_options(name, value)
            left_out.update(lost)
        elif _can_be_packed(value, f"{name}.{key}") and storable_argument(name, key, value):
            parameters[key] = value
        else:
            left_out[key] = " ".join(repr(value).split())[:200]
    state = model._state()
    if not intervals:
        state.update({key: None for key in model._interval_entries if key in state})
    if single:
        state.update({key: as_single(state[key]) for key in SINGLE if key in state})
    for key, value in state.items():
        if isinstance(value, Storable):
            state[key] = pack_estimator(value, single=single, intervals=intervals)
            left_out.update(state[key]["left_out"])
    return {
        "estimator": name,
        "parameters": parameters,
        "left_out": left_out,
        "state": state,
    }


def _packed_options(estimator: str, options: OptionObject) -> tuple[dict[str, Any], dict[str, str]]:
    """An option object as a dict of its arguments, and those that cannot be stored."""
    kept, lost = {}, {}
    for key, value in options.get_params(deep=False).items():
        path = f"{options.argument}.{key}"
        if _can_be_packed(value, path) and storable_argument(estimator, path, value):
            kept[key] = value
        else:
            lost[path] = " ".join(repr(value).split())[:200]
    return kept, lost


def _can_be_packed(value: Any, where: str) -> bool:
    try:
        Packer().pack(value, where)
    except UnsupportedInputError:
        return False
    return True


def unpack_estimator(contents: Any) -> Any:
    """The estimator that a tree of values stands for."""
    fields = {
        "estimator": str,
        "parameters": Mapping[str, Any],
        "left_out": Mapping[str, str],
        "state": Mapping[str, Any],
    }
    check_fields("model", contents, fields, {})
    if contents["estimator"] not in STORABLE:
        raise ModelFileError(f"it names the estimator {contents['estimator'][:60]!r}, unknown here")
    cls = _class(contents["estimator"])
    names = cls._get_param_names()
    model = cls(**checked_arguments(cls.__name__, names, contents["parameters"]))
    try:
        model._restore(contents["state"])
    except ModelFileError:
        raise
    # Checks above say what is wrong where they foresee it. What none foresaw is wrong all the same.
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ModelFileError(
            f"its parts do not fit together ({type(error).__name__}: {str(error)[:200]})"
        ) from error
    return model


def load(path: str | PathLike[str]) -> Any:
    """The fitted estimator in a model file.

    Nothing in a file is run: it holds numbers, text and the names of ridgefold's own estimators
    and kernels. Models come back on NumPy arrays, whatever library they were fitted with.

    Parameters
    ----------
    path : str or path
        A file that `save` of an estimator, or ``ridgefold fit``, has written.

    Raises
    ------
    ModelFileError
        If a single bit is not as it was written, or the file is something else.
    ModelFileVersionError
        If a newer ridgefold wrote it.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import ridgefold
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> model = ridgefold.KernelRidge(1e-3, kernel="rbf").fit(X, np.sin(X[:, 0]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "sine.ridgefold")
    ...     model.save(path)
    ...     again = ridgefold.load(path)
    >>> bool(np.all(again.predict(X) == model.predict(X)))
    True
    """
    contents = read_model(path)
    with named_in_errors(Path(path)):
        return unpack_estimator(contents.model)


def _class(name: str) -> Any:
    return getattr(importlib.import_module(STORABLE[name]), name)


def as_single(value: Any) -> Any:
    """float64 arrays in a tree of values as float32; values that do not fit are an error."""
    if isinstance(value, Mapping):
        return {key: as_single(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(map(as_single, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return dataclasses.replace(value, **{n: as_single(getattr(value, n)) for n in names})
    if is_foreign_array(value):
        value = namespace_of(value).to_numpy(value)
    if getattr(value, "dtype", None) != np.float64:
        return value
    with np.errstate(over="ignore"):
        small = value.astype(np.float32)
    if np.any(np.isinf(small.data if scipy.sparse.issparse(small) else small)):
        raise InvalidInputError(
            'dtype="float32" cannot hold numbers beyond 3.4e38, and the model has some: '
            "save it with dtype=None, or scale the targets"
        )
    return small
