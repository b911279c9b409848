"""A cheap look at the data that tells how hard they are."""

from __future__ import annotations

import numpy as np

from ridgefold.kernels import Gram

_FIRST_SAMPLE, _LARGER_SAMPLE = 96, 256
_NUMERICAL_RANK = 1e-12
_FEWEST_ROWS = 1000
"""With fewer rows nothing takes long enough to look."""


def probe_spectrum(gram: Gram) -> tuple[float, ...]:
    """The largest eigenvalues of K, estimated from a few rows spread over the data.

    Those of a sample of m of n rows, times n/m: right for the large ones, too small towards the
    end. Costs m² kernel values and m³ work: less than a millisecond where the spectrum falls
    fast, some milliseconds where a larger sample is needed to see it fall.
    """
    if gram.shape[0] < _FEWEST_ROWS:
        return ()
    values = _of_sample(gram, _FIRST_SAMPLE)
    if values and values[3 * len(values) // 4] > _NUMERICAL_RANK * values[0]:
        values = _of_sample(gram, _LARGER_SAMPLE)
    return values


def _of_sample(gram: Gram, sample: int) -> tuple[float, ...]:
    n = gram.shape[0]
    rows = np.random.default_rng(0).choice(n, min(sample, n), replace=False)
    matrix = gram.namespace.to_numpy(gram.block(rows, rows)).astype(np.float64)
    if not np.all(np.isfinite(matrix)):
        return ()
    values = np.linalg.eigvalsh(matrix)[::-1] * (n / len(rows))
    return tuple(np.maximum(values, 0.0).tolist())
