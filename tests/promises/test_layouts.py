"""How rows lie in memory does not matter, and they are left as they were."""

from __future__ import annotations

import numpy as np
import pytest

from promised_models import CASES, X_NEW, X, outputs


def read_only(a: np.ndarray) -> np.ndarray:
    a = a.copy()
    a.setflags(write=False)
    return a


def strided(a: np.ndarray) -> np.ndarray:
    wide = np.full((2 * a.shape[0], *(2 * n for n in a.shape[1:])), np.nan)
    view = wide[::2] if a.ndim == 1 else wide[::2, ::2]
    view[...] = a
    return view


def reversed_twice(a: np.ndarray) -> np.ndarray:
    return a[::-1].copy()[::-1]


def other_bytes(a: np.ndarray) -> np.ndarray:
    return a.astype(a.dtype.newbyteorder())


def unaligned(a: np.ndarray) -> np.ndarray:
    raw = np.zeros(a.nbytes + 1, dtype=np.uint8)
    view = raw[1:].view(a.dtype).reshape(a.shape)
    view[...] = a
    return view


LAYOUTS = {
    "read-only": read_only,
    "Fortran order": np.asfortranarray,
    "strided": strided,
    "reversed": reversed_twice,
    "other byte order": other_bytes,
    "unaligned": unaligned,
    "list": lambda a: a.tolist(),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", CASES)
def test_any_layout_gives_the_numbers_of_ordinary_rows(name, layout):
    case, change = CASES[name], LAYOUTS[layout]
    rows, new = change(X), change(X_NEW)
    targets = change(case.targets) if case.targets.dtype.kind == "f" else case.targets
    model = case.fitted(rows, targets)
    for ours, theirs in zip(outputs(model, new), outputs(case.fitted()), strict=True):
        largest = np.max(np.abs(theirs), initial=1.0)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9 * largest)
    np.testing.assert_array_equal(np.asarray(rows), X)
    np.testing.assert_array_equal(np.asarray(new), X_NEW)
    np.testing.assert_array_equal(np.asarray(targets), case.targets)
