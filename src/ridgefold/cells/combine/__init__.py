"""Put local models together to one prediction. One file a way; a new one is a line here."""

from ridgefold.cells.combine.average import Average
from ridgefold.cells.combine.base import Assignment, Combiner, cell_alpha
from ridgefold.cells.combine.blend import Blend
from ridgefold.cells.combine.route import Route

COMBINERS: dict[str, Combiner] = {"average": Average(), "blend": Blend(), "route": Route()}
"""Every name that `combine=` takes."""

__all__ = ["COMBINERS", "Assignment", "Average", "Blend", "Combiner", "Route", "cell_alpha"]
