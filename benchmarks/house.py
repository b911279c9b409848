"""Measure the source of a checkout: its size, its constants, and the walk of a fit through it.

`python benchmarks/house.py` prints the table for this checkout, `house.py FOLDER` for another
one, and `house.py FOLDER --write house_after` keeps it in results. Nothing here knows a name of
the library but its public ones, so that checkouts of any age are measured alike;
docs/design/house.md says what is counted.
"""

from __future__ import annotations

import argparse
import ast
import ctypes
import functools
import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from measure import ROOT, Figure, markdown_table, write_results

WALKS = ("KernelRidgeCV().fit", "a fit in cells", "ridgefold fit")
INLINED = ("<listcomp>", "<dictcomp>", "<setcomp>")
"""They are frames up to Python 3.11 and not from 3.12 on: not counted."""

# -- what is written -----------------------------------------------------------------------


def modules(source: Path) -> Iterator[tuple[Path, ast.Module, list[str]]]:
    for path in sorted(source.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        yield path.relative_to(source), ast.parse(text), text.splitlines()


def is_number(node: ast.AST | None) -> bool:
    """A number, or an expression of nothing but numbers."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and not isinstance(node.value, bool)
    if isinstance(node, ast.UnaryOp):
        return is_number(node.operand)
    return isinstance(node, ast.BinOp) and is_number(node.left) and is_number(node.right)


def named_numbers(tree: ast.Module) -> Iterator[tuple[str, ast.stmt, ast.stmt | None]]:
    """Upper-case names of numbers at the top of a module, with the statement that follows."""
    for statement, following in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(statement, ast.Assign):
            targets: list[ast.expr] = []
            for target in statement.targets:
                targets += target.elts if isinstance(target, ast.Tuple) else [target]
        elif isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        else:
            continue
        value = statement.value
        values = value.elts if isinstance(value, ast.Tuple) else [value] * len(targets)
        for target, number in zip(targets, values, strict=False):
            if isinstance(target, ast.Name) and target.id.isupper() and is_number(number):
                yield target.id, statement, following


def in_class_bodies(tree: ast.Module) -> int:
    """Fields of classes whose default is a number: tuned values live there, too."""
    return sum(
        isinstance(statement, ast.AnnAssign) and is_number(statement.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for statement in node.body
    )


def has_reason(statement: ast.stmt, following: ast.stmt | None, lines: list[str]) -> bool:
    """Whether a string follows a statement, or a comment stands above or beside it."""
    if (
        isinstance(following, ast.Expr)
        and isinstance(following.value, ast.Constant)
        and isinstance(following.value.value, str)
    ):
        return True
    above = lines[statement.lineno - 2].strip() if statement.lineno > 1 else ""
    beside = "".join(lines[statement.lineno - 1 : statement.end_lineno])
    return above.startswith("#") or "#" in beside


def size(source: Path) -> dict[str, dict[str, int]]:
    """Lines, files, classes and longest file of every folder, and of all."""
    found: dict[str, dict[str, int]] = {}
    for path, tree, lines in modules(source):
        folder = path.parts[0] if len(path.parts) > 1 else "(top)"
        classes = sum(isinstance(node, ast.ClassDef) for node in ast.walk(tree))
        for key in ("all", folder):
            entry = found.setdefault(key, {"lines": 0, "files": 0, "classes": 0, "longest": 0})
            entry["lines"] += len(lines)
            entry["files"] += 1
            entry["classes"] += classes
            entry["longest"] = max(entry["longest"], len(lines))
    return found


def constants(source: Path) -> dict[str, int]:
    found = {"named": 0, "without a reason beside them": 0, "default fields": 0}
    for _, tree, lines in modules(source):
        found["default fields"] += in_class_bodies(tree)
        for _, statement, following in named_numbers(tree):
            found["named"] += 1
            found["without a reason beside them"] += not has_reason(statement, following, lines)
    return found


def occurrences(folder: Path, pattern: str) -> int:
    return sum(
        len(re.findall(pattern, path.read_text(encoding="utf-8"))) for path in folder.rglob("*.py")
    )


# -- what is run: in a process that imports the checkout ------------------------------------


class Walk:
    """Functions, files and classes of the library that a call uses, and how deep LAPACK lies."""

    def __init__(self, source: Path) -> None:
        self._source = str(source) + os.sep
        self.functions: set[CodeType] = set()
        self.classes: set[type] = set()
        self.depths: list[int] = []

    def _ours(self, code: CodeType) -> bool:
        return code.co_filename.startswith(self._source)

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event != "call":
            return
        code = frame.f_code
        if self._ours(code) and not code.co_name.startswith("<"):
            if code.co_flags & inspect.CO_OPTIMIZED:  # not the body of a class
                self.functions.add(code)
        elif f"{os.sep}scipy{os.sep}linalg{os.sep}" in code.co_filename:
            self.reached(frame.f_back)
        if code.co_name == "__init__":
            made = type(frame.f_locals.get("self"))
            if made.__module__.startswith("ridgefold"):
                self.classes.add(made)

    def reached(self, frame: FrameType | None) -> None:
        """A routine of LAPACK or BLAS is called from here: count the library's frames."""
        depth = 0
        if frame is None or not self._ours(frame.f_code):
            return
        while frame is not None:
            depth += self._ours(frame.f_code) and frame.f_code.co_name not in INLINED
            frame = frame.f_back
        self.depths.append(depth)

    def facts(self) -> dict[str, int]:
        return {
            "functions": len(self.functions),
            "files": len({code.co_filename for code in self.functions}),
            "classes made": len(self.classes),
            "fewest frames to LAPACK": min(self.depths),
            "most frames to LAPACK": max(self.depths),
        }


def watch_routines(walk: Walk) -> None:
    """Compiled routines have no frames: replace them by functions that say who calls."""
    import scipy.linalg.blas
    import scipy.linalg.lapack

    def told(routine: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(routine, assigned=())
        def call(*arguments: Any, **settings: Any) -> Any:
            walk.reached(sys._getframe(1))
            return routine(*arguments, **settings)

        return call

    for module in (scipy.linalg.blas, scipy.linalg.lapack):
        for name, routine in list(vars(module).items()):
            if type(routine).__name__ == "fortran":
                setattr(module, name, told(routine))
    plain = ctypes.CFUNCTYPE

    def factory(*kinds: Any, **settings: Any) -> Callable[..., Any]:
        prototype = plain(*kinds, **settings)
        return lambda *given: told(prototype(*given)) if given else prototype()

    ctypes.CFUNCTYPE = factory  # type: ignore[assignment]


def import_everything(source: Path) -> None:
    """What is imported late would be counted as part of the first call."""
    import importlib

    for path, _, _ in modules(source):
        parts = [*path.with_suffix("").parts]
        if parts[-1] == "__init__":
            parts.pop()
        if "torch" not in path.stem and parts[-1:] != ["__main__"]:
            importlib.import_module(".".join(["ridgefold", *parts]))


def walked(source: Path, name: str) -> dict[str, int]:
    walk = Walk(source)
    watch_routines(walk)
    import_everything(source)
    import numpy as np

    import ridgefold

    rng = np.random.default_rng(0)
    n = 3000 if name == "a fit in cells" else 1500
    X = rng.uniform(-2, 2, (n, 5))
    y = np.sin(X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(n)
    with tempfile.TemporaryDirectory() as folder:
        table, model = Path(folder) / "table.csv", Path(folder) / "model"
        lines = [",".join(map(repr, row)) for row in np.column_stack([X, y]).tolist()]
        table.write_text("\n".join(["a,b,c,d,e,y", *lines]))
        command_line = ["fit", str(table), "--target", "y", "--output", str(model)]
        calls: dict[str, Callable[[], Any]] = {
            "KernelRidgeCV().fit": lambda: ridgefold.KernelRidgeCV().fit(X, y),
            "a fit in cells": lambda: ridgefold.PartitionedLSSVMRegressor().fit(X, y),
            "ridgefold fit": lambda: run_command(command_line),
        }
        sys.setprofile(walk)
        try:
            calls[name]()
        finally:
            sys.setprofile(None)
    return walk.facts()


def run_command(arguments: list[str]) -> None:
    from contextlib import redirect_stderr, redirect_stdout

    from ridgefold.cli import main

    sys.argv = ["ridgefold", *arguments]
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        try:
            main()
        except SystemExit as end:
            if end.code:
                raise


def parameters() -> dict[str, int]:
    """Parameters of every public class that has a fit."""
    import ridgefold

    return {
        name: len(inspect.signature(thing).parameters)
        for name in ridgefold.__all__
        if inspect.isclass(thing := getattr(ridgefold, name)) and hasattr(thing, "fit")
    }


def in_child(checkout: Path, what: str) -> dict[str, int]:
    settings = {"PYTHONPATH": str(checkout / "src"), "RIDGEFOLD_RATES": "default"}
    done = subprocess.run(
        [sys.executable, str(Path(__file__).resolve()), str(checkout), "--child", what],
        env={**os.environ, **settings},
        check=True,
        stdout=subprocess.PIPE,
    )
    found: dict[str, int] = json.loads(done.stdout)
    return found


# -- the table -----------------------------------------------------------------------------


def figures(checkout: Path) -> list[Figure]:
    source = checkout / "src" / "ridgefold"
    found = []
    for folder, entry in sorted(size(source).items(), key=lambda item: -item[1]["lines"]):
        where = "the library" if folder == "all" else folder
        detail = {key: float(value) for key, value in entry.items() if key != "lines"}
        found.append(Figure(f"lines of {where}", entry["lines"], detail=detail))
        if folder == "all":
            found += [
                Figure(f"{what} of the library", entry[key])
                for what, key in (("files", "files"), ("classes", "classes"))
            ]
            found.append(Figure("lines of its longest file", entry["longest"]))
    counted = constants(source)
    found += [
        Figure("named constants", counted["named"]),
        Figure("of which without a reason beside them", counted["without a reason beside them"]),
        Figure("numbers that are defaults of fields", counted["default fields"]),
        Figure("hasattr in the report", occurrences(source / "report", r"\bhasattr\(")),
        Figure("monkeypatches in tests", occurrences(checkout / "tests", r"monkeypatch\.")),
    ]
    taken = in_child(checkout, "parameters")
    found.append(Figure("parameters of an estimator, at most", max(taken.values())))
    found += [Figure(f"parameters of {name}", number) for name, number in taken.items()]
    for walk in WALKS:
        found += [
            Figure(f"{walk}: {what}", number) for what, number in in_child(checkout, walk).items()
        ]
    return found


NOTES = """
The source of the library as `benchmarks/house.py` counts it; docs/design/house.md says what is
counted. Walks are of 1,500 rows in five columns (3,000 in cells), with built-in rates.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", nargs="?", type=Path, default=ROOT)
    parser.add_argument("--write", metavar="NAME", help="keep it as results/NAME.json and .md")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    checkout = options.checkout.resolve()
    if options.child is not None:
        found = (
            parameters()
            if options.child == "parameters"
            else walked(checkout / "src" / "ridgefold", options.child)
        )
        json.dump(found, sys.stdout)
        return 0
    measured = figures(checkout)
    print(markdown_table(measured))
    if options.write:
        write_results(options.write, "The house, measured", NOTES, measured, whole=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
