"""The order in which the gallery shows the examples."""

from __future__ import annotations

ORDER = (
    "quickstart",
    "messy_table",
    "exact_cross_validation",
    "from_scikit_learn",
    "learned_scales",
    "intervals",
    "effects",
    "probabilities",
    "many_rows",
    "larger_than_memory",
    "planner",
    "report",
)


class ReadingOrder:
    """A sort key for sphinx-gallery: examples in the order above, others after them by name."""

    def __init__(self, source_folder: str) -> None:
        self._folder = source_folder

    def __call__(self, file_name: str) -> tuple[int, str]:
        stem = file_name.removesuffix(".py")
        return (ORDER.index(stem) if stem in ORDER else len(ORDER), stem)

    def __repr__(self) -> str:
        return "ReadingOrder"
