"""Put local models together to one prediction. One file a way; a new one is a line here."""

from ridgefold.combiners.average import Average
from ridgefold.combiners.base import Assignment, Combiner, cell_alpha
from ridgefold.combiners.blend import Blend
from ridgefold.combiners.route import Route

COMBINERS: dict[str, Combiner] = {"average": Average(), "blend": Blend(), "route": Route()}
"""Every name that `combine=` takes."""

__all__ = ["COMBINERS", "Assignment", "Average", "Blend", "Combiner", "Route", "cell_alpha"]
