"""torch tensors on the CPU or a GPU: the only module that imports torch.

torch's own Cholesky always allocates its result. The matrices here are as large as
the device allows, so the factorisation is blocked and written over its input.
"""

from __future__ import annotations

from typing import Any

import array_api_compat.torch as xp
import numpy as np
import torch

from ridgefold.errors import InvalidInputError
from ridgefold.linalg.namespace import Array, Namespace

_PANEL = 2048
"""Columns that are factorised at once: torch's Cholesky allocates its result, so that this much is
held beside the matrix."""
_GPU_TILE_BYTES = 1 << 28
"""Size of a tile on a GPU: large enough that launching its kernels takes no time that counts."""


class TorchNamespace(Namespace):
    name = "torch"
    xp = xp

    def detached(self, a: Array) -> Array:
        return a.detach()

    def tile_bytes(self, like: Array) -> int:
        return _GPU_TILE_BYTES if like.device.type == "cuda" else super().tile_bytes(like)

    def accelerator(self, like: Array) -> str | None:
        if like.device.type == "cuda":
            return str(torch.cuda.get_device_name(like.device))
        return None if like.device.type == "cpu" else str(like.device.type)

    def free_bytes(self, like: Array) -> float | None:
        if like.device.type != "cuda":
            return None
        free, _ = torch.cuda.mem_get_info(like.device)
        # What torch has taken from the device and given to nobody is free as well.
        kept = torch.cuda.memory_reserved(like.device) - torch.cuda.memory_allocated(like.device)
        return float(free + kept)

    def held_after_reset(self, like: Array) -> float | None:
        if like.device.type != "cuda":
            return None
        torch.cuda.reset_peak_memory_stats(like.device)
        return float(torch.cuda.memory_allocated(like.device))

    def peak_bytes(self, like: Array) -> float | None:
        if like.device.type != "cuda":
            return None
        return float(torch.cuda.max_memory_allocated(like.device))

    def wait(self, like: Array) -> None:
        if like.device.type == "cuda":
            torch.cuda.synchronize(like.device)

    def to_numpy(self, a: Array) -> np.ndarray:
        return np.asarray(a.detach().cpu())

    def copy(self, a: Array) -> Array:
        return a.clone()

    def asarray(self, values: Any, like: Array, dtype: Any = None) -> Array:
        return torch.as_tensor(values, dtype=dtype or like.dtype, device=like.device)

    def indices(self, rows: np.ndarray, like: Array) -> Array:
        return torch.as_tensor(rows, dtype=torch.int64, device=like.device)

    def diagonal(self, a: Array) -> Array:
        return torch.diagonal(a).clone()

    def add_to_diagonal_in_place(self, a: Array, values: Array | float) -> None:
        torch.diagonal(a).add_(values)

    def set_diagonal_in_place(self, a: Array, values: Array | float) -> None:
        torch.diagonal(a).copy_(torch.as_tensor(values, dtype=a.dtype, device=a.device))

    def fill_upper_in_place(self, a: Array) -> None:
        n = a.shape[0]
        for start in range(0, n, _PANEL):
            stop = min(start + _PANEL, n)
            a[start:stop, stop:] = a[stop:, start:stop].T
            corner = a[start:stop, start:stop]
            corner.copy_(corner.tril() + corner.tril(-1).T)

    def exp_in_place(self, a: Array) -> None:
        a.exp_()

    def sqrt_in_place(self, a: Array) -> None:
        a.sqrt_()

    def tanh_in_place(self, a: Array) -> None:
        a.tanh_()

    def maximum_in_place(self, a: Array, low: float) -> None:
        a.clamp_(min=low)

    def minimum_in_place(self, a: Array, high: float) -> None:
        a.clamp_(max=high)

    def multiply_transposed(self, a: Array, b: Array, out: Array) -> None:
        if a.dtype == b.dtype == out.dtype and out.is_contiguous():
            torch.matmul(a, b.T, out=out)
        else:
            out.copy_(a @ b.T)

    def manhattan_distances(self, a: Array, b: Array, out: Array) -> None:
        out.copy_(torch.cdist(a, b, p=1.0))

    def gram_of_rows(self, a: Array) -> Array:
        return a @ a.T

    def cholesky_in_place(self, a: Array) -> bool:
        n = a.shape[0]
        for start in range(0, n, _PANEL):
            stop = min(start + _PANEL, n)
            if start:
                a[start:, start:stop].addmm_(a[start:, :start], a[start:stop, :start].T, alpha=-1)
            corner, info = torch.linalg.cholesky_ex(a[start:stop, start:stop])
            if int(info) != 0:
                return False
            a[start:stop, start:stop] = corner
            if stop < n:
                below = a[stop:, start:stop]
                below.copy_(torch.linalg.solve_triangular(corner.mT, below, upper=True, left=False))
        return True

    def solve_triangular(self, factor: Array, b: Array, *, transposed: bool = False) -> Array:
        if transposed:
            return torch.linalg.solve_triangular(factor.mT, b, upper=True)
        return torch.linalg.solve_triangular(factor, b, upper=False)

    def inverse_from_cholesky_in_place(self, factor: Array) -> None:
        factor.copy_(torch.cholesky_inverse(factor.tril()))

    def eigh_in_place(self, a: Array) -> tuple[Array, Array]:
        # As the upper triangle of its transpose: LAPACK reduces that from its end, and loses less
        # where few eigenvalues are large.
        values, vectors = torch.linalg.eigh(a.mT, UPLO="U")
        return values, vectors

    def cholesky_of_stack(self, a: Array) -> tuple[Array, np.ndarray]:
        factor, info = torch.linalg.cholesky_ex(a)
        return factor, self.to_numpy(info) == 0

    def solve_triangular_stack(self, factor: Array, b: Array, *, transposed: bool = False) -> Array:
        return self.solve_triangular(factor, b, transposed=transposed)


def tensor_on(array: np.ndarray, device: str) -> Array:
    """A NumPy array as a tensor on a device; a typed error if there is no such device."""
    try:
        return torch.from_numpy(array).to(device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).strip().split("\n")[0]
        raise InvalidInputError(
            f"device={device!r} cannot be used ({reason}): use cpu, or leave it out"
        ) from None
