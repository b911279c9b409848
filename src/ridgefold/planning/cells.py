"""What a partitioned fit costs on a cluster of a given size, from shapes alone.

Every step says where it runs and what moves. Rows are read from a shared file system and
placed, block by block, into files in the order of their cells; then every task of about 4,096
rows reads its cells from those files, fits them and writes their models, which this process
gathers. What is not spread over workers bounds what more of them can gain.
"""

from __future__ import annotations

import math
from typing import Any

from ridgefold.planning.calibration import known_rates
from ridgefold.planning.cell_steps import CellPlans
from ridgefold.planning.explain import Explanation
from ridgefold.planning.rates import seconds
from ridgefold.planning.words import in_bytes, in_seconds
from ridgefold.records import CELL_SEARCH, Cost, Problem, Resources

CELL_ROWS_OF_FEW = 512
"""Rows of cells that are likely to be chosen, where there are not many."""
REPEATS = 2.0
"""Cells hold the rows so many times at most, those that they share counted in each."""
ROWS_A_TASK = 4096
DISK_BYTES = 2e8
"""Assumed of the shared file system: bytes a second that every worker reads or writes,"""
SECONDS_TO_OPEN = 1e-3
"""the time to open a file there,"""
SECONDS_A_TASK = 3e-3
"""and what a task costs this process: sent, noted, its models read and checked."""
_SECONDS_A_CUT = 3e-4
_LEARNING_NUMBERS, _LEARNING_ROWS_A_CELL = 1 << 22, 16
_SMALLEST_BLOCK = float(1 << 25)
_ROWS_A_CELL_AND_BLOCK = 16
_SPECTRA_TRIED, _ROWS_OF_A_SPECTRUM = 100, 640.0
"""Eigendecompositions of searches for a pair, in cells of two sizes and in the final ones."""
_CELLS_ASKED = 4
"""So many answer a search together."""


def _cell_rows(n_rows: int) -> int:
    return CELL_SEARCH.largest_of_many if n_rows > CELL_SEARCH.many_rows else CELL_ROWS_OF_FEW


def explain_cells(
    problem: Problem,
    workers: int,
    resources: Resources,
    *,
    slopes: bool = True,
) -> Explanation:
    """The steps of a partitioned fit on `workers` processes of one BLAS thread each.

    `resources` are those of one worker, and of the process that drives them; `slopes` says whether
    cells are cut across directions in which targets change.
    """
    n, d, size = problem.n_rows, problem.n_columns, problem.itemsize
    memory = resources.memory_bytes
    m = max(1, round(n / _cell_rows(n)))
    entries = n * (REPEATS if m > 1 else 1.0)
    row = size * d
    placed = size * (d + problem.n_targets) + 16
    block = min(memory / 8, max(_SMALLEST_BLOCK, _ROWS_A_CELL_AND_BLOCK * m * row))
    blocks = max(1, math.ceil(n * row / block))
    tasks = max(1, math.ceil(entries / ROWS_A_TASK))
    sample = min(n, max(_LEARNING_NUMBERS // d, _LEARNING_ROWS_A_CELL * m))
    depth = max(1.0, math.log2(m))
    model = size * entries * problem.n_targets
    busy_trying = min(workers, _CELLS_ASKED)
    busy_placing, busy_fitting = min(workers, blocks), min(workers, tasks)
    plans = CellPlans(problem, resources, 1, overlap=True)
    cell = _cell_seconds(problem, entries / m)

    steps = [
        _step(
            "looking at all rows (finite? the same as before?)",
            "this process",
            n * row / DISK_BYTES,
            2 * _SMALLEST_BLOCK,
            f"{in_bytes(n * row)} read from the shared files",
        ),
        _step(
            "finding two regions in which cells are tried",
            "this process",
            2 * n * row / DISK_BYTES,
            2 * _SMALLEST_BLOCK,
            f"{in_bytes(2 * n * row)} read, 4,096 rows of each region to shared files",
        ),
        _step(
            "choosing how many cells, and one pair for all",
            f"{busy_trying:,} of {workers:,} workers",
            _SPECTRA_TRIED * _spectrum_seconds(problem) / busy_trying,
            3 * size * 1024.0**2,
            "rows of the regions read by every task",
        ),
        _step(
            f"learning {m:,} cells from {sample:,} rows",
            "this process",
            m * _SECONDS_A_CUT + 6 * sample * row * depth / known_rates().at("memory", 1200),
            3.0 * sample * row,
            f"{in_bytes(sample * row)} read; {in_bytes(m * (row + 32))} of cuts to shared files",
        ),
        _step(
            f"placing rows in {blocks:,} blocks",
            f"{busy_placing:,} of {workers:,} workers",
            (n * row + entries * placed) / DISK_BYTES / busy_placing
            + 4 * entries * depth * row / known_rates().at("memory", 1200) / busy_placing,
            4.0 * block,
            f"{in_bytes(n * row)} read, {in_bytes(entries * placed)} written",
        ),
        _step(
            f"fitting cells in {tasks:,} tasks",
            f"{busy_fitting:,} of {workers:,} workers",
            (m * cell + tasks * blocks * SECONDS_TO_OPEN + (entries * placed + model) / DISK_BYTES)
            / busy_fitting,
            3.0 * ROWS_A_TASK * row + 4.0 * size * (entries / m) ** 2,
            f"{in_bytes(entries * placed)} read, {in_bytes(model)} of models written; no rows "
            "between workers",
        ),
        _step(
            "gathering the models",
            "this process, while cells are fitted",
            tasks * SECONDS_A_TASK + 2 * model / DISK_BYTES,
            2 * _SMALLEST_BLOCK + 8.0 * m * 8,
            f"{in_bytes(model)} read and written",
        ),
    ]
    looking, finding, trying, learning, placing, fitting, gathering = (
        step["predicted_seconds"] for step in steps
    )
    serial = looking + finding + learning
    if slopes and m > 1:
        plan = plans.slopes()
        some = CELL_SEARCH.rows_for_slopes(n, d)
        serial += plan.seconds
        steps.insert(
            1,
            _step(
                f"finding slopes from {some:,} rows",
                "this process",
                plan.seconds,
                plan.cost.peak_bytes,
                f"{in_bytes(some * row)} read",
            ),
        )
    total = serial + trying + placing + max(fitting, gathering)
    described = _described(problem, m)
    for step in steps:
        step["problem"] = described
        step["memory_budget"] = memory
        step["refused"] = (
            f"needs {in_bytes(step['predicted_bytes'])} of {in_bytes(memory)}"
            if step["predicted_bytes"] > memory
            else None
        )
    return Explanation(
        (
            {
                "step": "partitioned fit",
                "problem": described,
                "method": "cells",
                "predicted_seconds": total,
                "serial_seconds": serial,
                "disk_bytes": entries * placed + 2 * model + 16 * entries,
                "workers": workers,
                "cells": m,
                "assumptions": [
                    f"rows are shared by cells {REPEATS:g} times at most",
                    f"shared files: {in_bytes(DISK_BYTES)} a second and worker, "
                    f"{in_seconds(SECONDS_TO_OPEN)} to open one",
                    f"{in_seconds(SECONDS_A_TASK)} of this process for a task",
                    "workers as fast as this machine, one thread each",
                ],
                "parts": steps,
            },
        )
    )


def _cell_seconds(problem: Problem, rows: float) -> float:
    """One cell: its kernel matrix, one Cholesky factorisation and the solution."""
    flops = {"kernel": rows**2, "cholesky": rows**3 / 3, "calls": 4.0}
    return seconds(Cost(flops, 8 * rows**2, size=rows), problem, known_rates())


def _spectrum_seconds(problem: Problem) -> float:
    """One kernel in one cell, at every ridge value."""
    rows = _ROWS_OF_A_SPECTRUM
    flops = {"kernel": rows**2, "eigendecomposition": 9 * rows**3}
    return seconds(Cost(flops, 24 * rows**2, size=rows), problem, known_rates())


def _step(name: str, where: str, predicted: float, peak_bytes: float, moves: str) -> dict[str, Any]:
    return {
        "step": name,
        "where": where,
        "predicted_seconds": predicted,
        "predicted_bytes": peak_bytes,
        "moves": moves,
    }


def _described(problem: Problem, cells: int) -> str:
    number = "float32" if problem.itemsize == 4 else "float64"
    return f"{problem.n_rows:,} rows, {problem.n_columns} columns, {cells:,} cells, {number}"
