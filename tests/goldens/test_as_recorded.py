"""Every public way of fitting gives, on every table, what it gave: errors, choices, methods.

A heuristic that changes shows here, for better or worse. After a change on purpose, run
`python -m goldens.record` in tests/ and read the difference: each line of expected.json is a fit.
"""

from __future__ import annotations

import json
from zlib import crc32

import pytest

from goldens.bands import deviations
from goldens.fits import WAYS, cases, facts
from goldens.record import EXPECTED
from goldens.tables import TABLES, at_hand

FROZEN = json.loads(EXPECTED.read_text(encoding="utf-8"))
CASES = cases()
SLOW = (
    "cells in learned scales",
    "cells of any family",
    "random average",
    "families",
    "path of many rows",
)
"""Ways that take a second and more: by default on the tables where they matter most."""


def by_default(name: str, way: str) -> bool:
    """About a third of all fits: a fixed draw that no table and no way is left out of."""
    if WAYS[way].targets > 1 or WAYS[way].frames or way == "cells without a bias":
        return True  # for few tables
    if way in SLOW:
        return (name, way) in {
            ("irrelevant columns", "cells in learned scales"),
            ("rough", "cells of any family"),
            ("heteroscedastic", "random average"),
            ("rough", "families"),
            ("smooth", "path of many rows"),
        }
    return crc32(f"{name}: {way}".encode()) % 3 == 0


@pytest.mark.parametrize(
    ("name", "way"),
    [
        pytest.param(*case, id=": ".join(case), marks=() if by_default(*case) else pytest.mark.full)
        for case in CASES
    ],
)
def test_a_fit_comes_out_as_recorded(name, way):
    assert deviations(FROZEN[f"{name}: {way}"], facts(name, way)) == []


def test_every_fit_is_recorded_and_no_other():
    here = {key for key in FROZEN if at_hand(key.partition(": ")[0])}
    assert here == {": ".join(case) for case in CASES}


def test_the_default_draw_leaves_out_no_way_of_fitting():
    drawn = [case for case in CASES if by_default(*case)]
    assert {way for _, way in drawn} == set(WAYS)
    assert {name for name, _ in drawn} == set(filter(at_hand, TABLES))


def test_a_band_tells_a_changed_number_and_a_changed_choice():
    frozen = {"error": [0.5, 0.005], "cells": {"any of": [4, 5]}}
    assert deviations(frozen, {"error": 0.504, "cells": 5}) == []
    assert deviations(frozen, {"error": 0.506, "cells": 5}) == ["error is 0.506, was 0.5 ± 0.005"]
    assert deviations(frozen, {"error": 0.5, "cells": 6}) == ["cells is 6, was 4 or 5"]
    assert deviations(frozen, {"error": float("nan")}) == [
        "error is nan, was 0.5 ± 0.005",
        "cells is None, was 4 or 5",
    ]
