"""Other libraries, each run by an interpreter that has it.

RIDGEFOLD_PEERS_PYTHON names one with scikit-learn, himalaya, RLScore, lssvr, neo-ls-svm and
GPyTorch, RIDGEFOLD_LIQUIDSVM_PYTHON one with liquidSVM. Without one, its rows are left out.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

WORKER = Path(__file__).with_name("_whole_job_peers.py")
NAMES = {
    "scikit_learn": "GridSearchCV(KernelRidge)",
    "rlscore": "RLScore's KfoldRLS",
    "himalaya": "himalaya's KernelRidgeCV",
    "liquidsvm": "liquidSVM's lsSVM, its own 10×10 grid",
    "lssvr": "GridSearchCV(LSSVR) of lssvr",
    "neo_ls_svm": "NeoLSSVM of neo-ls-svm, its own features",
    "gpytorch": "GPyTorch's exact Gaussian process, 100 steps of Adam",
}


def interpreter(peer: str) -> str | None:
    name = "RIDGEFOLD_LIQUIDSVM_PYTHON" if peer == "liquidsvm" else "RIDGEFOLD_PEERS_PYTHON"
    return os.environ.get(name)


def run_peer(peer: str, path: Path, widths: list[float], alphas: list[float]) -> dict[str, Any]:
    """The whole job on the arrays X, y and new of an .npz file; predictions stand beside it."""
    python = interpreter(peer)
    if python is None:
        return {"failed": "not at hand"}
    request = {"peer": peer, "data": str(path), "widths": widths, "alphas": alphas}
    finished = subprocess.run(
        [python, str(WORKER)],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        check=False,
    )
    for line in finished.stdout.splitlines():
        if line.startswith("RESULT "):
            return json.loads(line.removeprefix("RESULT "))
    reason = (finished.stderr.strip().splitlines() or ["no output"])[-1]
    return {"failed": reason[:200]}
