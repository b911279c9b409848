"""Time two checkouts of the library against each other, in one run.

    python benchmarks/compare_checkouts.py BEFORE AFTER [--jobs "five folds" cells] [--repeat 5]

Both are folders with a `src`. Every job of `checkout_jobs.py` runs in fresh processes, in turn from
either checkout, on one BLAS thread; its time is processor time (the best of a few calls of a
process, of which the first, with the late imports, has a column of its own), its memory the most
that a call had resident at once, beyond what was there before. The table has the ratio
after/before of the best times and of the medians: where these two disagree, the machine was too
busy to tell. The same folder given twice shows the noise. `--quick` takes small sizes, about two
minutes of a free core.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from checkout_jobs import JOBS
from measure import machine_facts, machine_line, number

RUNNER = Path(__file__).resolve().parent / "checkout_jobs.py"
SLOWER, LARGER, WORSE = 1.05, 1.10, 1.01
"""Ratios from which a job is marked: time, memory, and error or width."""
SMALL_PEAK = 16e6
"""Bytes below which a peak is pages of the interpreter: not judged."""
SIDES = ("before", "after")


def one_run(checkout: Path, job: str, size: int) -> dict[str, Any]:
    """A job in a fresh process of a checkout; {"failed": why} if it cannot run there."""
    settings = {"PYTHONPATH": str(checkout / "src"), "RIDGEFOLD_RATES": "default"}
    done = subprocess.run(
        [sys.executable, str(RUNNER), job, str(size)],
        env={**os.environ, **settings},
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        return {"failed": done.stderr.strip().splitlines()[-1] if done.stderr else "no reason"}
    found: dict[str, Any] = json.loads(done.stdout)
    expected = checkout / "src" / "ridgefold"
    if Path(found.pop("source")) != expected:
        raise SystemExit(f"{job}: another ridgefold than that of {expected} was imported")
    return found


def measured(checkouts: Mapping[str, Path], job: str, size: int, repeat: int) -> dict[str, Any]:
    """All runs of a job; either checkout begins every second round."""
    runs: dict[str, list[dict[str, Any]]] = {side: [] for side in SIDES}
    for round_ in range(repeat):
        for side in SIDES if round_ % 2 == 0 else SIDES[::-1]:
            found = one_run(checkouts[side], job, size)
            if "failed" in found:
                return {"job": job, "size": size, "failed": f"{side}: {found['failed']}"}
            runs[side].append(found)
    return {"job": job, "size": size, **summary(runs)}


def summary(runs: Mapping[str, Sequence[Mapping[str, float]]]) -> dict[str, Any]:
    of_side = {
        side: {
            "seconds": min(run["seconds"] for run in found),
            "median seconds": median(run["seconds"] for run in found),
            "first seconds": min(run["first seconds"] for run in found),
            "peak bytes": min(run["peak bytes"] for run in found),
            "goodness": found[0]["goodness"],
            "runs": [dict(run) for run in found],
        }
        for side, found in runs.items()
    }
    before, after = (of_side[side] for side in SIDES)
    ratios = {
        key: float(after[key]) / float(before[key]) if before[key] else 1.0  # type: ignore[arg-type]
        for key in ("seconds", "median seconds", "first seconds", "peak bytes", "goodness")
    }
    return {**of_side, "ratios": ratios, "verdict": verdict(ratios, of_side)}


def verdict(ratios: Mapping[str, float], of_side: Mapping[str, Mapping[str, Any]]) -> str:
    """What is worse after than before, beyond what may be; times if best and median agree."""
    peak = max(float(of_side[side]["peak bytes"]) for side in SIDES)
    worse = {
        "slower": min(ratios["seconds"], ratios["median seconds"]) > SLOWER,
        "larger": ratios["peak bytes"] > LARGER and peak > SMALL_PEAK,
        "worse": ratios["goodness"] > WORSE,
        "better": ratios["goodness"] < 1 / WORSE,
        "faster": max(ratios["seconds"], ratios["median seconds"]) < 1 / SLOWER,
    }
    return ", ".join(word for word, holds in worse.items() if holds)


def markdown(jobs: Sequence[Mapping[str, Any]]) -> str:
    titles = (
        "job",
        "size",
        "before, s",
        "after, s",
        "time",
        "median",
        "first call",
        "before, MB",
        "memory",
        "judged by",
        "before",
        "ratio",
        "",
    )
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    for job in jobs:
        cells = [job["job"], str(job["size"])]
        if "failed" in job:
            cells += [""] * (len(titles) - 3) + [f"not run: {job['failed']}"]
        else:
            before, after, ratios = job["before"], job["after"], job["ratios"]
            cells += [
                number(before["seconds"]),
                number(after["seconds"]),
                *(f"{ratios[k]:.3f}" for k in ("seconds", "median seconds", "first seconds")),
                number(before["peak bytes"] / 1e6),
                f"{ratios['peak bytes']:.3f}",
                JOBS[job["job"]].goodness,
                number(before["goodness"]),
                f"{ratios['goodness']:.4f}",
                job["verdict"],
            ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=list(JOBS), metavar="JOB")
    parser.add_argument("--repeat", type=int, help="processes of either checkout (5; quick: 2)")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--output", type=Path, help="write all numbers to this JSON file")
    options = parser.parse_args()
    checkouts = dict(zip(SIDES, (options.before.resolve(), options.after.resolve()), strict=True))
    for checkout in checkouts.values():
        if not (checkout / "src" / "ridgefold").is_dir():
            parser.error(f"{checkout} has no src/ridgefold")
    repeat = options.repeat or (2 if options.quick else 5)
    found = []
    for name in options.jobs:
        size = JOBS[name].quick_size if options.quick else JOBS[name].size
        found.append(measured(checkouts, name, size, repeat))
        print(
            f"{name}: {found[-1].get('verdict', found[-1].get('failed')) or 'as before'}",
            file=sys.stderr,
            flush=True,
        )
    print(machine_line(machine_facts()), markdown(found), sep="\n\n")
    if options.output:
        record = {"machine": machine_facts(), "jobs": found}
        options.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    bad = {"slower", "larger", "worse"}
    return int(any("failed" in j or bad & set(j["verdict"].split(", ")) for j in found))


if __name__ == "__main__":
    sys.exit(main())
