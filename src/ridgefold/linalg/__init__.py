"""Dense linear algebra on NumPy/SciPy, torch or any standard array namespace.

`namespace_of(array)` picks the routines that belong to an array; everything else in
this package is mathematics written on top of them.
"""

from ridgefold.linalg.namespace import Array, Namespace, namespace_of, numpy_namespace

__all__ = ["Array", "Namespace", "namespace_of", "numpy_namespace"]
