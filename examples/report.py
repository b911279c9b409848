"""Write a report of a model: one HTML page, to look at or to send to someone.

Run it with `python examples/report.py [page.html]`; it takes some ten seconds.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

from ridgefold import LSSVMRegressorCV, TableModel, write_report
from ridgefold.storage import load_bundled


def main() -> None:
    """A model of the output of a power plant in MW, judged by rows that took no part."""
    data = load_bundled("ccpp")
    order = np.random.default_rng(0).permutation(len(data.y))
    train, test = order[:1200], order[1200:3200]

    def table(rows: np.ndarray) -> pa.Table:
        return pa.table(dict(zip(data.feature_names, data.X[rows].T, strict=True)))

    model = TableModel(LSSVMRegressorCV(cv=5))
    model.fit(table(train), data.y[train])

    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "report.html"
    write_report(
        model,
        path,
        table(test),
        data.y[test],
        target_name="output, MW",
        title="Electrical output of a combined cycle power plant",
    )
    print(f"{path.stat().st_size / 1e3:.0f} kB: {path}")


if __name__ == "__main__":
    main()
