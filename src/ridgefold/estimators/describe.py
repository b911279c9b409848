"""From checked data to the problem that the planner sees."""

from __future__ import annotations

import numpy as np

from ridgefold.crossval import Folds
from ridgefold.engine import probe_remainders, probe_spectrum
from ridgefold.estimators.validation import TrainingData
from ridgefold.kernels import KernelGram, PrecomputedGram
from ridgefold.linalg import Array
from ridgefold.records import Problem

TrainingGram = KernelGram | PrecomputedGram


def describe(
    data: TrainingData,
    targets: Array,
    gram: TrainingGram,
    alphas: np.ndarray,
    *,
    bias: bool,
    folds: Folds | None = None,
    judged: bool = False,
    looked_at: bool = True,
) -> Problem:
    """Shapes and settings of a fit, or with folds of a cross-validation.

    `looked_at` says whether a method is to be chosen, for which the data are looked at.
    """
    semidefinite = isinstance(gram, KernelGram) and gram.kernel.semidefinite
    every = int(data.X.shape[1])
    probed = looked_at and folds is not None and semidefinite
    spectrum = probe_spectrum(gram) if probed else ()
    used = gram.kernel.columns_used(every) if isinstance(gram, KernelGram) else every
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
        weighted=data.weights is not None,
        kernel=gram.kernel.evaluation if isinstance(gram, KernelGram) else "given",
        semidefinite=semidefinite,
        folds=() if folds is None else folds.shapes,
        spectrum=spectrum,
        remainders=probe_remainders(gram, spectrum),
        judged=judged,
        complement_folds=folds is None or folds.complement,
        columns_left_out=every - used,
    )
