"""Work grows with the columns of a table, and not with their square."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from typer.testing import CliRunner

from ridgefold.cli import app
from ridgefold.tables.tables import open_table

FEW, MANY = 500, 2000
MOST_TIMES_LONGER = 8.0
"""Four times the columns: 4 if work is in proportion, 16 if each column looks at all the others."""


def run(*arguments):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == 0, (result.output, result.stderr)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables of two widths, and a model of each."""
    folder, rng = tmp_path_factory.mktemp("wide"), np.random.default_rng(0)
    for width in (FEW, MANY):
        table = pa.table({f"c{j}": rng.integers(0, 100, 20) for j in range(width)})
        pa_csv.write_csv(table.append_column("y", table.column(0)), folder / f"{width}.csv")
        fit(folder, width)
    return folder


def read(folder, width):
    file = open_table(folder / f"{width}.csv")
    names = file.names()
    file.read(names)
    list(file.batches(names, {name: pa.float64() for name in names}, lambda share: None))


def fit(folder, width):
    fixed = ("--alpha", 0.1, "--length-scale", 10, "-q", "--force")
    run("fit-kernel", folder / f"{width}.csv", "-t", "y", "-o", folder / f"m{width}", *fixed)


def predict(folder, width):
    output = ("-o", folder / f"o{width}.csv", "--keep-all", "-q", "--force")
    run("predict", folder / f"m{width}", folder / f"{width}.csv", *output)


def inspect(folder, width):
    run("inspect", folder / f"m{width}")


@pytest.mark.parametrize("work", [read, fit, predict, inspect], ids=lambda work: work.__name__)
def test_four_times_the_columns_take_no_more_than_eight_times_as_long(work, folder):
    def seconds(width):
        begin = time.process_time()
        work(folder, width)
        return time.process_time() - begin

    # The least of several: other work on the machine only adds to it.
    few = min(seconds(FEW) for _ in range(3))
    many = min(seconds(MANY) for _ in range(2))
    assert many < MOST_TIMES_LONGER * few, (few, many)
