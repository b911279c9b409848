"""The `ridgefold` command: one file a command."""

from __future__ import annotations

import inspect as inspect_docs
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from ridgefold.cli.calibrate import calibrate
from ridgefold.cli.demo import demo
from ridgefold.cli.diagnose import diagnose
from ridgefold.cli.examples import EXAMPLES
from ridgefold.cli.exit_codes import CODES, code_of, discard_output, open_streams, say_error
from ridgefold.cli.explain import explain
from ridgefold.cli.fit import fit
from ridgefold.cli.fit_kernel import fit_kernel
from ridgefold.cli.inspect import inspect
from ridgefold.cli.methods import methods
from ridgefold.cli.predict import predict
from ridgefold.cli.report import report

app = typer.Typer(
    name="ridgefold",
    help="Kernel ridge regression and least-squares SVM.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog="Exit codes: "
    + "; ".join(f"{code} {meaning.split(':')[0]}" for code, meaning in CODES.items()),
)


def _paragraphs(function: Callable[..., None]) -> str:
    """The docstring, with every paragraph as one line: the terminal decides where lines end."""
    paragraphs = inspect_docs.cleandoc(function.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


for each in (
    fit,
    predict,
    report,
    diagnose,
    explain,
    inspect,
    demo,
    fit_kernel,
    methods,
    calibrate,
):
    app.command(help=_paragraphs(each), epilog=EXAMPLES.get(each.__name__))(each)


def _version(asked: bool) -> None:
    if asked:
        from ridgefold import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Kernel ridge regression and least-squares SVM: tables in, models and predictions out."""


def main() -> None:
    open_streams()
    try:
        app()
    except OSError as error:  # help, for one, is printed before there is a command
        discard_output()
        say_error(error, as_json=False)
        sys.exit(code_of(error))
    finally:
        try:
            sys.stdout.flush()
        except OSError:
            discard_output()


__all__ = ["app", "main"]
