"""From what users pass as `cv` to folds."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import LeaveOneOut, check_cv

from ridgefold.crossval import Folds, leave_one_out, make_folds
from ridgefold.errors import InvalidInputError, RidgefoldError


def folds_of(cv: Any, X: Any, labels: np.ndarray, *, classifier: bool, groups: Any = None) -> Folds:
    """Folds from a number, "loo", a scikit-learn splitter or an iterable of (train, test).

    A number means what it means to `GridSearchCV`: consecutive folds for numbers, stratified
    ones for classes.
    """
    n_rows = int(X.shape[0])
    if (isinstance(cv, str) and cv == "loo") or isinstance(cv, LeaveOneOut):
        return leave_one_out(n_rows)
    if isinstance(cv, (str, bool)):
        raise InvalidInputError(
            f'cv must be a number of folds, "loo", a splitter or (train, test) pairs, got {cv!r}'
        )
    if isinstance(cv, (int, np.integer)) and not 2 <= cv <= n_rows:
        raise InvalidInputError(
            f"cv={cv} folds need at least 2 folds and no more folds than rows, got "
            f"n_samples={n_rows}"
        )
    try:
        splitter = check_cv(cv, labels, classifier=classifier)
        return make_folds(splitter.split(np.empty((n_rows, 1)), labels, groups), n_rows)
    except RidgefoldError:
        raise
    except (ValueError, TypeError) as error:
        raise InvalidInputError(f"cv={cv!r} gives no usable folds: {error}") from None
