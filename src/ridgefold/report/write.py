"""Write the report of a fitted model."""

from __future__ import annotations

from os import PathLike
from typing import Any

from ridgefold.report.page import render
from ridgefold.report.reported_model import reported_model
from ridgefold.storage.atomic import require_absent, written_whole
from ridgefold.storage.paths import usable_path


def write_report(
    model: Any,
    path: str | PathLike[str],
    X_test: Any = None,
    y_test: Any = None,
    *,
    target_name: Any = None,
    title: str | None = None,
    force: bool = False,
) -> None:
    """Write one HTML page about a fitted model: how good it is, why it is so, what it took.

    The page is a single file that opens anywhere and asks the network for nothing. It is written
    whole or not at all.

    Parameters
    ----------
    model : fitted estimator of ridgefold
        One that cross-validates has the most to tell: its errors on held-out rows are in the
        report.
    path : str or path
    X_test, y_test : optional
        Rows that took no part in the fit, and their targets: the report then is about these.
    target_name : str or sequence of str, optional
        What is predicted; one name for each target.
    title : str, optional
    force : bool, default=False
        Replace a file that is there.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from ridgefold import KernelRidgeCV, write_report
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 2))
    >>> model = KernelRidgeCV(cv=5).fit(X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=80))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "report.html")
    ...     write_report(model, path, target_name="height")
    ...     os.path.getsize(path) < 500_000
    True
    """
    path = usable_path(path)
    if not force:
        require_absent(path)
    reported = reported_model(model, X_test, y_test, target_name=target_name, title=title)
    page = render(reported)
    with written_whole(path, replace=force) as file:
        file.write(page.encode("utf-8"))
