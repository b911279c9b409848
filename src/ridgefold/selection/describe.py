"""From checked data to the problem that the planner sees."""

from __future__ import annotations

import numpy as np

from ridgefold.crossval import Folds, WeightSpread, share_of_training
from ridgefold.kernels import KernelGram, PrecomputedGram
from ridgefold.linalg import Array
from ridgefold.records import Problem
from ridgefold.runtime.training_data import TrainingData
from ridgefold.selection.probe import probe_remainders, probe_spectrum

TrainingGram = KernelGram | PrecomputedGram
_LOOKED_AT = ("auto", "krylov", "preconditioned")
"""Methods whose cost depends on the data, so that looking at a sample is worth its time."""


def describe(
    data: TrainingData,
    targets: Array,
    gram: TrainingGram,
    alphas: np.ndarray,
    *,
    bias: bool,
    folds: Folds | None = None,
    judged: bool = False,
    method: str = "auto",
) -> Problem:
    """Shapes and settings of a fit, or with folds of a cross-validation.

    Spectrum and remainders are looked for in a sample of the data if a method is to be chosen, or
    if one is asked for whose number of steps depends on the data.
    """
    semidefinite = isinstance(gram, KernelGram) and gram.kernel.semidefinite
    every = int(data.X.shape[1])
    probed = method in _LOOKED_AT and folds is not None and semidefinite
    spectrum = probe_spectrum(gram) if probed else ()
    used = gram.kernel.columns_used(every) if isinstance(gram, KernelGram) else every
    weights = None if data.weights is None else data.namespace.to_numpy(data.weights)
    spread = WeightSpread.of(weights, int(data.X.shape[0]), folds)
    fixed = len(gram.fixed) if isinstance(gram, KernelGram) else 0
    share = spread.least_training_share
    if fixed and folds is not None:
        share = share_of_training(gram, folds, weights, bias=bool(bias))
    return Problem(
        n_rows=int(data.X.shape[0]),
        n_columns=used,
        n_targets=int(targets.shape[1]),
        n_alphas=len(np.unique(alphas)),
        smallest_alpha=float(alphas.min()),
        largest_alpha=float(alphas.max()),
        itemsize=gram.itemsize,
        feature_dimension=gram.feature_dimension,
        bias=bool(bias),
        fixed=fixed,
        weighted=data.weights is not None,
        kernel=gram.kernel.evaluation if isinstance(gram, KernelGram) else "given",
        semidefinite=semidefinite,
        folds=() if folds is None else folds.shapes,
        spectrum=spectrum,
        remainders=probe_remainders(gram, spectrum),
        judged=judged,
        complement_folds=folds is None or folds.complement,
        columns_left_out=every - used,
        weight_range=spread.range,
        least_training_share=share,
    )
