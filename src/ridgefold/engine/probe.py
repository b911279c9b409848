"""A cheap look at the data that tells how hard they are."""

from __future__ import annotations

import numpy as np

from ridgefold.kernels import Gram

_SAMPLE = 256


def probe_spectrum(gram: Gram, sample: int = _SAMPLE) -> tuple[float, ...]:
    """The largest eigenvalues of K, estimated from a few rows spread over the data.

    Those of a sample of m of n rows, times n/m: right for the large ones, too small towards the
    end. Costs m² kernel values and m³ work, some milliseconds.
    """
    n = gram.shape[0]
    rows = np.random.default_rng(0).choice(n, min(sample, n), replace=False)
    matrix = gram.namespace.to_numpy(gram.block(rows, rows)).astype(np.float64)
    if not np.all(np.isfinite(matrix)):
        return ()
    values = np.linalg.eigvalsh(matrix)[::-1] * (n / len(rows))
    return tuple(np.maximum(values, 0.0).tolist())
