"""BLAS and LAPACK on strided views of NumPy arrays, without the copies of SciPy's wrappers.

SciPy's Python wrappers take contiguous arrays only and copy every other slice. The same
routines are public C functions of `scipy.linalg.cython_blas` and `cython_lapack`; their
addresses are called here through ctypes, with leading dimensions. A routine is used only if
the signature that SciPy publishes for it is the one expected; otherwise `pointers_for` gives
None and callers use plain NumPy.

The library's matrices are C-ordered. BLAS reads them as their transposes, so the lower
triangle of a matrix is the *upper* one in a call.
"""

from __future__ import annotations

import ctypes
import functools
from importlib import import_module
from typing import Any

import numpy as np

# Arguments of every routine: a flag, an integer, or one or more numbers.
_FLAG, _INTEGER = "char *", "int *"
_SIGNATURES = {
    "gemm": ("cython_blas", "ccnnnxxnxnxxn"),
    "symm": ("cython_blas", "ccnnxxnxnxxn"),
    "syr2k": ("cython_blas", "ccnnxxnxnxxn"),
    "syrk": ("cython_blas", "ccnnxxnxxn"),
    "trmm": ("cython_blas", "ccccnnxxnxn"),
    "trsm": ("cython_blas", "ccccnnxxnxn"),
    "trtri": ("cython_lapack", "ccnxnn"),
    "potrf": ("cython_lapack", "cnxnn"),
    "geqrt3": ("cython_lapack", "nnxnxnn"),
}
_PREFIXES = {"float32": "s", "float64": "d"}
_KINDS: dict[type, Any] = {str: lambda flag: ctypes.c_char(flag.encode()), int: ctypes.c_int}
Argument = str | int | float | np.ndarray


@functools.cache
def _constant(kind: Any, value: str | int | float) -> Any:
    """A flag, an integer or a number in memory; they are few, and are kept."""
    return kind(value)


def _signature_in_letters(text: str, prefix: str) -> str:
    """'void (char *, int *, …_d *)' as 'cnx'; a type not known here becomes '?'."""
    inside = text.partition("(")[2].rstrip(")")
    real = {"s": ("float *", "_s *"), "d": ("double *", "_d *")}[prefix]
    letters = {_FLAG: "c", _INTEGER: "n"}
    return "".join(
        letters.get(kind, "x" if kind.endswith(real) else "?") for kind in inside.split(", ")
    )


def _load(name: str, prefix: str) -> Any:
    """The routine as a ctypes function, or None if SciPy does not offer it as expected."""
    module, expected = _SIGNATURES[name]
    try:
        capsule = import_module(f"scipy.linalg.{module}").__pyx_capi__[prefix + name]
    except (ImportError, AttributeError, KeyError):
        return None
    get_name, get_pointer = (
        ctypes.pythonapi.PyCapsule_GetName,
        ctypes.pythonapi.PyCapsule_GetPointer,
    )
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer.restype = ctypes.c_void_p
    get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    text = get_name(capsule)
    if _signature_in_letters(text.decode(), prefix) != expected:
        return None
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(expected))(get_pointer(capsule, text))


class BlasPointers:
    """The routines for one dtype. Arrays must have that dtype and unit stride along one axis."""

    def __init__(self, dtype: np.dtype[Any], routines: dict[str, Any]) -> None:
        self._dtype, self._routines = dtype, routines
        self._number = ctypes.c_float if dtype == np.float32 else ctypes.c_double

    def multiply_symmetric(self, lower: np.ndarray, v: np.ndarray, out: np.ndarray) -> None:
        """out = A v for a symmetric A (C order, lower triangle) and Fortran-ordered v, out."""
        n, k = v.shape
        assert lower.shape == (n, n)
        assert out.shape == v.shape
        self._call(
            "symm", "L", "U", n, k, 1.0, *self._rows(lower), *self._columns(v), 0.0,
            *self._columns(out),
        )  # fmt: skip

    def subtract_rank_2k(self, lower: np.ndarray, v: np.ndarray, w: np.ndarray) -> None:
        """A −= v wᵀ + w vᵀ, lower triangle of A (C order); v and w are Fortran-ordered."""
        n, k = v.shape
        assert lower.shape == (n, n)
        assert w.shape == v.shape
        self._call(
            "syr2k", "U", "N", n, k, -1.0, *self._columns(v), *self._columns(w), 1.0,
            *self._rows(lower),
        )  # fmt: skip

    def subtract_product(self, out: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
        """out −= a b; `out` in C order, `a` and `b` in either."""
        (m, k), n = a.shape, b.shape[1]
        assert b.shape[0] == k
        assert out.shape == (m, n)
        # In Fortran's eyes: outᵀ −= bᵀ aᵀ.
        flag_a, view_a = self._either(a)
        flag_b, view_b = self._either(b)
        self._call(
            "gemm", flag_b, flag_a, n, m, k, -1.0, *view_b, *view_a, 1.0, *self._rows(out)
        )  # fmt: skip

    def subtract_gram_of_rows(self, lower: np.ndarray, rows: np.ndarray) -> None:
        """A −= r rᵀ, lower triangle of A; A and r in C order."""
        n, k = rows.shape
        assert lower.shape == (n, n)
        self._call("syrk", "U", "T", n, k, -1.0, *self._rows(rows), 1.0, *self._rows(lower))

    def add_gram_of_rows(self, lower: np.ndarray, rows: np.ndarray) -> None:
        """A += r rᵀ, lower triangle of A; A and r in C order."""
        n, k = rows.shape
        assert lower.shape == (n, n)
        self._call("syrk", "U", "T", n, k, 1.0, *self._rows(rows), 1.0, *self._rows(lower))

    def cholesky(self, lower: np.ndarray) -> bool:
        """A = L Lᵀ in the lower triangle of A (C order); False if A is not positive definite."""
        info = self._info()
        self._call("potrf", "U", lower.shape[0], *self._rows(lower), info)
        return bool(info[0] == 0)

    def divide_by_transposed(self, a: np.ndarray, factor: np.ndarray) -> None:
        """a := a L⁻ᵀ for the lower triangle L of `factor`; both in C order."""
        m, n = a.shape
        assert factor.shape == (n, n)
        # In Fortran's eyes: aᵀ := U⁻ᵀ aᵀ.
        self._call(
            "trsm", "L", "U", "T", "N", n, m, 1.0, *self._rows(factor), *self._rows(a)
        )  # fmt: skip

    def multiply_by_triangle(
        self, a: np.ndarray, factor: np.ndarray, *, transposed: bool = False
    ) -> None:
        """a := a L, or a Lᵀ, for the lower triangle L of `factor`; both in C order."""
        m, n = a.shape
        assert factor.shape == (n, n)
        # In Fortran's eyes: aᵀ := U aᵀ, or Uᵀ aᵀ.
        flag = "T" if transposed else "N"
        self._call(
            "trmm", "L", "U", flag, "N", n, m, 1.0, *self._rows(factor), *self._rows(a)
        )  # fmt: skip

    def multiply_triangle_by(self, factor: np.ndarray, a: np.ndarray, times: float) -> None:
        """a := times · L a for the lower triangle L of `factor`; both in C order."""
        m, n = a.shape
        assert factor.shape == (m, m)
        # In Fortran's eyes: aᵀ := times · aᵀ U.
        self._call(
            "trmm", "R", "U", "N", "N", n, m, times, *self._rows(factor), *self._rows(a)
        )  # fmt: skip

    def invert_triangle(self, lower: np.ndarray) -> None:
        """L := L⁻¹ for the lower triangle of a C-ordered array with no zero on its diagonal."""
        info = self._info()
        self._call("trtri", "U", "N", lower.shape[0], *self._rows(lower), info)

    def householder_panel(self, panel: np.ndarray, t: np.ndarray) -> None:
        """QR of a tall Fortran-ordered panel in place, and the triangle T of its reflector."""
        m, k = panel.shape
        assert m >= k
        assert t.shape == (k, k)
        info = self._info()
        self._call("geqrt3", m, k, *self._columns(panel), *self._columns(t), info)

    def recorder(self) -> RecordedCalls:
        """The same routines, which note calls instead of making them."""
        return RecordedCalls(self._dtype, self._routines)

    # -- arguments -----------------------------------------------------------------------

    def _info(self) -> np.ndarray:
        """Where LAPACK says how it went: 0 if well."""
        return np.zeros(1, dtype=np.intc)

    def _rows(self, a: np.ndarray) -> tuple[np.ndarray, int]:
        """A C-ordered view and its leading dimension."""
        return self._view(a, contiguous=1)

    def _columns(self, a: np.ndarray) -> tuple[np.ndarray, int]:
        """A Fortran-ordered view and its leading dimension."""
        return self._view(a, contiguous=0)

    def _either(self, a: np.ndarray) -> tuple[str, tuple[np.ndarray, int]]:
        """As `_rows` ("N") or, for Fortran order, `_columns` ("T": to be transposed)."""
        if a.strides[1] == a.itemsize and a.strides[0] >= a.itemsize * a.shape[1]:
            return "N", self._rows(a)
        return "T", self._columns(a)

    def _view(self, a: np.ndarray, contiguous: int) -> tuple[np.ndarray, int]:
        other = 1 - contiguous
        step, rest = divmod(a.strides[other], a.itemsize)
        length = a.shape[contiguous]
        fits = rest == 0 and (step >= length or a.shape[other] == 1)
        unit = a.strides[contiguous] == a.itemsize or length == 1
        if a.dtype != self._dtype or not (fits and unit):
            raise ValueError(f"strides {a.strides} of a {a.dtype} array cannot be given to BLAS")
        return a, max(step, length, 1)

    def _call(self, name: str, *arguments: Argument) -> None:
        self._routines[name](*self._addresses(arguments))

    def _addresses(self, arguments: tuple[Argument, ...]) -> list[int]:
        """Where the arguments lie, as long as they are kept."""
        addresses = []
        for argument in arguments:
            if isinstance(argument, np.ndarray):
                addresses.append(argument.__array_interface__["data"][0])
                continue
            kind = _KINDS.get(type(argument), self._number)
            addresses.append(ctypes.addressof(_constant(kind, argument)))
        return addresses


class RecordedCalls(BlasPointers):
    """Calls on arrays that stay where they are, noted once and made as often as wanted.

    To find the addresses of a call takes longer than the routine itself on a matrix of thirty rows.
    """

    def __init__(self, dtype: np.dtype[Any], routines: dict[str, Any]) -> None:
        super().__init__(dtype, routines)
        self._noted: list[tuple[Any, list[int]]] = []
        self._kept: list[tuple[Argument, ...]] = []
        self._infos: list[np.ndarray] = []

    def play(self) -> bool:
        """Make all calls; False if a routine of LAPACK could not do its work."""
        for routine, addresses in self._noted:
            routine(*addresses)
        return not any(info[0] for info in self._infos)

    def _info(self) -> np.ndarray:
        self._infos.append(super()._info())
        return self._infos[-1]

    def _call(self, name: str, *arguments: Argument) -> None:
        self._kept.append(arguments)
        self._noted.append((self._routines[name], self._addresses(arguments)))


@functools.lru_cache(maxsize=4)
def pointers_for(dtype: np.dtype[Any]) -> BlasPointers | None:
    """The routines for a dtype, or None if this SciPy does not offer them as expected."""
    prefix = _PREFIXES.get(np.dtype(dtype).name)
    if prefix is None:
        return None
    routines = {name: _load(name, prefix) for name in _SIGNATURES}
    if any(routine is None for routine in routines.values()):
        return None
    return BlasPointers(np.dtype(dtype), routines)
