"""Kernels as immutable objects with textbook parameters, and Gram matrices as sources."""

from ridgefold.kernels.base import Kernel
from ridgefold.kernels.categorical import Categorical
from ridgefold.kernels.columns import Columns
from ridgefold.kernels.composite import Product, Scaled, Sum
from ridgefold.kernels.dot_product import Constant, Cosine, Linear, Polynomial, Sigmoid
from ridgefold.kernels.gram import Gram, KernelGram, PrecomputedGram, WeightedGram
from ridgefold.kernels.pairwise import AdditiveChi2, CallableKernel, Chi2
from ridgefold.kernels.resolve import (
    NAMED_KERNELS,
    PRECOMPUTED,
    KernelSettings,
    resolve_kernel,
    takes_sparse_and_negative,
)
from ridgefold.kernels.sobolev import Sobolev
from ridgefold.kernels.stationary import RBF, Laplacian, Matern, RationalQuadratic
from ridgefold.kernels.warped import Warped
from ridgefold.kernels.width_table import WidthTable

__all__ = [
    "NAMED_KERNELS",
    "PRECOMPUTED",
    "RBF",
    "AdditiveChi2",
    "CallableKernel",
    "Categorical",
    "Chi2",
    "Columns",
    "Constant",
    "Cosine",
    "Gram",
    "Kernel",
    "KernelGram",
    "KernelSettings",
    "Laplacian",
    "Linear",
    "Matern",
    "Polynomial",
    "PrecomputedGram",
    "Product",
    "RationalQuadratic",
    "Scaled",
    "Sigmoid",
    "Sobolev",
    "Sum",
    "Warped",
    "WeightedGram",
    "WidthTable",
    "resolve_kernel",
    "takes_sparse_and_negative",
]
