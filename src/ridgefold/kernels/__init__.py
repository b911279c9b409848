"""Kernels as immutable objects with textbook parameters, and Gram matrices as sources."""

from ridgefold.kernels import named_kernels
from ridgefold.kernels.base import Kernel
from ridgefold.kernels.categorical import Categorical
from ridgefold.kernels.columns import Columns
from ridgefold.kernels.composite import Product, Scaled, Sum
from ridgefold.kernels.gram import Gram, KernelGram, PrecomputedGram, WeightedGram
from ridgefold.kernels.named_kernels import *  # noqa: F403 - the list stands where kernels are named
from ridgefold.kernels.pairwise import CallableKernel
from ridgefold.kernels.resolve import PRECOMPUTED, resolve_kernel, takes_sparse_and_negative
from ridgefold.kernels.rotated import Rotated
from ridgefold.kernels.settings import KernelSettings
from ridgefold.kernels.warped import Warped
from ridgefold.kernels.width_table import WidthTable

__all__ = [
    "PRECOMPUTED",
    "CallableKernel",
    "Categorical",
    "Columns",
    "Gram",
    "Kernel",
    "KernelGram",
    "KernelSettings",
    "PrecomputedGram",
    "Product",
    "Rotated",
    "Scaled",
    "Sum",
    "Warped",
    "WeightedGram",
    "WidthTable",
    "resolve_kernel",
    "takes_sparse_and_negative",
]
__all__ += named_kernels.__all__
