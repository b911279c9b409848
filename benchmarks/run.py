"""Run every benchmark: scripts of scale/, papers/ and peers/, each in a process of its own.

A script has `main(quick: bool) -> bool`, true if every target was met, and a `--quick` flag
(small sizes, nothing written). Names on the command line choose some: `run.py fit`. Afterwards the
page of all results (`summary.py`) and the figures that pages quote (`figures.py`) are written anew.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDERS = ("scale", "papers", "peers")


def scripts() -> list[Path]:
    found = [p for folder in FOLDERS for p in sorted((HERE / folder).glob("*.py"))]
    return [p for p in found if not p.name.startswith("_")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="run only these, by file name")
    parser.add_argument("--quick", action="store_true", help="small sizes, results not written")
    options = parser.parse_args()
    known = {p.stem: p for p in scripts()}
    unknown = sorted(set(options.names) - set(known))
    if unknown:
        parser.error(f"no benchmark named {', '.join(unknown)}; there are {', '.join(known)}")
    missed = []
    for name in options.names or known:
        print(f"== {known[name].relative_to(HERE)}", flush=True)
        started = time.perf_counter()
        command = [sys.executable, str(known[name]), *(["--quick"] if options.quick else [])]
        if subprocess.run(command, check=False, cwd=HERE.parent).returncode != 0:
            missed.append(name)
        print(f"   {time.perf_counter() - started:.0f} s", flush=True)
    for name in () if options.quick else ("summary", "figures"):
        command = [sys.executable, str(HERE / f"{name}.py")]
        if subprocess.run(command, check=False, cwd=HERE.parent).returncode != 0:
            missed.append(name)
    if missed:
        print(f"failed, or missed a target: {', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
