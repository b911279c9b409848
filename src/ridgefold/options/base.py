"""The base of the option objects, and the checks that they share."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ridgefold.errors import InvalidInputError


class OptionObject(BaseEstimator):
    """Arguments that belong together, as one argument of an estimator.

    It is an estimator of scikit-learn without `fit`, so that ``get_params``, ``set_params`` and
    ``clone`` of the estimator that has it reach its arguments by ``search__method`` and the like.
    """

    argument: ClassVar[str]
    """The argument of estimators that takes it; errors name its parts by it."""

    def check(self) -> None:
        """Raise a typed error if a value cannot be used, whatever the data."""
        raise NotImplementedError

    def _require_bool(self, name: str) -> None:
        value = getattr(self, name)
        if not isinstance(value, (bool, np.bool_)):
            raise InvalidInputError(f"{self.argument}.{name} must be True or False, got {value!r}")

    def _require_one_of(self, name: str, allowed: Collection[str | None]) -> None:
        value = getattr(self, name)
        if not (value is None or isinstance(value, str)) or value not in allowed:
            listed = ", ".join("None" if each is None else f'"{each}"' for each in allowed)
            raise InvalidInputError(
                f"{self.argument}.{name} must be one of {listed}, got {value!r}"
            )

    def _require_share(self, name: str, meaning: str) -> None:
        value = getattr(self, name)
        number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
        if not number or not 0 <= value <= 1:
            raise InvalidInputError(
                f"{self.argument}.{name}, {meaning}, must be from 0 to 1, got {value!r}"
            )
