"""
A page about a model
====================

:func:`ridgefold.write_report` writes one HTML page about a fitted model, to look at or to send to
someone: how far off it is on rows that it did not see, how kernel and ridge were chosen, how sure
it is, what it took. The page needs no network. Its figures are there for notebooks too.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa

from ridgefold import (
    CVSurfaceDisplay,
    HeldOutDisplay,
    LSSVMRegressorCV,
    RidgefoldRegressor,
    write_report,
)
from ridgefold.tables import load_bundled

data = load_bundled("ccpp")
order = np.random.default_rng(0).permutation(len(data.y))
train, test = order[:800], order[800:2800]


def table(rows):
    return pa.table(dict(zip(data.feature_names, data.X[rows].T, strict=True)))


model = RidgefoldRegressor(model=LSSVMRegressorCV(cv=5)).fit(
    table(train), data.y[train]
)

# %%
# With a test set, the page is about rows that took no part in any choice; without one, about the
# held-out rows of the cross-validation.

page = Path(tempfile.mkdtemp()) / "report.html"
write_report(
    model,
    page,
    table(test),
    data.y[test],
    target_name="output, MW",
    title="Electrical output of a combined cycle power plant",
)
print(f"{page.name}: {page.stat().st_size / 1e3:.0f} kB")

# %%
# The same figures in a notebook, in the manner of scikit-learn's displays:

figure, (left, middle, right) = plt.subplots(
    1, 3, figsize=(13, 4.2), layout="constrained"
)
CVSurfaceDisplay.from_estimator(model, ax=left)
HeldOutDisplay.from_estimator(model, target_name="output, MW", ax=middle)
HeldOutDisplay.from_estimator(
    model, kind="residual_vs_predicted", target_name="output, MW", ax=right
)
plt.show()
