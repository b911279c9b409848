"""Rows of tables: read, name and encode them, whole or in blocks."""

from ridgefold.tables.bundled import Dataset, bundled_names, load_bundled

__all__ = [
    "Dataset",
    "bundled_names",
    "load_bundled",
]
