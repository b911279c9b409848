"""The columns that were learned, applied to tables of any library and to files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ridgefold.records import TableColumns
from ridgefold.tables.encode import encode
from ridgefold.tables.table_input import read_input


class EncodedTable(NamedTuple):
    """A table as numbers."""

    X: np.ndarray
    """float64, a row for each row of the table."""
    feature_names: tuple[str, ...]
    origins: tuple[str, ...]
    """For each feature, the column of the table that it is made of."""


@dataclass(frozen=True)
class TableEncoder:
    """How the columns of a table become numbers; `columns` is what a model file stores."""

    columns: TableColumns

    @property
    def names(self) -> tuple[str, ...]:
        """Columns of the table that are read; others may be there or not."""
        return self.columns.names

    @property
    def feature_names(self) -> tuple[str, ...]:
        return self.columns.feature_names

    @property
    def origins(self) -> tuple[str, ...]:
        return self.columns.origins

    def apply(self, table: Any) -> EncodedTable:
        """The numbers of a table (a frame, a dict of columns, NumPy or a path).

        Missing values are filled as they were learned to be, so that every row has numbers.
        """
        matrix = encode(read_input(table).frame, self.columns)
        return EncodedTable(matrix, self.feature_names, self.origins)
