"""Data in, models and run directories out."""

from ridgefold.storage.bundled import Dataset, bundled_names, load_bundled
from ridgefold.storage.model_file import ModelContents, StoredArray, read_model, write_model

__all__ = [
    "Dataset",
    "ModelContents",
    "StoredArray",
    "bundled_names",
    "load_bundled",
    "read_model",
    "write_model",
]
