"""Cut rows into cells. One file a way; a new one is a line here."""

from ridgefold.cells.cut.base import Guided, Partitioner, Router, learning_rows, learning_sample
from ridgefold.cells.cut.hyperplanes import Hyperplanes
from ridgefold.cells.cut.kmeans import KMeansCells
from ridgefold.cells.cut.principal import PrincipalTree
from ridgefold.cells.cut.random import RandomSplit
from ridgefold.cells.cut.stratified import StratifiedSplit
from ridgefold.cells.cut.tree import Tree

PARTITIONERS: dict[str, Partitioner] = {
    "hyperplanes": Hyperplanes(),
    "kmeans": KMeansCells(),
    "principal": PrincipalTree(),
    "random": RandomSplit(),
    "stratified": StratifiedSplit(),
    "tree": Tree(),
}
"""Every name that `partition=` takes."""

__all__ = [
    "PARTITIONERS",
    "Guided",
    "Hyperplanes",
    "KMeansCells",
    "Partitioner",
    "PrincipalTree",
    "RandomSplit",
    "Router",
    "StratifiedSplit",
    "Tree",
    "learning_rows",
    "learning_sample",
]
