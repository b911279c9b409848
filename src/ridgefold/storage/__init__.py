"""Data in, models and run directories out."""

from ridgefold.storage.model_file import ModelContents, StoredArray, read_model, write_model

__all__ = [
    "ModelContents",
    "StoredArray",
    "read_model",
    "write_model",
]
