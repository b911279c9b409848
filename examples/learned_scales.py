"""Learn which columns matter, and draw it. Run: python examples/learned_scales.py [picture.svg]"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from ridgefold import LSSVMRegressorCV
from ridgefold.storage import load_bundled

NAMES = ("temperature", "vacuum", "pressure", "humidity")


def main() -> None:
    """Power output of a plant from four measurements."""
    data = load_bundled("ccpp")
    order = np.random.default_rng(0).permutation(len(data.y))
    train, test = order[:800], order[800:3800]
    model = LSSVMRegressorCV(kernel="auto", learn_scales=True).fit(data.X[train], data.y[train])
    error = np.sqrt(np.mean((model.predict(data.X[test]) - data.y[test]) ** 2))
    print(f"family {model.metric_.family}, test error {error:.2f} MW")
    for name, scale, share in zip(
        NAMES, model.length_scales_, model.feature_relevance_, strict=True
    ):
        print(f"{name:12} length scale {scale:10.4g}   relevance {share:.2f}")
    if len(sys.argv) > 1:
        draw(model, Path(sys.argv[1]))


def draw(model: LSSVMRegressorCV, path: Path) -> None:
    """A bar a column (needs matplotlib)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 2.5), layout="constrained")
    axes = figure.add_subplot()
    axes.barh(NAMES, model.feature_relevance_)
    axes.set_xlabel("share in the distance between rows")
    figure.savefig(path)


if __name__ == "__main__":
    main()
