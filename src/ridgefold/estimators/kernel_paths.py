"""Cross-validation paths of several kernels: planned here, computed wherever the executor says.

The plan of every kernel is made here, as if there were no executor, so that the result does not
depend on where it is computed; then as many kernels are worked on at once as the memory budget
holds. Workers of a cluster have memory of their own: there the budget is that of one worker.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ridgefold import errors
from ridgefold.crossval import Progress
from ridgefold.errors import ConditionWarning
from ridgefold.estimators.describe import describe
from ridgefold.estimators.path_tasks import (
    Common,
    Filed,
    Found,
    PathTask,
    compute,
    compute_and_keep,
    filed,
    gram_of,
    unpacked,
)
from ridgefold.estimators.running import no_memory, with_less
from ridgefold.estimators.validation import TrainingData
from ridgefold.executors import Executor
from ridgefold.executors.base import Result
from ridgefold.kernels import Kernel
from ridgefold.notices import warn
from ridgefold.planning import available_resources, device_of, plan_cross_validation
from ridgefold.planning.words import in_bytes
from ridgefold.records import Plan, Resources, Step
from ridgefold.storage import fingerprint
from ridgefold.storage.run_directory import Run, RunDirectory

_STEP = "choosing kernel and alpha"


@dataclass(frozen=True)
class Wanted:
    """One path to compute."""

    kernel: Kernel | str
    alphas: np.ndarray
    beat: float | None = None
    """In a race, the score to beat."""
    exact: bool = False
    """True if only a method that is certain will do: the last fallback."""


class KernelPaths:
    """Computes paths for one search, and records what they took."""

    def __init__(
        self,
        data: TrainingData,
        common: Common,
        executor: Executor,
        run: Run,
        *,
        method: str,
        memory_budget: Any,
        time_budget: float | None,
    ) -> None:
        self.data, self.common = data, common
        self.executor, self._run = executor, run
        self._method, self._budgets = method, (memory_budget, time_budget)
        self._sent: Common | Filed = common
        if executor.remote:
            assert isinstance(run, RunDirectory)
            self._sent = filed(common, run.path / "data", run.run)
        self.steps: list[Step] = []
        self._seconds = 0.0
        self._written = 0

    # -- planning ------------------------------------------------------------------------

    def resources(self, *, timed: bool = True) -> Resources:
        """What a path may use, where the data are."""
        memory, seconds = self._budgets
        device = device_of(self.data.like)
        found = available_resources(memory, seconds if timed else None, device)
        return replace(found, threads=self.executor.threads(found.threads))

    def _plan(self, wanted: Wanted, resources: Resources) -> Plan:
        problem = describe(
            self.data,
            self.common.targets,
            gram_of(wanted.kernel, self.common.X),
            wanted.alphas,
            bias=self.common.bias,
            folds=self.common.folds,
            # The first kernel of a race has nothing to lose against.
            judged=wanted.beat is not None and np.isfinite(wanted.beat),
            method=self._method,
        )
        plan = plan_cross_validation(problem, resources, self._method)
        if wanted.exact:
            certain = (plan.method, *plan.fallbacks)[-1]
            plan = plan_cross_validation(problem, resources, certain)
        return plan

    # -- running -------------------------------------------------------------------------

    def run(self, wanted: Sequence[Wanted], progress: Progress) -> Iterator[Found]:
        """Every path, in order; those for which there was no memory are planned again with less."""
        resources = self.resources()
        tasks = [
            self._task(each, self._plan(each, resources), _part(progress, k, len(wanted)))
            for k, each in enumerate(wanted)
        ]
        results = self._results(tasks)
        for k, found in enumerate(results):
            if found is None:
                yield from self._again(wanted[k:], tasks[k:], [None, *results], resources)
                return
            self._record(tasks[k], found)
            yield found
            progress((k + 1) / len(wanted))

    def _again(
        self,
        wanted: Sequence[Wanted],
        tasks: Sequence[PathTask],
        results: Sequence[Found | None],
        resources: Resources,
    ) -> Iterator[Found]:
        failed = [k for k, found in enumerate(results) if found is None]
        second = [
            self._task(wanted[k], self._plan(wanted[k], with_less(resources, tasks[k].plan)))
            for k in failed
        ]
        made = dict(zip(failed, zip(second, self._results(second), strict=True), strict=True))
        for k, found in enumerate(results):
            task, result = made.get(k, (tasks[k], found))
            if result is None:
                raise no_memory(_STEP, task.plan)
            self._record(task, result)
            yield result

    def _task(self, wanted: Wanted, plan: Plan, progress: Progress | None = None) -> PathTask:
        task = PathTask(self._sent, wanted.kernel, wanted.alphas, plan, wanted.beat)
        if not self.executor.apart and progress is not None:
            task = replace(task, progress=progress)
        return task

    def _results(self, tasks: Sequence[PathTask]) -> Iterator[Found | None]:
        executor = self._within_budget(tasks)
        if not isinstance(self._run, RunDirectory):
            yield from self._timed(executor, compute, tasks, None)
            return
        run = self._run
        names = [f"kernels/{_digest(task)}" for task in tasks]
        missing = [k for k, name in enumerate(names) if not run.is_whole(name)]
        todo = [replace(tasks[k], piece=run.piece(names[k])) for k in missing]
        made = self._timed(executor, compute_and_keep, todo, [run.key(names[k]) for k in missing])
        waiting = set(missing)
        for k, name in enumerate(names):
            if k in waiting:
                digest = next(made)
                if digest is None:
                    yield None
                    continue
                run.record(name, digest)
            else:
                run.reused.append(name)
            yield unpacked(run.piece(name).read())

    def _within_budget(self, tasks: Sequence[PathTask]) -> Executor:
        """As many workers as the budget holds at once."""
        peak = max(task.plan.cost.peak_bytes for task in tasks)
        budget = tasks[0].plan.resources.memory_bytes
        return self.executor.at_most(max(1, int(budget // max(peak, 1.0))))

    def _timed(
        self,
        executor: Executor,
        work: Callable[[PathTask], Result],
        tasks: Sequence[PathTask],
        keys: Sequence[str] | None,
    ) -> Iterator[Result]:
        """Results in order; the time until each of them came is counted."""
        started = time.perf_counter()
        for result in executor.map(work, tasks, keys):
            self._seconds += time.perf_counter() - started
            yield result
            started = time.perf_counter()

    def _record(self, task: PathTask, found: Found) -> None:
        messages = tuple(text for _, text in found.warned)
        self.steps.append(
            Step(_STEP, task.plan, found.method, found.seconds, found.peak_bytes, messages)
        )
        self._written += found.predictions.nbytes
        for name, text in found.warned:
            category = getattr(errors, name)
            # Tiny ridge values of the grid are ill-conditioned; the one that wins is checked
            # when it is fitted.
            if not issubclass(category, ConditionWarning):
                warn(text, category)

    # -- what it came to -----------------------------------------------------------------

    def whole_step(self, n_kernels: int) -> Step:
        """All paths as one step, planned as the longest of them was.

        Times add up, where kernels are worked on one after the other; of the memory the most
        counts.
        """
        steps = self.steps
        longest = max(steps, key=lambda step: step.seconds)
        peaks = [step.peak_bytes for step in steps if step.peak_bytes is not None]
        plans = [step.plan for step in steps]
        workers = min(self.executor.workers_now(), n_kernels)

        def together(each: list[float]) -> float:
            return max(*each, sum(each) / workers)

        return Step(
            name=_STEP if n_kernels == 1 else f"{_STEP}, {n_kernels} kernels",
            plan=replace(
                longest.plan,
                cost=replace(
                    longest.plan.cost, peak_bytes=max(plan.cost.peak_bytes for plan in plans)
                ),
                seconds=together([plan.seconds for plan in plans]),
                seconds_at_most=together([plan.seconds_at_most for plan in plans]),
            ),
            method=longest.method,
            seconds=self._seconds,
            peak_bytes=max(peaks, default=None),
            where=self.executor.place,
            moves=self._moves(),
        )

    def _moves(self) -> str:
        if not self.executor.apart:
            return ""
        if isinstance(self._sent, Filed):
            return (
                f"{in_bytes(self._sent.X.nbytes)} of rows read from files by every worker, "
                f"{in_bytes(self._written)} of held-out predictions written"
            )
        if self.executor.concurrent_here or self.executor.n_workers == 1:
            return "nothing"
        return f"{in_bytes(self._written)} of held-out predictions back"


def _part(progress: Progress, k: int, count: int) -> Progress:
    return lambda share: progress((k + share) / count)


def _digest(task: PathTask) -> str:
    """A name that is the same for the same path, computed in the same way."""
    asked = {
        **fingerprint.of_settings({"kernel": task.kernel, "alphas": task.alphas}),
        "methods": [task.plan.method, *task.plan.fallbacks],
        "beat": None if task.beat is None else float(task.beat).hex(),
    }
    return hashlib.sha256(repr(asked).encode()).hexdigest()[:32]
