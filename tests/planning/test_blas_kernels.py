"""Kernels of OpenBLAS are compared in processes of their own; only real differences are said."""

import blas_kernels
from ridgefold.planning.blas_kernels import (
    FasterKernel,
    faster_kernel,
    loaded_kernels,
    usable_kernels,
)


def test_kernels_are_those_that_the_processor_has():
    assert set(usable_kernels()) <= set(blas_kernels.usable())
    assert all(kernel == kernel.lower() for kernel in loaded_kernels())


def test_a_faster_kernel_is_another_one_that_this_processor_has():
    found = faster_kernel(rows=400)
    if found is not None:
        assert found.name in usable_kernels()
        assert found.name.lower() not in loaded_kernels()
        assert found.factor >= 1.1


def test_what_is_said_names_the_setting_and_the_factor():
    said = str(FasterKernel("SkylakeX", "Haswell", {"product": 1.7, "cholesky": 1.5}))
    assert "OPENBLAS_CORETYPE=SkylakeX" in said
    assert "1.70 times" in said
    assert "1.50 times" in said
