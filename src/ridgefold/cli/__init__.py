"""The `ridgefold` command: one file a command."""

from __future__ import annotations

import typer

from ridgefold.cli.demo import demo

app = typer.Typer(
    help="Kernel ridge regression and least-squares SVM.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command()(demo)


@app.callback()
def _root() -> None:
    """Kernel ridge regression and least-squares SVM."""


def main() -> None:
    app()


__all__ = ["app", "main"]
