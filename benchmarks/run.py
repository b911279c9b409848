"""Run every benchmark: scripts of scale/, papers/ and peers/, each in a process of its own.

    python benchmarks/run.py                     # what has changed since it was measured
    python benchmarks/run.py cells fit --again   # these two, whatever has changed
    python benchmarks/run.py --runs 3 whole_job  # medians of three runs, with their range
    python benchmarks/run.py --kernel Haswell --kernel SkylakeX whole_job  # side by side

A script has `main(quick: bool) -> bool`, true if every target was met, and a `--quick` flag (small
sizes, nothing written). A benchmark whose script and code are as they were when it was measured is
not run again, so that a run that was stopped goes on where it was. Every one of several runs is
kept in results/runs until all are done. Afterwards the page of all results (`summary.py`) and the
figures that pages quote (`figures.py`) are written anew.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from measure import (
    REPLACE,
    RESULTS,
    Figure,
    all_held,
    asdict_held,
    lost_figures,
    machine_facts,
    markdown_table,
    number,
)
from provenance import changed_since

HERE = Path(__file__).resolve().parent
FOLDERS = ("scale", "papers", "peers")
RUNS = RESULTS / "runs"
KERNELS = RESULTS / "kernels"
CORETYPE = "OPENBLAS_CORETYPE"


def scripts() -> list[Path]:
    found = [p for folder in FOLDERS for p in sorted((HERE / folder).glob("*.py"))]
    return [p for p in found if not p.name.startswith("_")]


def is_current(script: Path, folder: Path = RESULTS) -> bool:
    """Whether the results of a script are as old as its code."""
    path = folder / f"{script.stem}.json"
    if not path.exists():
        return False
    return changed_since(json.loads(path.read_text(encoding="utf-8")), script) == []


def run_script(script: Path, results: Path | None, *, quick: bool, kernel: str | None) -> bool:
    """One run of a script in a process; true if it met its targets."""
    environment = dict(os.environ)
    if results is not None:
        results.mkdir(parents=True, exist_ok=True)
        environment["RIDGEFOLD_RESULTS"] = str(results)
    if kernel is not None:
        environment[CORETYPE] = kernel
    command = [sys.executable, str(script), *(["--quick"] if quick else [])]
    return subprocess.run(command, check=False, cwd=HERE.parent, env=environment).returncode == 0


def figures_of(path: Path) -> list[Figure]:
    """The figures of a result file."""
    entries = json.loads(path.read_text(encoding="utf-8"))["figures"]
    return [Figure(**{k: v for k, v in entry.items() if k != "held"}) for entry in entries]


def median_of(runs: list[list[Figure]]) -> list[Figure]:
    """The figures of the first run with the medians of all runs, and how far these lie apart."""
    merged = []
    for figure in runs[0]:
        same = [f.measured for run in runs for f in run if f.what == figure.what]
        known = [value for value in same if value is not None]
        if len(known) < len(runs):  # not measured in all of them
            merged.append(figure)
            continue
        spread = (min(known), max(known))
        merged.append(replace(figure, measured=float(median(known)), spread=spread))
    return merged


def merge_runs(name: str, folders: list[Path]) -> bool:
    """Write the medians of several runs as the results of a script; true if all targets held."""
    figures = median_of([figures_of(folder / f"{name}.json") for folder in folders])
    record: dict[str, Any] = json.loads((folders[0] / f"{name}.json").read_text(encoding="utf-8"))
    lacking = lost_figures(RESULTS / f"{name}.json", figures)
    if lacking and not os.environ.get(REPLACE):
        print(f"   left as it was, as there is no measurement of: {'; '.join(lacking)}")
        print(f"   {REPLACE}=1 writes it all the same")
        return False
    before = markdown_table(figures_of(folders[0] / f"{name}.json"))
    record |= {"figures": [asdict_held(f) for f in figures], "runs": len(folders)}
    page = (folders[0] / f"{name}.md").read_text(encoding="utf-8")
    said = f"Medians of {len(folders)} runs, with the least and the largest in brackets.\n\n"
    for other in folders[0].iterdir():  # pictures and whatever else the first run wrote
        if other.stem.startswith(name) and other.suffix not in {".json", ".md"}:
            shutil.copy(other, RESULTS / other.name)
    page = page.replace(before, said + markdown_table(figures))
    (RESULTS / f"{name}.md").write_text(page, encoding="utf-8")
    text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
    (RESULTS / f"{name}.json").write_text(text, encoding="utf-8")
    return all_held(figures)


def run_repeatedly(script: Path, runs: int, kernel: str | None) -> bool:
    """So many runs of a script, those that are there already counted, and their medians."""
    folders = [RUNS / str(k) for k in range(runs)]
    for folder in folders:
        if not is_current(script, folder):
            run_script(script, folder, quick=False, kernel=kernel)
    absent = [str(f) for f in folders if not (f / f"{script.stem}.json").exists()]
    if absent:
        print(f"   no results in {', '.join(absent)}: the page is left as it was")
        return False
    return merge_runs(script.stem, folders)


def write_machine() -> None:
    """The machine and its rates, for the page of all results."""
    from ridgefold.planning.measurement import measure_quickly

    rates = measure_quickly().by_kind
    record = {**machine_facts(), "rates": {kind: points[-1][1] for kind, points in rates.items()}}
    (RESULTS / "machine.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def compare_kernels(kernels: list[str], chosen: list[Path]) -> None:
    """Every figure with each kernel of OpenBLAS, side by side, in results/kernels.md."""
    for script in chosen:
        for kernel in kernels:
            if not is_current(script, KERNELS / kernel):
                print(f"== {script.stem} with {kernel}", flush=True)
                run_script(script, KERNELS / kernel, quick=False, kernel=kernel)
    lines = ["# The same figures with other kernels of OpenBLAS", ""]
    facts = machine_facts()
    lines += [f"{facts['date']}, {facts['processor']}, one thread. A ratio that depends on the"]
    lines += ["kernel depends on the processor: quote its range.", ""]
    lines += [f"| figure | {' | '.join(kernels)} |", "|---" * (len(kernels) + 1) + "|"]
    record: dict[str, dict[str, float | None]] = {}
    for path in sorted((KERNELS / kernels[0]).glob("*.json")):
        sides = [KERNELS / kernel / path.name for kernel in kernels]
        if not all(side.exists() for side in sides):
            continue
        for figure, *others in zip(*(figures_of(side) for side in sides), strict=True):
            values = [figure.measured, *(other.measured for other in others)]
            words = " | ".join("" if v is None else f"{number(v)} {figure.unit}" for v in values)
            lines.append(f"| {path.stem}: {figure.what} | {words} |")
            record[f"{path.stem}: {figure.what}"] = dict(zip(kernels, values, strict=True))
    (RESULTS / "kernels.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    text = json.dumps({"machine": facts, "by_kernel": record}, indent=1, ensure_ascii=False)
    (KERNELS / "kernels.json").write_text(text + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="run only these, by file name")
    parser.add_argument("--quick", action="store_true", help="small sizes, results not written")
    parser.add_argument("--again", action="store_true", help="also what has not changed")
    parser.add_argument("--runs", type=int, default=1, help="so many runs, and their medians")
    parser.add_argument(
        "--kernel", action="append", default=[], help="compare kernels of OpenBLAS side by side"
    )
    options = parser.parse_args()
    known = {p.stem: p for p in scripts()}
    unknown = sorted(set(options.names) - set(known))
    if unknown:
        parser.error(f"no benchmark named {', '.join(unknown)}; there are {', '.join(known)}")
    chosen = [known[name] for name in options.names or known]
    if options.kernel:
        compare_kernels(options.kernel, chosen)
        return 0
    if not options.quick:
        write_machine()
    missed, skipped = [], []
    for script in chosen:
        if not options.quick and not options.again and is_current(script):
            skipped.append(script.stem)
            continue
        print(f"== {script.relative_to(HERE)}", flush=True)
        started = time.perf_counter()
        if options.runs > 1 and not options.quick:
            held = run_repeatedly(script, options.runs, None)
        else:
            held = run_script(script, None, quick=options.quick, kernel=None)
        if not held:
            missed.append(script.stem)
        print(f"   {time.perf_counter() - started:.0f} s", flush=True)
    for name in () if options.quick else ("summary", "figures"):
        command = [sys.executable, str(HERE / f"{name}.py")]
        if subprocess.run(command, check=False, cwd=HERE.parent).returncode != 0:
            missed.append(name)
    if skipped:
        print(f"as measured, not run again (--again does): {', '.join(skipped)}")
    if missed:
        print(f"failed, or missed a target: {', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
