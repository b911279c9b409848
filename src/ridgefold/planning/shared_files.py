"""What a fit in cells reads, sends and writes where rows lie in files, beside the work on them.

Rows are read from files, by a cluster from a shared file system, and placed, block by block, into
files in the order of their cells; then every task of about 4,096 rows reads its cells from those
files, fits them and writes their models, which the process that drives gathers. What is not spread
over workers bounds what more of them can gain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ridgefold.planning.amounts import in_bytes, in_seconds
from ridgefold.planning.cell_memory import ROWS_A_TASK
from ridgefold.planning.explain import Explanation
from ridgefold.records import CELL_SEARCH, Plan, Problem, Resources

DISK_BYTES = 2e8
"""Assumed of the file system: bytes a second that every worker reads or writes."""
SECONDS_TO_OPEN = 1e-3
"""Assumed of the file system: the time to open a file."""
SECONDS_A_TASK = 3e-3
"""What a task costs the process that drives: sent, noted, its models read and checked."""
_BLOCK_SHARE = 0.125
"""Of the memory of a worker, for a block of rows that is placed."""
_SMALLEST_BLOCK = float(1 << 25)
"""Bytes of a block of rows: shorter ones would be many files."""
_ROWS_A_CELL_AND_BLOCK = 16
"""Rows that a block has for every cell, at least, so that pieces are worth a file."""
_CELLS_ASKED = 4
"""Cells that answer a search together, each of them a task."""
_HERE = "this process"


class InMemory:
    """Rows in memory: nothing is read or sent beside the work."""

    def reading(self, plan: Plan, rows: int, further: str = "") -> Plan:
        """Work of this process on some of the rows."""
        return plan

    def trying(self, plan: Plan) -> Plan:
        """Work on regions of the rows, spread over a few workers."""
        return plan

    def asking(self, plan: Plan) -> Plan:
        """Work on a few cells."""
        return plan

    def fitting(self, plan: Plan, sizes: np.ndarray) -> Plan:
        """Work on all cells."""
        return plan


@dataclass(frozen=True)
class SharedFiles(InMemory):
    """Rows in files; with workers, each has one BLAS thread and reads from there."""

    problem: Problem
    workers: int | None
    repeats: float
    """Cells that hold a row, on average."""

    @property
    def row_bytes(self) -> int:
        return self.problem.itemsize * self.problem.n_columns

    @property
    def regions_bytes(self) -> float:
        """What is read to find the rows of two regions."""
        return float(CELL_SEARCH.regions * self.problem.n_rows * self.row_bytes)

    @property
    def _placed_bytes(self) -> float:
        """Of a row in the order of cells: with its targets, number and share."""
        return self.problem.itemsize * (self.problem.n_columns + self.problem.n_targets) + 16

    @property
    def _entries(self) -> float:
        return self.problem.n_rows * self.repeats

    def _busy(self, most: int) -> tuple[int, str]:
        if self.workers is None:
            return 1, ""
        busy = min(self.workers, most)
        return busy, f"{busy:,} of {self.workers:,} workers"

    def _here(self) -> str:
        return "" if self.workers is None else _HERE

    def reading(self, plan: Plan, rows: int, further: str = "") -> Plan:
        read = float(rows * self.row_bytes)
        words = f"{in_bytes(read)} read" + (f"; {further}" if further else "")
        return replace(
            plan, seconds=plan.seconds + read / DISK_BYTES, where=self._here(), moves=words
        )

    def looking(self, plan: Plan) -> Plan:
        """A pass over all rows."""
        return self.reading(plan, self.problem.n_rows)

    def trying(self, plan: Plan) -> Plan:
        read, rows = self.regions_bytes, CELL_SEARCH.region_rows
        busy, where = self._busy(_CELLS_ASKED)
        words = (
            f"{in_bytes(read)} read by this process; {rows:,} rows of both regions by every task"
        )
        seconds = plan.seconds / busy + read / DISK_BYTES
        return replace(plan, seconds=seconds, where=where, moves=words)

    def asking(self, plan: Plan) -> Plan:
        busy, where = self._busy(_CELLS_ASKED)
        return replace(
            plan, seconds=plan.seconds / busy, where=where, moves="rows of a few cells read"
        )

    def block_bytes(self, memory_bytes: float, n_cells: int) -> float:
        """Rows that are placed at once."""
        least = _ROWS_A_CELL_AND_BLOCK * n_cells * self.row_bytes
        return min(_BLOCK_SHARE * memory_bytes, max(_SMALLEST_BLOCK, least))

    def _blocks(self, memory_bytes: float, n_cells: int) -> int:
        read = self.problem.n_rows * self.row_bytes
        return max(1, math.ceil(read / self.block_bytes(memory_bytes, n_cells)))

    def placing(self, plan: Plan, n_cells: int) -> Plan:
        """Every block is read, and its rows written in the order of their cells."""
        read = float(self.problem.n_rows * self.row_bytes)
        written = self._entries * self._placed_bytes
        busy, where = self._busy(self._blocks(plan.resources.memory_bytes, n_cells))
        seconds = (plan.seconds + (read + written) / DISK_BYTES) / busy
        words = f"{in_bytes(read)} read, {in_bytes(written)} written"
        return replace(plan, seconds=seconds, where=where, moves=words)

    def fitting(self, plan: Plan, sizes: np.ndarray) -> Plan:
        """Every task reads its cells and writes their models; one process gathers these."""
        entries, problem = float(np.sum(sizes)), self.problem
        tasks = max(1, math.ceil(entries / ROWS_A_TASK))
        blocks = self._blocks(plan.resources.memory_bytes, len(sizes))
        busy, where = self._busy(tasks)
        read = entries * self._placed_bytes
        model = problem.itemsize * entries * problem.n_targets
        opened = tasks * blocks * SECONDS_TO_OPEN
        fitting = (plan.seconds + opened + (read + model) / DISK_BYTES) / busy
        gathering = tasks * SECONDS_A_TASK + 2 * model / DISK_BYTES
        words = (
            f"{in_bytes(read)} read in {tasks:,} tasks, {in_bytes(model)} of models written and "
            f"gathered by this process; no rows between workers"
        )
        peak = plan.cost.peak_bytes + 3.0 * ROWS_A_TASK * self.row_bytes
        return replace(
            plan,
            seconds=max(fitting, gathering),
            cost=replace(plan.cost, peak_bytes=peak),
            where=where,
            moves=words,
        )

    @property
    def disk_bytes(self) -> float:
        """What a fit leaves in files beside the rows: rows in the order of cells, and models."""
        model = 2.0 * self.problem.itemsize * self._entries * self.problem.n_targets
        return self._entries * (self._placed_bytes + 16) + model


def explain_on_workers(
    plans: Sequence[tuple[str, Plan | Exception]],
    files: SharedFiles,
    n_cells: int,
    resources: Resources,
) -> Explanation:
    """The steps of a fit on a cluster, each with the place where it runs and what moves."""
    problem, memory = files.problem, resources.memory_bytes
    number = "float32" if problem.itemsize == 4 else "float64"
    described = f"{problem.n_rows:,} rows, {problem.n_columns} columns, {n_cells:,} cells, {number}"
    parts = [_part(name, plan, memory) for name, plan in plans]
    for part in parts:
        part["problem"] = described
    serial = sum(part["predicted_seconds"] for part in parts if part["where"] == _HERE)
    if any("regions" in part["moves"] for part in parts):
        serial += files.regions_bytes / DISK_BYTES
    return Explanation(
        (
            {
                "step": "partitioned fit",
                "problem": described,
                "method": "cells",
                "predicted_seconds": sum(part["predicted_seconds"] for part in parts),
                "serial_seconds": serial,
                "disk_bytes": files.disk_bytes,
                "workers": files.workers,
                "cells": n_cells,
                "assumptions": [
                    f"rows are shared by {files.repeats:g} cells on average",
                    f"shared files: {in_bytes(DISK_BYTES)} a second and worker, "
                    f"{in_seconds(SECONDS_TO_OPEN)} to open one",
                    f"{in_seconds(SECONDS_A_TASK)} of this process for a task",
                    "workers as fast as this machine, one thread each",
                ],
                "parts": parts,
            },
        )
    )


def _part(name: str, plan: Plan | Exception, memory_bytes: float) -> dict[str, Any]:
    """A step in words and numbers; a plan that is too large for a worker says so."""
    if isinstance(plan, Exception):
        refused, where, seconds, peak, moves = str(plan), _HERE, 0.0, 0.0, "nothing"
    else:
        where, moves = plan.where or _HERE, plan.moves or "nothing"
        seconds, peak, refused = plan.seconds, plan.cost.peak_bytes, ""
        if peak > memory_bytes:
            refused = f"needs {in_bytes(peak)} of {in_bytes(memory_bytes)}"
    return {
        "step": name,
        "where": where,
        "predicted_seconds": seconds,
        "predicted_bytes": peak,
        "moves": moves,
        "memory_budget": memory_bytes,
        "refused": refused or None,
    }
