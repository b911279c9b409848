"""What is installed is what is in the repository: code, templates, data."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest
from hatchling.build import build_wheel

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    before = Path.cwd()
    os.chdir(ROOT)
    try:
        wheel = build_wheel(str(folder))
    finally:
        os.chdir(before)
    with zipfile.ZipFile(folder / wheel) as archive:
        return set(archive.namelist())


def test_the_wheel_holds_every_file_of_the_package(names):
    files = {
        path.relative_to(SOURCE).as_posix()
        for path in (SOURCE / "ridgefold").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert files == {name for name in names if name.startswith("ridgefold/")}


@pytest.mark.parametrize(
    "name",
    [
        "py.typed",
        "report/templates/page.html",
        "report/templates/page.css",
        "report/templates/page.js",
        "tables/bundled_data/ccpp.npz",
        "tables/bundled_data/german.npz",
    ],
)
def test_the_wheel_holds_templates_and_data(name, names):
    assert f"ridgefold/{name}" in names


def test_the_wheel_holds_nothing_else_but_its_own_description(names):
    others = {name.split("/")[0] for name in names} - {"ridgefold"}
    assert all(name.endswith(".dist-info") for name in others)
