"""What every benchmark here needs: steady timings, peak memory, machine facts, result files.

Import it before NumPy: it sets one BLAS thread for this process and its children, because two
threads beside another busy process can be ten times slower than one.
"""

from __future__ import annotations

import argparse
import fcntl
import gc
import importlib.metadata
import json
import multiprocessing
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from provenance import recorded_now

_THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
for _variable in _THREAD_VARIABLES:
    os.environ[_variable] = "1"

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(os.environ.get("RIDGEFOLD_RESULTS") or ROOT / "benchmarks" / "results")
"""Where results are written: `run.py` names a folder for every one of several runs."""
REPLACE = "RIDGEFOLD_REPLACE_RESULTS"
"""A variable of the environment: results that lack earlier figures take their place."""
NOISE = 0.10
"""Two identical runs that differ by more than this are measured again."""


# -- time ----------------------------------------------------------------------------------


def processor_seconds() -> float:
    """Processor time of this process and its finished children.

    With one thread it is what a clock on the wall would show on an idle machine; on a shared
    one it leaves out the time that other processes took.
    """
    import resource

    usage = (resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(u.ru_utime + u.ru_stime for u in usage)


@dataclass(frozen=True)
class Timing:
    """The best of several runs in processor seconds, and how far the second best was from it."""

    seconds: float
    noise: float
    runs: int


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold BLAS and OpenMP to one thread, even where the environment came too late."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield


def best_of(
    calls: Mapping[str, Callable[[], Any]], *, repeats: int = 3, most: int = 12, warm: bool = True
) -> dict[str, Timing]:
    """Best time of each call, in processor seconds.

    The calls take turns, so that a busy minute of the machine meets all of them. After
    `repeats` rounds, further rounds (up to `most`) follow until the two best times of every
    call agree within 10%.
    """
    seconds: dict[str, list[float]] = {name: [] for name in calls}

    def spread(name: str) -> float:
        best, second = sorted(seconds[name])[:2]
        return second / best - 1.0

    with one_thread():
        if warm:
            for call in calls.values():
                call()
        for done in range(most):
            if done >= max(2, repeats) and all(spread(name) <= NOISE for name in calls):
                break
            for name, call in calls.items():
                gc.collect()
                started = processor_seconds()
                call()
                seconds[name].append(processor_seconds() - started)
    return {name: Timing(min(t), spread(name), len(t)) for name, t in seconds.items()}


# -- memory --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """What one call in a process of its own took."""

    peak_bytes: float
    """Most bytes resident at once during the call, beyond what was there before it."""
    seconds: float
    """Processor time."""


def _status(key: str) -> float:
    """A figure of /proc/self/status in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return float(line.split()[1]) * 1024
    raise OSError(f"no {key} in /proc/self/status")


def _high_water() -> float:
    try:
        return _status("VmHWM")
    except OSError:
        return _largest("RUSAGE_SELF")


def largest_child() -> float:
    """The most bytes that any finished child of this process had resident."""
    return _largest("RUSAGE_CHILDREN")


def _largest(whose: str) -> float:
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(getattr(resource, whose)).ru_maxrss * unit)


def _return_free_memory() -> None:
    """Give freed pages back to the system: reused, they would hide what a call needs."""
    import ctypes

    gc.collect()
    with suppress(AttributeError, OSError, TypeError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)


def measured_call(call: Callable[[], Any]) -> tuple[Run, Any]:
    """Peak memory and processor time of a call in this process, and its result."""
    _return_free_memory()
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts anew
        before = _status("VmRSS")
    except OSError:
        before = _high_water()
    started = processor_seconds()
    result = call()
    seconds = processor_seconds() - started
    return Run(_high_water() - before, seconds), result


def _run_here(setup: Callable[..., Callable[[], Any]], arguments: tuple[Any, ...]) -> Run:
    with one_thread():
        run, result = measured_call(setup(*arguments))
    del result
    return run


def run_in_child(setup: Callable[..., Callable[[], Any]], *arguments: Any) -> Run:
    """Peak memory and processor time of one call in a fresh process.

    `setup(*arguments)`, a function of a module, makes the data, loads what has to be loaded
    and returns the call to measure. It runs in a fresh process, so nothing that was freed
    earlier can hide what the call needs.
    """
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_run_here, (setup, arguments))


def peak_memory(setup: Callable[..., Callable[[], Any]], *arguments: Any) -> float:
    """The peak of `run_in_child`, in bytes."""
    return run_in_child(setup, *arguments).peak_bytes


# -- results -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Figure:
    """One measured number, beside what it should be."""

    what: str
    measured: float | None
    """None if it could not be measured; the unit then says why."""
    unit: str = ""
    at_most: float | None = None
    at_least: float | None = None
    detail: Mapping[str, float] = field(default_factory=dict)
    """Further numbers behind this one, by name."""
    spread: tuple[float, float] | None = None
    """The least and the largest of several runs, of which `measured` is the median."""

    @property
    def held(self) -> bool | None:
        """Whether the target was met; None without a target or a measurement."""
        if self.measured is None:
            return None
        if self.at_most is not None:
            return bool(self.measured <= self.at_most)
        return None if self.at_least is None else bool(self.measured >= self.at_least)

    @property
    def target(self) -> str:
        if self.at_most is not None:
            return f"≤ {number(self.at_most)}"
        return "" if self.at_least is None else f"≥ {number(self.at_least)}"


def asdict_held(figure: Figure) -> dict[str, Any]:
    """A figure as a result file keeps it."""
    return asdict(figure) | {"held": figure.held}


def all_held(figures: Sequence[Figure]) -> bool:
    """True if no target was missed."""
    return all(figure.held is not False for figure in figures)


def number(value: float) -> str:
    """Three significant digits without an exponent."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def machine_facts() -> dict[str, str]:
    facts = {
        "date": time.strftime("%Y-%m-%d"),
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "threads used": "1",
        "python": platform.python_version(),
    }
    for package in ("numpy", "scipy", "scikit-learn", "ridgefold"):
        with suppress(importlib.metadata.PackageNotFoundError):
            facts[package] = importlib.metadata.version(package)
    facts["blas"] = _blas()
    return facts


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _blas() -> str:
    import numpy  # noqa: F401 (loads the libraries that are listed)
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info

    loaded = {
        f"{i['internal_api']} {i['version']} ({i.get('architecture', 'unknown')})"
        for i in threadpool_info()
        if i["user_api"] == "blas"
    }
    return ", ".join(sorted(loaded))


def markdown_table(figures: Sequence[Figure]) -> str:
    """Figures as a table: what, target, measured, held."""
    lines = ["| what | target | measured | held |", "|---|---|---|---|"]
    words = {True: "yes", False: "**no**", None: ""}
    for f in figures:
        measured = f"{'' if f.measured is None else number(f.measured)} {f.unit}".strip()
        if f.spread is not None:
            measured += f" ({number(f.spread[0])} to {number(f.spread[1])})"
        lines.append(f"| {f.what} | {f.target} | {measured} | {words[f.held]} |")
    return "\n".join(lines)


def machine_line(facts: Mapping[str, str]) -> str:
    return ", ".join(
        f"{value}" if name in ("date", "processor") else f"{name} {value}"
        for name, value in facts.items()
    )


def write_results(
    name: str,
    title: str,
    notes: str,
    figures: Sequence[Figure],
    *,
    more: str = "",
    data: Mapping[str, Any] | None = None,
    whole: bool | None = None,
) -> None:
    """Write results/<name>.json and results/<name>.md.

    `more` is Markdown that follows the table of figures, `data` the numbers behind it. Results
    that lack what the earlier ones have (a peer is not installed, a run was stopped, only a part
    was asked for) never take their place: they go to results/partial, and what they lack is
    printed. `whole` decides it where the script knows.
    """
    facts = machine_facts()
    folder = RESULTS
    lacking = [] if whole else lost_figures(RESULTS / f"{name}.json", figures)
    if whole is False or (lacking and not os.environ.get(REPLACE)):
        folder = RESULTS / "partial"
        print(f"{name}: not whole, so written to {folder} beside the earlier results.")
        print(f"   not measured this time: {'; '.join(lacking) or 'what the script left out'}")
        print(f"   {REPLACE}=1 puts it in their place, if figures were renamed or dropped.")
    folder.mkdir(parents=True, exist_ok=True)
    record = {
        "machine": facts,
        "sources": recorded_now(_script()),
        "figures": [asdict_held(f) for f in figures],
        **(data or {}),
    }
    text = json.dumps(record, indent=1, ensure_ascii=False)
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    details = "\n".join(
        f"- {f.what}: " + ", ".join(f"{key} {number(value)}" for key, value in f.detail.items())
        for f in figures
        if f.detail
    )
    page = f"# {title}\n\n{machine_line(facts)}\n\n{notes.strip()}\n\n{markdown_table(figures)}\n"
    if more:
        page += f"\n{more.strip()}\n"
    if details:
        page += f"\n## The numbers behind them\n\n{details}\n"
    (folder / f"{name}.md").write_text(page, encoding="utf-8")


@contextmanager
def kept(path: Path) -> Iterator[dict[str, Any]]:
    """The record of a run that goes on where it was, to be changed; several processes may add."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        text = file.read()
        record = json.loads(text) if text else {"machine": machine_facts(), "runs": {}}
        before = json.dumps(record)
        yield record
        if json.dumps(record) != before:
            file.seek(0)
            file.truncate(0)
            file.write(json.dumps(record, indent=1, ensure_ascii=False) + "\n")


def lost_figures(path: Path, figures: Sequence[Figure]) -> list[str]:
    """What earlier results have measured and these have not."""
    if not path.exists():
        return []
    measured = {figure.what for figure in figures if figure.measured is not None}
    before = json.loads(path.read_text(encoding="utf-8")).get("figures", [])
    return [f["what"] for f in before if f["measured"] is not None and f["what"] not in measured]


def _script() -> Path | None:
    """The script that this process runs, if it is a benchmark."""
    path = Path(sys.argv[0]).resolve()
    return path if path.suffix == ".py" and ROOT / "benchmarks" in path.parents else None


def command_line(main: Callable[[bool], bool], description: str | None) -> None:
    """Run a benchmark script: `--quick` for small sizes that write nothing."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, a few seconds, results not written"
    )
    sys.exit(0 if main(parser.parse_args().quick) else 1)
