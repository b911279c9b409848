"""Cut rows into cells. One file a way; a new one is a line here."""

from ridgefold.partitioners.base import Guided, Partitioner, Router, learning_rows
from ridgefold.partitioners.hyperplanes import Hyperplanes
from ridgefold.partitioners.kmeans import KMeansCells
from ridgefold.partitioners.principal import PrincipalTree
from ridgefold.partitioners.random import RandomSplit
from ridgefold.partitioners.stratified import StratifiedSplit
from ridgefold.partitioners.tree import Tree

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
]
