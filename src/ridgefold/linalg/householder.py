"""Block Householder reflectors and the symmetric updates they bring, on any array library.

A block reflector is H = I − V T Vᵀ with V of k columns, unit lower trapezoidal, and T upper
triangular (Schreiber and Van Loan 1989). It is worth its name because H times a matrix, and
HᵀAH for a symmetric A, are matrix products:

    HᵀAH = A − V Wᵀ − W Vᵀ,      W = X − ½ V(Tᵀ VᵀX),  X = A V T.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from ridgefold.linalg.blas_pointers import BlasPointers, pointers_for
from ridgefold.linalg.blocks import ROWS_AT_ONCE
from ridgefold.linalg.centring import multiply_symmetric
from ridgefold.linalg.namespace import Array, Namespace


def blas_for(namespace: Namespace, a: Array) -> BlasPointers | None:
    """BLAS by pointer for NumPy arrays; None for other arrays, or if SciPy does not offer it."""
    return pointers_for(a.dtype) if namespace.name == "numpy" else None


@dataclass(frozen=True)
class Reflector:
    """H = I − V T Vᵀ."""

    namespace: Namespace
    v: Array
    """Shape (m, k), with its unit diagonal and the zeros above it."""
    t: Array
    """Shape (k, k), upper triangular."""

    def apply_in_place(self, x: Array, *, transposed: bool = False) -> None:
        """x ← H x, or Hᵀ x."""
        inner = (self.t.T if transposed else self.t) @ (self.v.T @ x)
        subtract_product_in_place(self.namespace, x, self.v, inner)

    def transform_in_place(self, lower: Array) -> None:
        """A ← HᵀAH for a symmetric A (lower triangle)."""
        # Transposed twice: so NumPy's products come out in Fortran order like V.
        w = (self.t.T @ _multiply_symmetric(self.namespace, lower, self.v).T).T
        inner = 0.5 * (self.t.T @ (self.v.T @ w))
        w -= (inner.T @ self.v.T).T
        _subtract_rank_2k_in_place(self.namespace, lower, self.v, w)


def reflect_panel_in_place(namespace: Namespace, panel: Array) -> Reflector:
    """H with Hᵀ·panel = R upper trapezoidal.

    The panel is overwritten by R and, below the diagonal, by V.
    """
    m, width = panel.shape
    k = min(m, width)
    blas = blas_for(namespace, panel)
    if blas is not None:
        v = np.array(panel[:, :k], order="F")
        t = np.zeros((k, k), dtype=panel.dtype, order="F")
        blas.householder_panel(v, t)
        panel[:, :k] = v
        _make_unit_lower_in_place(namespace, v)
        reflector = Reflector(namespace, v, np.triu(t))
    else:
        packed, tau = _factor_panel(namespace, panel[:, :k])
        panel[:, :k] = packed
        v = unit_lower(namespace, packed)
        t = _triangle(namespace.to_numpy(v.T @ v), tau)
        reflector = Reflector(namespace, v, namespace.asarray(t, panel))
    if k < width:
        reflector.apply_in_place(panel[:, k:], transposed=True)
    return reflector


def unit_lower(namespace: Namespace, panel: Array) -> Array:
    """V from a panel that holds it below the diagonal; in Fortran order on NumPy."""
    v = np.array(panel, order="F") if namespace.name == "numpy" else namespace.copy(panel)
    _make_unit_lower_in_place(namespace, v)
    return v


def _make_unit_lower_in_place(namespace: Namespace, v: Array) -> None:
    top = v[: v.shape[1], :]
    top[...] = namespace.xp.tril(top, k=-1)
    namespace.add_to_diagonal_in_place(top, 1.0)


def subtract_product_in_place(namespace: Namespace, out: Array, a: Array, b: Array) -> None:
    """out −= a b."""
    blas = blas_for(namespace, out)
    if blas is not None and _in_rows(out):
        blas.subtract_product(out, a, b)
        return
    for start in range(0, out.shape[0], ROWS_AT_ONCE):
        rows = slice(start, min(start + ROWS_AT_ONCE, out.shape[0]))
        block = out[rows, :]
        block -= a[rows, :] @ b


def _in_rows(a: np.ndarray) -> bool:
    return a.strides[1] == a.itemsize and a.strides[0] >= a.itemsize * a.shape[1]


def _factor_panel(namespace: Namespace, panel: Array) -> tuple[Array, np.ndarray]:
    """QR in LAPACK's packed form: natively where the library has it, else by LAPACK."""
    if hasattr(namespace.xp, "geqrf"):
        packed, tau = namespace.xp.geqrf(panel)
        return packed, namespace.to_numpy(tau)
    work = namespace.to_numpy(panel)
    prefix = {"float32": "s", "float64": "d"}[work.dtype.name]
    packed, tau, _, _ = getattr(lapack, prefix + "geqrf")(work)
    return namespace.asarray(packed, panel), tau


def _triangle(products: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """T from VᵀV and the scales τ of the single reflectors (LAPACK's larft)."""
    k = len(tau)
    t = np.zeros((k, k), dtype=products.dtype)
    for i in range(k):
        t[:i, i] = -tau[i] * (t[:i, :i] @ products[:i, i])
        t[i, i] = tau[i]
    return t


def _multiply_symmetric(namespace: Namespace, lower: Array, v: Array) -> Array:
    """A v, in Fortran order on NumPy."""
    blas = blas_for(namespace, lower)
    if blas is None:
        return multiply_symmetric(namespace, lower, v)
    out = np.empty(v.shape, dtype=v.dtype, order="F")
    blas.multiply_symmetric(lower, v, out)
    return out


def _subtract_rank_2k_in_place(namespace: Namespace, lower: Array, v: Array, w: Array) -> None:
    """A −= v wᵀ + w vᵀ, lower triangle."""
    blas = blas_for(namespace, lower)
    if blas is not None:
        blas.subtract_rank_2k(lower, v, w)
        return
    # One product of twice the columns: a single pass over A.
    left = namespace.xp.concat([v, w], axis=1)
    right = namespace.xp.concat([w, v], axis=1).T
    for start in range(0, lower.shape[0], ROWS_AT_ONCE):
        stop = min(start + ROWS_AT_ONCE, lower.shape[0])
        block = lower[start:stop, :stop]
        block -= left[start:stop, :] @ right[:, :stop]
