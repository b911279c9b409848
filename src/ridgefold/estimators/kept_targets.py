"""The targets that a fitted model keeps, so that it can be judged later: `y_fit_`.

Numbers are kept as they were fitted; of classes, their positions in `classes_`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ridgefold.errors import ModelFileError


def require_targets(state: Mapping[str, Any], n_rows: int | None, n_targets: int) -> np.ndarray:
    """Stored targets that fit the model beside them; `n_rows` is None if any number will do."""
    targets, classes = state["targets"], state.get("classes")
    if n_rows is not None and (targets.ndim == 0 or len(targets) != n_rows):
        raise ModelFileError("model.state.targets must hold one entry a row")
    if classes is not None:
        good = (
            targets.ndim == 1
            and targets.dtype.kind == "i"
            and bool(np.all((targets >= 0) & (targets < len(classes))))
        )
    else:
        tail = () if state["one_target"] else (n_targets,)
        good = (
            targets.dtype.kind == "f"
            and targets.shape[1:] == tail
            and targets.ndim == 1 + len(tail)
            and bool(np.all(np.isfinite(targets)))
        )
    if not good:
        raise ModelFileError("model.state.targets are not what such a model learns")
    return np.asarray(targets)
