"""liquidSVM's least squares with its own cross-validation, run by the interpreter that has it.

Stands alone: started by `cells.py` with another interpreter. Each line read is a request {"data",
"cells"}; each line written says how many processor seconds tuning, fitting and predicting took,
and the test error.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import sysconfig
from typing import Any

import numpy as np


def processor_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def answer(request: dict[str, Any]) -> dict[str, Any]:
    # Its loader asks for a name that newer versions of Python no longer give.
    sysconfig.get_config_vars()["SO"] = sysconfig.get_config_var("EXT_SUFFIX")
    try:
        from liquidSVM import lsSVM
    except ImportError as error:
        return {"missing": str(error)}
    with np.load(request["data"]) as data:
        X, y, new, truth = (data[name] for name in ("X", "y", "new", "truth"))
    options = {"useCells": True} if request["cells"] else {}
    started = processor_seconds()
    model = lsSVM(X, y, threads=1, folds=5, **options)
    predictions = np.asarray(model.predict(new)).reshape(len(new), -1)[:, 0]
    seconds = processor_seconds() - started
    return {"seconds": seconds, "rmse": float(np.sqrt(np.mean((predictions - truth) ** 2)))}


if __name__ == "__main__":
    # What the library prints must not mix with the answers.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=out, flush=True)
