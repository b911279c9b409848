"""Cells around centres (Tandon et al., arXiv 1608.01976, DC-KRR).

k-means on a sample by scikit-learn's mini-batch algorithm; every row then belongs to its
nearest centre. With a kernel, distances are those of its feature space: k-means on Nyström
features Φ(x) = k(x, Z)·k(Z, Z)^(−½) of some landmark rows Z approximates kernel k-means.

Cells are compact but not balanced: the largest one sets the running time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ridgefold.cells.cut.base import (
    MOST_REPEATS,
    Router,
    cut,
    finite_floats,
    membership_in_blocks,
    route_in_blocks,
)
from ridgefold.kernels import Kernel, KernelGram
from ridgefold.linalg.threads import threads
from ridgefold.records import Cells, Membership

_MOST_SAMPLE_ROWS = 100_000
"""Centres are looked for in a sample of at most so many rows: k-means takes seconds on them."""
_SAMPLE_ROWS_A_CELL = 200
"""Rows of the sample for every cell: enough for a mean that does not depend on the draw."""
_LANDMARKS = 200
"""Landmark rows of a kernel's feature space: the Nyström features are as many."""
_ROWS_A_CELL_TO_SPARE = 20
"""With so many rows a cell, a fifth of the rows can be kept out of the search for centres."""
_WIDTH_ROWS = 2000
"""Rows from which the width of bands is found."""
_RANK_TOLERANCE = 1e-10
"""Directions of landmarks with eigenvalues below this share of the largest are rounding errors."""


@dataclass(frozen=True)
class KMeansCells:
    """Cells of the rows nearest to each of a set of centres.

    Parameters
    ----------
    kernel : Kernel, optional
        Measure distances in this kernel's feature space; None measures them between rows.
    """

    kernel: Kernel | None = None
    in_space = True

    def fit(self, X: np.ndarray, n_cells: int, overlap: float, rng: np.random.Generator) -> Cells:
        return cut(self, X, n_cells, overlap, rng)

    def learn(
        self, X: np.ndarray, n_cells: int, overlap: float, rng: np.random.Generator
    ) -> tuple[Router, int]:
        from sklearn.cluster import MiniBatchKMeans

        n = X.shape[0]
        n_cells = min(n_cells, n)
        size = min(n, _MOST_SAMPLE_ROWS, max(2000, _SAMPLE_ROWS_A_CELL * n_cells))
        if overlap > 0 and n >= _ROWS_A_CELL_TO_SPARE * n_cells:
            size = min(size, n - n // 5)  # the others say how wide bands are
        chosen = np.sort(rng.choice(n, size, replace=False))
        sample = np.asarray(X[chosen], dtype=np.float64)
        landmarks = self._landmarks(sample, rng)
        features = self._features(landmarks, sample)
        means = MiniBatchKMeans(
            min(n_cells, size),
            random_state=int(rng.integers(2**31)),
            n_init=1,
            batch_size=max(1024, 2 * n_cells),
        )
        middle = features.mean(axis=0)  # digits are for differences
        with threads(1):
            means.fit(features - middle)
        centres = np.asarray(means.cluster_centers_, dtype=np.float64) + middle
        router = {**landmarks, "centres": centres}
        used = np.unique(self.route(router, X))
        router["centres"] = router["centres"][used]
        others = np.setdiff1d(np.arange(n), chosen)
        if len(others) < max(1, min(_WIDTH_ROWS, n // 5)):
            others = chosen
        measured = others[
            np.linspace(0, len(others) - 1, min(len(others), _WIDTH_ROWS)).astype(int)
        ]
        router["width"] = np.asarray(self._width(router, np.asarray(X[measured]), overlap))
        return router, len(used)

    def _landmarks(self, sample: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Landmark rows Z and k(Z, Z)^(−½), or nothing without a kernel."""
        if self.kernel is None:
            return {}
        chosen = rng.choice(len(sample), min(len(sample), _LANDMARKS), replace=False)
        landmarks = sample[np.sort(chosen)]
        values, vectors = np.linalg.eigh(KernelGram(self.kernel, landmarks).full())
        kept = values > _RANK_TOLERANCE * values[-1]
        whitening = vectors[:, kept] / np.sqrt(values[kept])
        return {"landmarks": landmarks, "whitening": whitening}

    def _features(self, router: Router, rows: np.ndarray) -> np.ndarray:
        rows = np.asarray(rows, dtype=np.float64)
        if self.kernel is None:
            return rows
        return np.asarray(
            KernelGram(self.kernel, rows, router["landmarks"]).full() @ router["whitening"]
        )

    def _centred(self, router: Router, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Features of rows, and centres, less the mean of centres: digits are for differences."""
        centres = router["centres"]
        middle = centres.mean(axis=0)
        return self._features(router, rows) - middle, centres - middle

    def _squared_distances(self, router: Router, rows: np.ndarray) -> np.ndarray:
        """Squared distances to all centres, the squared norm of the row left out."""
        return _less_norms(*self._centred(router, rows))

    def _distances(self, router: Router, rows: np.ndarray) -> np.ndarray:
        features, centres = self._centred(router, rows)
        squares = _less_norms(features, centres)
        squares += np.sum(features * features, axis=1)[:, None]
        return np.asarray(np.sqrt(np.maximum(squares, 0.0)))

    def _width(self, router: Router, rows: np.ndarray, overlap: float) -> float:
        """How much farther a centre may be than the nearest one, for a row to belong to it too.

        A share of the mean distance of rows from their own centres; less where rows would belong
        to more than two cells on average. In many columns of noise all centres are about as far
        as the nearest, and cells would hold all rows. `rows` took no part in the search for
        centres, if there are enough of those: nearest centres are farther from others.
        """
        distances = self._distances(router, rows)
        nearest = np.min(distances, axis=1)
        width = overlap * float(np.mean(nearest))
        most = int(MOST_REPEATS * len(rows))
        if distances.size > most:
            excess = (distances - nearest[:, None]).ravel()
            width = min(width, float(np.partition(excess, most)[most]))
        return width

    def route(self, router: Router, X: np.ndarray) -> np.ndarray:
        return route_in_blocks(
            X,
            lambda rows: np.argmin(self._squared_distances(router, rows), axis=1),
            self._numbers(router, X),
        )

    def membership(self, router: Router, X: np.ndarray) -> Membership:
        """Weights ∝ max(0, 1 − (d_c − d_min)/width), d_c the distance to centre c."""
        width = float(router["width"])

        def place(rows: np.ndarray) -> Membership:
            distances = self._distances(router, rows)
            excess = distances - np.min(distances, axis=1)[:, None]
            if width > 0:
                shares = np.maximum(1.0 - excess / width, 0.0)
            else:
                shares = np.zeros_like(excess)
                shares[np.arange(len(rows)), np.argmin(distances, axis=1)] = 1.0
            shares /= np.sum(shares, axis=1)[:, None]
            at, cell = np.nonzero(shares)
            return Membership(at, cell, shares[at, cell])

        return membership_in_blocks(X, place, 3 * self._numbers(router, X))

    def accepts(self, router: Router, n_cells: int, n_columns: int) -> bool:
        return (
            self.kernel is None
            and "landmarks" not in router
            and finite_floats(router, {"centres": (n_cells, n_columns), "width": ()})
        )

    @staticmethod
    def _numbers(router: Router, X: np.ndarray) -> int:
        """Numbers alive for every row that is placed."""
        return int(X.shape[1] + len(router["centres"]) + len(router.get("landmarks", ())))


def _less_norms(features: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """‖x − c‖² − ‖x‖² for all rows and centres."""
    squares = features @ (-2.0 * centres.T)
    squares += np.sum(centres * centres, axis=1)[None, :]
    return np.asarray(squares)
