"""Nothing that a user can name is missing from the documentation."""

from __future__ import annotations

import inspect
import re

import pytest

import ridgefold
from documentation import ROOT, names_in_code, text_of_docs
from ridgefold import errors
from ridgefold.cells.combine import COMBINERS
from ridgefold.cells.cut import PARTITIONERS
from ridgefold.crossval import METHODS
from ridgefold.executors import EXECUTORS
from ridgefold.kernels import NAMED_KERNELS, PRECOMPUTED
from ridgefold.metric.families import FAMILIES
from ridgefold.solvers import SOLVERS

DOCS = text_of_docs()
REFERENCE = (ROOT / "docs" / "api" / "index.rst").read_text(encoding="utf-8")
MATHEMATICS = "\n".join(
    p.read_text(encoding="utf-8") for p in sorted((ROOT / "docs" / "methods").glob("*.md"))
)
REGISTRIES = {
    "method": METHODS,
    "solver": SOLVERS,
    "partition": PARTITIONERS,
    "combine": COMBINERS,
    "executor": EXECUTORS,
    "kernel": {**NAMED_KERNELS, PRECOMPUTED: None},
    "family": FAMILIES,
}
LISTED = {
    "methods": METHODS,
    "solvers": SOLVERS,
    "partitioners": PARTITIONERS,
    "combiners": COMBINERS,
    "executors": EXECUTORS,
    "kernels": NAMED_KERNELS,
}
"""What a table of the reference lists, which is read from the registry when the site is built."""
NAMES = names_in_code(DOCS).union(
    *(names for table, names in LISTED.items() if f".. registry:: {table}\n" in REFERENCE)
)
PUBLIC = [name for name in ridgefold.__all__ if not inspect.ismodule(getattr(ridgefold, name))]
CLASSES = [name for name in PUBLIC if inspect.isclass(getattr(ridgefold, name))]
KERNELS = [
    name
    for name, kernel in vars(ridgefold.kernels).items()
    if inspect.isclass(kernel) and issubclass(kernel, ridgefold.kernels.Kernel)
]
ESTIMATORS = [name for name in CLASSES if hasattr(getattr(ridgefold, name), "get_params")]


@pytest.mark.parametrize(
    ("registry", "name"), [(r, name) for r, names in REGISTRIES.items() for name in names]
)
def test_every_registered_name_is_in_the_documentation(registry, name):
    assert name in NAMES, f"no page mentions {registry}={name!r} in code quotes"


@pytest.mark.parametrize("name", [*METHODS, *SOLVERS, *PARTITIONERS, *COMBINERS])
def test_every_method_has_its_mathematics(name):
    assert name in names_in_code(MATHEMATICS) or re.search(rf"^## .*\b{name}\b", MATHEMATICS, re.M)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_a_page_of_its_own(name):
    assert re.search(rf"^   ridgefold\.{name}$", REFERENCE, re.M), f"docs/api/index.rst: {name}"


@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_class_has_a_page_of_its_own(name):
    assert f"   ridgefold.kernels.{name}\n" in REFERENCE


def parameters_in_docstring(cls: type) -> set[str]:
    """Names in the section Parameters of a class."""
    text = inspect.getdoc(cls) or ""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w+\n-+\n|\Z)", text, re.M | re.S)
    assert section is not None, f"{cls.__name__} has no section Parameters"
    heads = re.findall(r"^(\w[^\n]*)$", section[1], re.M)
    return {name.strip() for head in heads for name in head.split(" : ")[0].split(",")}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_argument_of_an_estimator_is_described(name):
    cls = getattr(ridgefold, name)
    arguments = set(inspect.signature(cls.__init__).parameters) - {"self"}
    assert parameters_in_docstring(cls) == arguments


@pytest.mark.parametrize("name", KERNELS)
def test_every_parameter_of_a_kernel_is_described(name):
    kernel = getattr(ridgefold.kernels, name)
    arguments = set(inspect.signature(kernel).parameters)
    if arguments:
        assert parameters_in_docstring(kernel) == arguments


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_is_in_a_page_for_readers(name):
    assert f"`{name}`" in DOCS or f"`{name}(" in DOCS


@pytest.mark.parametrize("name", [n for n in PUBLIC if inspect.isfunction(getattr(ridgefold, n))])
def test_every_argument_of_a_function_is_described(name):
    function = getattr(ridgefold, name)
    arguments = set(inspect.signature(function).parameters)
    text = inspect.getdoc(function) or ""
    described = parameters_in_docstring(function) if "Parameters\n---" in text else set()
    assert described == arguments


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_an_example_that_runs(name):
    text = inspect.getdoc(getattr(ridgefold, name)) or ""
    assert ">>>" in text


@pytest.mark.parametrize("name", [n for n, e in vars(errors).items() if inspect.isclass(e)])
def test_every_error_says_when_it_is_raised(name):
    assert len((inspect.getdoc(getattr(errors, name)) or "").split()) >= 4


def test_a_name_that_is_not_there_would_be_missed():
    assert "no_such_method" not in NAMES
