"""Tables made from the library's registries when the site is built.

    ```{registry} methods
    ```

lists every cross-validation method by name with what its class says of itself; `solvers`,
`partitioners`, `combiners`, `executors`, `kernels` and `errors` likewise.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective


def first_sentence(thing: Any) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


def rows(registry: str) -> tuple[list[str], list[list[str]]]:
    """Column titles and rows of one registry."""
    return _TABLES[registry]()


def _described(found: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    table = [
        [
            name,
            "rounding" if thing.exact else "a bound that it reports",
            first_sentence(type(thing)),
        ]
        for name, thing in found.items()
    ]
    return ["name", "right to", "what"], table


def _methods() -> tuple[list[str], list[list[str]]]:
    from ridgefold.crossval import METHODS

    return _described(dict(METHODS))


def _solvers() -> tuple[list[str], list[list[str]]]:
    from ridgefold.solvers import SOLVERS

    return _described(dict(SOLVERS))


def _partitioners() -> tuple[list[str], list[list[str]]]:
    from ridgefold.cells.cut import PARTITIONERS

    return ["name", "what"], [[n, first_sentence(type(p))] for n, p in PARTITIONERS.items()]


def _combiners() -> tuple[list[str], list[list[str]]]:
    from ridgefold.cells.combine import COMBINERS

    return ["name", "what"], [[n, first_sentence(type(c))] for n, c in COMBINERS.items()]


def _executors() -> tuple[list[str], list[list[str]]]:
    from ridgefold.executors import EXECUTORS

    return ["name", "what"], [[n, first_sentence(e)] for n, e in EXECUTORS.items()]


def _kernels() -> tuple[list[str], list[list[str]]]:
    from ridgefold.kernels import NAMED_KERNELS

    table = [[n, cls.__name__, first_sentence(cls)] for n, (cls, _) in NAMED_KERNELS.items()]
    return ["name", "class", "k(x, x')"], table


def _errors() -> tuple[list[str], list[list[str]]]:
    from ridgefold import errors

    found = [e for e in vars(errors).values() if isinstance(e, type)]
    return ["name", "also a", "when"], [
        [e.__name__, ", ".join(_builtin_bases(e)), first_sentence(e)] for e in found
    ]


def _builtin_bases(error: type) -> Iterator[str]:
    for base in error.__mro__[1:]:
        if base.__module__ == "builtins":
            yield base.__name__
            return


_TABLES = {
    "combiners": _combiners,
    "errors": _errors,
    "executors": _executors,
    "kernels": _kernels,
    "methods": _methods,
    "partitioners": _partitioners,
    "solvers": _solvers,
}


class Registry(SphinxDirective):
    """One registry as a table."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        titles, body = rows(self.arguments[0])
        group = nodes.tgroup(cols=len(titles))
        group += [nodes.colspec(colwidth=1) for _ in titles]
        head, content = nodes.thead(), nodes.tbody()
        head += _row([nodes.Text(title) for title in titles])
        for name, *texts in body:
            content += _row([nodes.literal(text=name), *(nodes.Text(text) for text in texts)])
        group += [head, content]
        table = nodes.table()
        table += group
        return [table]


def _row(cells: list[nodes.Node]) -> nodes.row:
    row = nodes.row()
    for cell in cells:
        entry, paragraph = nodes.entry(), nodes.paragraph()
        paragraph += cell
        entry += paragraph
        row += entry
    return row


def setup(app: Any) -> dict[str, Any]:
    app.add_directive("registry", Registry)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
