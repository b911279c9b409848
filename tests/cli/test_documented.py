"""Every command, option and exit code is documented."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
import typer

from ridgefold.cli import app
from ridgefold.cli.exit_codes import CODES

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "command-line.md").read_text("utf-8")
GROUP = typer.main.get_command(app)


def options():
    for name, command in GROUP.commands.items():
        for parameter in command.params:
            for option in [*parameter.opts, *parameter.secondary_opts]:
                if option.startswith("-"):
                    yield name, option


@pytest.mark.parametrize("name", list(GROUP.commands))
def test_every_command_has_a_section_and_help(name):
    assert f"### {name}\n" in PAGE
    assert GROUP.commands[name].help


@pytest.mark.parametrize(("name", "option"), list(options()))
def test_every_option_is_documented(name, option):
    section = PAGE.split(f"### {name}\n")[1].split("\n### ")[0]
    shared = {"--force", "--quiet", "--json", "--memory", "-f", "-q"}
    assert f"`{option}`" in section or (option in shared and f"`{option}`" in PAGE)


@pytest.mark.parametrize("code", CODES)
def test_every_exit_code_is_documented(code):
    assert f"| {code} | {CODES[code]} |" in PAGE


def test_every_option_has_help():
    for name, command in GROUP.commands.items():
        for parameter in command.params:
            if isinstance(parameter, click.Option) or hasattr(parameter, "help"):
                assert parameter.help, (name, parameter.name)
