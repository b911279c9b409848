"""Data in, models and run directories out."""

from ridgefold.storage.bundled import Dataset, bundled_names, load_bundled

__all__ = ["Dataset", "bundled_names", "load_bundled"]
