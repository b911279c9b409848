"""`ridgefold calibrate`: measure this machine, so that plans predict its own times."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from ridgefold.cli.exit_codes import command
from ridgefold.cli.options import CommandOptions as Options
from ridgefold.cli.options import say, values_of_options

_WORDS = {
    "product": "matrix products",
    "cholesky": "Cholesky factorisations",
    "inverse": "inverses",
    "eigendecomposition": "eigendecompositions",
    "band_reduction": "reductions to a band",
    "band_cholesky": "factorisations of a band",
    "memory": "passes over memory (bytes)",
    "exp": "exponentials",
    "manhattan": "absolute differences",
}


@command
def calibrate(
    device: Annotated[
        str | None,
        typer.Option(help="Measure this device of torch, as cuda; the processor if not given."),
    ] = None,
    quiet: Options.Quiet = False,
    as_json: Options.Json = False,
) -> None:
    """Measure how fast this machine is, in some seconds, and remember it for later plans."""
    from ridgefold.planning import calibrate as measure_machine

    started = time.perf_counter()
    with values_of_options():
        rates = measure_machine(device)
    # The last point is the largest size that was measured.
    at_largest = {kind: points[-1][1] for kind, points in rates.by_kind.items() if kind in _WORDS}
    if as_json:
        say({"operations_a_second": at_largest}, quiet=quiet, as_json=True, title="")
        return
    say(
        {
            **{_WORDS[kind]: f"{rate:.2g} a second" for kind, rate in at_largest.items()},
            "seconds": round(time.perf_counter() - started, 1),
        },
        quiet=quiet,
        as_json=False,
        title=f"operations of {'this machine' if device is None else device}",
    )
