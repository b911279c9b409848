"""Numbers as people write them."""

from __future__ import annotations

import numpy as np
import pytest

from ridgefold.report.formatting import number, percent, plural, setting, tick


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (3.4567, "3.46"),
        (0.5, "0.500"),
        (-12.345, "−12.3"),
        (1234.5, "1,234"),
        (0.00123, "0.00123"),
        (1.234e-5, "1.23\u00a0·\u00a010⁻⁵"),
        (1e-6, "10⁻⁶"),
        (9.9999e-6, "10⁻⁵"),
        (2.5e12, "2.5\u00a0·\u00a010¹²"),
        (0.0, "0"),
        (float("nan"), "–"),
        (-np.inf, "−∞"),
    ],
)
def test_numbers_have_three_digits(value, shown):
    assert number(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(0.001, "0.001"), (1.0, "1"), (0.0464, "0.0464"), (100.0, "100")]
)
def test_settings_have_no_zeros_that_say_nothing(value, shown):
    assert setting(value) == shown


@pytest.mark.parametrize(
    ("share", "shown"), [(0.0424, "4.2"), (0.2416, "24.2"), (1.0, "100"), (-0.074, "−7.4")]
)
def test_shares_are_in_percent(share, shown):
    assert percent(share) == f"{shown}\u00a0%"


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.001, "0.001"), (1e-4, "10⁻⁴"), (20000.0, "20,000"), (-2.5, "−2.5"), (0, "0"), (1e6, "10⁶")],
)
def test_ticks_are_short(value, shown):
    assert tick(value) == shown


def test_one_row_is_not_rows():
    assert plural(1, "row") == "1\u00a0row"
    assert plural(2000, "row") == "2,000\u00a0rows"
