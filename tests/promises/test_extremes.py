"""Values of any size: finite results, or an error of ours. Never NaN, never a bare warning."""

from __future__ import annotations

import warnings

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from promised_models import CASES, LABELS, X_NEW, X, Y, outputs
from ridgefold import KernelRidge, LSSVMRegressorCV, PartitionedKernelRidge
from ridgefold.errors import RidgefoldError, RidgefoldWarning

SCALES = [1e-320, 1e-300, 1e-160, 1e-30, 1e30, 1e150, 1e160, 1e300]


def finite_or_refused(make, rows, targets, new) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RidgefoldWarning)
        try:
            found = outputs(make().fit(rows, targets), new)
        except RidgefoldError:
            return
    for part in found:
        assert not np.any(np.isnan(part))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", CASES)
def test_huge_and_tiny_values_give_finite_results_or_a_typed_error(name, scale):
    case = CASES[name]
    finite_or_refused(case.make, X * scale, case.targets, X_NEW * scale)
    if case.targets is not LABELS:
        finite_or_refused(case.make, X, Y * scale, X_NEW)


finite = st.floats(allow_nan=False, allow_infinity=False)


@given(
    rows=arrays.arrays(np.float64, (9, 2), elements=finite),
    targets=arrays.arrays(np.float64, 9, elements=finite),
    kernel=st.sampled_from(["rbf", "linear", "laplacian", "matern", "poly"]),
    bias=st.booleans(),
)
def test_any_finite_rows_give_finite_results_or_a_typed_error(rows, targets, kernel, bias):
    for make in (
        lambda: KernelRidge(0.5, kernel=kernel, fit_intercept=bias),
        lambda: LSSVMRegressorCV([0.1, 10.0], kernel=kernel, cv=3, fit_intercept=bias),
        lambda: PartitionedKernelRidge(n_partitions=2, kernel=kernel, fit_intercept=bias),
    ):
        finite_or_refused(make, rows, targets, rows)
