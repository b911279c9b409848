"""From what a user writes as `kernel=` to a kernel object.

Names mean what scikit-learn means by them, with its defaults; `gamma=None` is
1/n_columns. A kernel object is taken as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ridgefold.errors import InvalidInputError
from ridgefold.kernels.base import Kernel
from ridgefold.kernels.named_kernels import NAMED_KERNELS
from ridgefold.kernels.pairwise import CallableKernel, is_function_of_matrices
from ridgefold.kernels.settings import KernelSettings

PRECOMPUTED = "precomputed"


def takes_sparse_and_negative(kernel: Any) -> tuple[bool, bool]:
    """Whether what `kernel` stands for takes sparse X, and values below zero.

    Of several kernels, whether all do.
    """
    if isinstance(kernel, (list, tuple)):
        each = [takes_sparse_and_negative(one) for one in kernel]
        return all(sparse for sparse, _ in each), all(negative for _, negative in each)
    if isinstance(kernel, str):
        if kernel not in NAMED_KERNELS:
            return False, True
        kernel = NAMED_KERNELS[kernel][0]
    elif not isinstance(kernel, Kernel):
        return callable(kernel), True
    return kernel.accepts_sparse, kernel.takes_negative_values


def resolve_kernel(kernel: Any, settings: KernelSettings, n_columns: int) -> Kernel:
    """The kernel object that `kernel` stands for, on rows with `n_columns` columns."""
    if isinstance(kernel, Kernel):
        return kernel
    if settings.parameters is not None and not isinstance(settings.parameters, Mapping):
        raise InvalidInputError(
            f"kernel_params must be a dict of arguments or None, got {settings.parameters!r}"
        )
    parameters = dict(settings.parameters or {})
    if isinstance(kernel, str) and kernel in NAMED_KERNELS:
        cls, builder = NAMED_KERNELS[kernel]
        arguments = {**builder(settings, n_columns), **parameters}
        if "length_scale" in parameters:  # the other way to say what gamma says
            arguments.pop("gamma", None)
        try:
            return cls(**arguments)
        except TypeError as error:
            raise InvalidInputError(
                f"kernel_params={parameters!r} does not suit kernel={kernel!r}: {error}"
            ) from None
    if callable(kernel):
        return CallableKernel(kernel, parameters, vectorized=is_function_of_matrices(kernel))
    names = ", ".join(sorted([*NAMED_KERNELS, PRECOMPUTED]))
    raise InvalidInputError(
        f"kernel must be one of {names}, a kernel object or a callable, got {kernel!r}"
    )
