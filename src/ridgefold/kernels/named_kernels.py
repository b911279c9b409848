"""The kernels that have a name. A new one is a file beside this one and its lines here.

Everything listed in `__all__` can be imported from `ridgefold.kernels`.
"""

from __future__ import annotations

from ridgefold.kernels.base import Kernel
from ridgefold.kernels.dot_product import Constant, Cosine, Linear, Polynomial, Sigmoid
from ridgefold.kernels.pairwise import AdditiveChi2, Chi2
from ridgefold.kernels.settings import (
    Builder,
    from_chi2,
    from_gamma,
    from_polynomial,
    from_sigmoid,
    without_arguments,
)
from ridgefold.kernels.sobolev import Sobolev
from ridgefold.kernels.stationary import RBF, Laplacian, Matern, RationalQuadratic

__all__ = [
    "NAMED_KERNELS",
    "RBF",
    "AdditiveChi2",
    "Chi2",
    "Constant",
    "Cosine",
    "Laplacian",
    "Linear",
    "Matern",
    "Polynomial",
    "RationalQuadratic",
    "Sigmoid",
    "Sobolev",
]

NAMED_KERNELS: dict[str, tuple[type[Kernel], Builder]] = {
    "additive_chi2": (AdditiveChi2, without_arguments),
    "chi2": (Chi2, from_chi2),
    "constant": (Constant, without_arguments),
    "cosine": (Cosine, without_arguments),
    "laplacian": (Laplacian, from_gamma),
    "linear": (Linear, without_arguments),
    "matern": (Matern, from_gamma),
    "poly": (Polynomial, from_polynomial),
    "polynomial": (Polynomial, from_polynomial),
    "rational_quadratic": (RationalQuadratic, from_gamma),
    "rbf": (RBF, from_gamma),
    "sigmoid": (Sigmoid, from_sigmoid),
    "sobolev": (Sobolev, without_arguments),
}
"""Every name that `kernel=` takes, apart from "precomputed": the class, and which of scikit-learn's
arguments the name takes."""
