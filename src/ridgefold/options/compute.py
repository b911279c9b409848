"""How and where a fit is computed; the model is the same."""

from __future__ import annotations

import copy
from typing import Any, Self

from sklearn.base import clone

from ridgefold.errors import InvalidInputError
from ridgefold.options.base import OptionObject
from ridgefold.solvers import SOLVERS


class Compute(OptionObject):
    """How and where a fit is computed: the argument `compute` of every estimator.

    What an estimator has no use for must be left at its default: cells have a solver of their
    own, and one exact fit is not shared out.

    Parameters
    ----------
    solver : {"auto", "primal", "cholesky", "eigendecomposition", "conjugate_gradient"}
        Of exact models; "auto" takes the cheapest exact one that fits the memory.
    tol : float, optional
        Relative residual at which an iterative solver stops; by default 1e-10, in single
        precision 1e-3.
    n_jobs : int, optional
        Kernels or cells that are worked on at once; -1: as many as there are cores.
    executor : {"auto", "serial", "threads", "processes", "dask"}, Client or str, default="auto"
        Where kernels of a search, or cells, are worked on: each is a task of its own, on one BLAS
        thread. "auto" is this process, or processes with `n_jobs`; "dask" starts workers on this
        machine for the time of the fit; or a ``distributed.Client``, or the address of a
        scheduler (``tcp://…``), or :class:`ridgefold.executors.Dask`, which says how long to wait
        where a cluster has no workers. Workers of a cluster must see the same files as this
        process. The choice, the scores and the model are the same wherever it runs. The last fit
        of an exact model on all rows is made by this process.
    run_dir : str or path, optional
        A folder in which every finished kernel, or step and cell, is kept: the same fit on the
        same folder goes on where it was stopped, and gives the same model; other data or settings
        are refused. Workers of a cluster must see it (and X, if that is mapped from a file);
        without it a temporary folder is used, which only workers on this machine see.
    device : str, optional
        Of partitioned models: work on cells there with torch, as "cuda", many at once; without it
        where X is, if that is a tensor. Rows are cut, and all results kept, in NumPy arrays by the
        processor. Exact models compute where X is.
    verbose : int, default=0
        1 shows a progress bar.

    Examples
    --------
    >>> from ridgefold import Compute, KernelRidgeCV
    >>> KernelRidgeCV(compute=Compute(n_jobs=2)).get_params()["compute__n_jobs"]
    2
    """

    argument = "compute"

    def __init__(
        self,
        *,
        solver: str = "auto",
        tol: float | None = None,
        n_jobs: int | None = None,
        executor: Any = "auto",
        run_dir: Any = None,
        device: str | None = None,
        verbose: int = 0,
    ) -> None:
        self.solver = solver
        self.tol = tol
        self.n_jobs = n_jobs
        self.executor = executor
        self.run_dir = run_dir
        self.device = device
        self.verbose = verbose

    def check(self) -> None:
        self._require_one_of("solver", ("auto", *SOLVERS))
        if self.tol is not None and (
            isinstance(self.tol, bool)
            or not isinstance(self.tol, (int, float))
            or not 0 < self.tol < 1
        ):
            raise InvalidInputError(
                f"compute.tol must lie between 0 and 1, or be None, got {self.tol!r}"
            )
        if self.device is not None and not isinstance(self.device, str):
            raise InvalidInputError(
                f'compute.device must be a name such as "cuda", or None, got {self.device!r}'
            )

    def __sklearn_clone__(self) -> Self:
        """As scikit-learn clones, but for a client of a cluster, which nothing can copy."""
        twin = type(self)(
            **{
                name: value if name == "executor" else clone(value, safe=False)
                for name, value in self.get_params(deep=False).items()
            }
        )
        for name in ("_metadata_request", "_sklearn_output_config"):
            if hasattr(self, name):
                setattr(twin, name, copy.deepcopy(getattr(self, name)))
        return twin
