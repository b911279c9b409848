"""Numbers and names as a page shows them."""

from __future__ import annotations

import math
from typing import Any

NARROW = "\u00a0"
"""A space that no line is broken at."""
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def clean(text: Any, longest: int | None = None) -> str:
    """Text from data or files on one line, without characters that are not to be seen.

    What controls a terminal, turns the direction of writing or cannot be written as XML becomes
    a mark. Names longer than `longest` lose their middle.
    """
    shown = "".join(c if c.isprintable() else ("\u0020" if c.isspace() else "�") for c in str(text))
    if longest is None or len(shown) <= longest:
        return shown
    tail = longest // 3
    return f"{shown[: longest - tail - 1]}…{shown[-tail:]}"


def power_of_ten(exponent: int) -> str:
    return f"10{str(exponent).translate(_SUPERSCRIPTS)}"


def number(value: float, digits: int = 3) -> str:
    """A number to so many digits, with groups of three, as people write it."""
    value = float(value)
    if not math.isfinite(value):
        return "–" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    if value == 0:
        return "0"
    sign, size = ("−" if value < 0 else ""), abs(value)
    exponent = math.floor(math.log10(size))
    if exponent < -3 or exponent >= 9:
        mantissa = f"{size / 10.0**exponent:.{digits - 1}f}".rstrip("0").rstrip(".")
        if mantissa == "10":
            mantissa, exponent = "1", exponent + 1
        factor = "" if mantissa == "1" else f"{mantissa}{NARROW}·{NARROW}"
        return f"{sign}{factor}{power_of_ten(exponent)}"
    places = max(0, digits - 1 - exponent)
    return f"{sign}{size:,.{places}f}"


def setting(value: float) -> str:
    """A number that someone might have chosen: without zeros that say nothing."""
    shown = number(value)
    return shown.rstrip("0").rstrip(".") if "." in shown and NARROW not in shown else shown


def percent(share: float, digits: int = 3) -> str:
    """A share in percent; small ones to the first digit that says something."""
    if not math.isfinite(share):
        return "–"
    value = 100 * share
    size = abs(value)
    if size >= 9.995 and digits < 4:
        text = f"{value:.0f}" if size >= 99.95 or digits < 3 else f"{value:.1f}"
    else:
        text = f"{value:.1f}"
    return f"{text.replace('-', '−')}{NARROW}%"


def count(n: int) -> str:
    return f"{n:,}"


def plural(n: int, one: str, many: str | None = None) -> str:
    """ "1 row", "2,000 rows"."""
    return f"{count(n)}{NARROW}{one if n == 1 else (many or one + 's')}"


def tick(value: float, _position: int | None = None) -> str:
    """The label of a tick."""
    if value == 0:
        return "0"
    size = abs(value)
    exponent = math.log10(size)
    if size < 1e-3 or size >= 1e6:
        if math.isclose(exponent, round(exponent), abs_tol=1e-9):
            return ("−" if value < 0 else "") + power_of_ten(round(exponent))
        return number(value, 2).replace(NARROW, "")
    text = f"{size:,.6g}" if size < 1e4 else f"{size:,.0f}"
    text = text.replace(",", "") if size < 1e4 else text
    return ("−" if value < 0 else "") + text
