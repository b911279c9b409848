"""Ways to solve one ridge system. A new solver is one file and one line here."""

from ridgefold.solvers.base import RidgeSystem, Solver
from ridgefold.solvers.cholesky import Cholesky
from ridgefold.solvers.conjugate_gradient import ConjugateGradient
from ridgefold.solvers.eigendecomposition import Eigendecomposition
from ridgefold.solvers.primal import Primal

SOLVERS: dict[str, Solver] = {
    solver.name: solver
    for solver in (Primal(), Cholesky(), Eigendecomposition(), ConjugateGradient())
}

__all__ = ["SOLVERS", "RidgeSystem", "Solver"]
