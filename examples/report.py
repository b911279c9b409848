"""Write a report of a model: one HTML page, to look at or to send to someone.

Run it with `python examples/report.py [page.html]`; it takes some ten seconds.
"""

import sys
import tempfile
from pathlib import Path

import pandas as pd

from ridgefold import LSSVMRegressorCV, TableModel, write_report
from ridgefold.storage import load_bundled


def main() -> None:
    """A model of the output of a power plant in MW, judged by rows that took no part."""
    data = load_bundled("ccpp")
    table = pd.DataFrame(data.X, columns=list(data.feature_names))
    table["output"] = data.y
    train, test = table.sample(1200, random_state=0), table.sample(2000, random_state=1)
    test = test.drop(index=train.index, errors="ignore")

    model = TableModel(LSSVMRegressorCV(learn_scales=True, kernel="matern", cv=5))
    model.fit(train.drop(columns="output"), train["output"])

    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "report.html"
    write_report(
        model,
        path,
        test.drop(columns="output"),
        test["output"],
        target_name="output, MW",
        title="Electrical output of a combined cycle power plant",
    )
    print(f"{path.stat().st_size / 1e3:.0f} kB: {path}")


if __name__ == "__main__":
    main()
