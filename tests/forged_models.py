"""Use forged model files within limits of time and memory; a program that a test starts.

    python forged_models.py FOLDER FIRST COUNT

Every line of the output is a JSON object. A line {"begin": number} stands before each file, so
that whoever reads the output knows which one a process died of.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

SECONDS = 2.0
"""Of processor time for each file: a machine that is busy with other things is not to blame."""
BYTES = 300_000_000
"""Of address space, beyond what the libraries take once they are imported and have been used."""
_STARTS = (
    "_thread.start_new_thread",
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.spawn",
    "os.system",
    "socket.connect",
    "subprocess.Popen",
)


class Started(BaseException):  # no handler of errors in between may swallow it
    """A model file had something started."""


def _forbid_starts() -> None:
    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _STARTS:
            raise Started(f"{event} {arguments!r}"[:200])

    sys.addaudithook(hook)


def use(path: Path, rows: Any, page: Path) -> str:
    """Everything that can be done with a model file; how it ended, in a word."""
    import ridgefold
    from ridgefold.cli.inspect import summary_of
    from ridgefold.errors import RidgefoldError
    from ridgefold.report import write_report

    ended = []

    def tried(name: str, call: Any) -> Any:
        try:
            found = call()
        except RidgefoldError as error:
            ended.append(f"{name}: {type(error).__name__}")
            return None
        ended.append(name)
        return found

    model = tried("load", lambda: ridgefold.load(path))
    tried("inspect", lambda: json.dumps(summary_of(path), default=str))
    if model is None:
        return ended[0]
    for name in ("predict", "decision_function", "predict_proba", "predict_interval"):
        if hasattr(model, name):
            tried(name, lambda name=name: getattr(model, name)(rows))
    inner = getattr(model, "model_", model)
    tried("explain", lambda: (str(inner.explain()), inner.explain().to_json()))
    tried("report", lambda: write_report(model, page, force=True))
    tried("repr", lambda: repr(model))
    again = path.with_suffix(".again")
    tried("save", lambda: (model.save(again), ridgefold.load(again)))
    return ", ".join(ended)


def main() -> None:
    folder, first, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    warnings.simplefilter("ignore")
    import forging

    path, page = folder / "forged.ridgefold", folder / "page.html"
    names = list(forging.FITTED)
    for name in names:  # all that is imported late is there, all that is kept is kept
        path.write_bytes(forging.signed(forging.original(name)))
        print(json.dumps({"whole": name, "ended": use(path, forging.new_rows(name), page)}))
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + BYTES, held + BYTES))
    _forbid_starts()
    for number in range(first, first + count):
        name, forger = names[number % len(names)], forging.Forger(number)
        path.write_bytes(forger.forged(name))
        rows = forging.new_rows(name)
        said = {"number": number, "model": name, "changes": forger.changes}
        print(json.dumps({"begin": number, **said}), flush=True)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # ends the process
        try:
            ended = use(path, rows, page)
            bad = None
        except BaseException as error:
            ended = f"{type(error).__name__}: {error}"[:300]
            bad = traceback.format_exc()[-3000:]
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps({**said, "ended": ended, "bad": bad}), flush=True)


if __name__ == "__main__":
    main()
