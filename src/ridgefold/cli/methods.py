"""`ridgefold methods`: the ways to compute that there are."""

from __future__ import annotations

import inspect as python_inspect
from typing import Any

from rich.console import Console
from rich.table import Table

from ridgefold.cli.exit_codes import command
from ridgefold.cli.options import CommandOptions as Options
from ridgefold.cli.options import say


@command
def methods(as_json: Options.Json = False) -> None:
    """List the cross-validation methods, solvers and kernels that can be asked for by name."""
    from ridgefold.crossval import METHODS
    from ridgefold.kernels import NAMED_KERNELS
    from ridgefold.solvers import SOLVERS

    found = {
        "cross-validation methods": [_described(name, m) for name, m in METHODS.items()],
        "solvers": [_described(name, s) for name, s in SOLVERS.items()],
        "kernels": [
            {"name": name, "what": _first_paragraph(cls)}
            for name, (cls, _) in NAMED_KERNELS.items()
        ],
    }
    if as_json:
        say(found, quiet=False, as_json=True, title="")
        return
    for title, rows in found.items():
        table = Table(title=title, title_justify="left")
        for key in rows[0]:
            table.add_column(key, overflow="fold")
        for row in rows:
            table.add_row(*row.values())
        Console().print(table)


def _described(name: str, method: Any) -> dict[str, str]:
    exact = "rounding" if method.exact else "its own bound"
    return {"name": name, "right to": exact, "what": _first_paragraph(type(method))}


def _first_paragraph(cls: type) -> str:
    text = python_inspect.getdoc(cls) or ""
    return " ".join(text.split("\n\n")[0].split())
