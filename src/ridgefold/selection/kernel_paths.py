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
from ridgefold.crossval import METHODS, Deadline, Progress
from ridgefold.errors import BudgetError, ConditionWarning
from ridgefold.executors import Executor
from ridgefold.executors.base import Result
from ridgefold.kernels import Kernel
from ridgefold.notices import warn
from ridgefold.planning import available_resources, device_of, plan_cross_validation
from ridgefold.planning.words import in_bytes, in_seconds
from ridgefold.records import Plan, Problem, Resources, Step
from ridgefold.runtime.running import giving_up_is_a_budget_error, no_memory, with_less
from ridgefold.runtime.training_data import TrainingData, seconds_left
from ridgefold.selection.describe import describe
from ridgefold.selection.path_tasks import (
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
from ridgefold.storage import fingerprint
from ridgefold.storage.run_directory import Run, RunDirectory

_STEP = "choosing kernel and alpha"
_TELLING_SECONDS = 0.5
"""Shorter work does not say how fast the machine is."""
_FEWEST_ROWS_NAMED, _CELL_ROWS = 100, 1000
"""Fewer rows are no way out, and cells none for fewer than these."""


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
        self._problems: dict[tuple[str, bytes, bool], Problem] = {}
        self.reserved_bytes = 0.0
        """Of the memory, what the search keeps beside the path that is computed."""
        self.reserved_seconds = 0.0
        """Of the time, what the final fit takes."""
        self._seconds = 0.0
        self._written = 0

    def begin(self) -> None:
        """Forget what earlier searches took, so that a further one has a record of its own."""
        self.steps, self._seconds, self._written = [], 0.0, 0

    # -- planning ------------------------------------------------------------------------

    def resources(self, *, timed: bool = True) -> Resources:
        """What a path may use, where the data are."""
        memory, seconds = self._budgets
        device = device_of(self.data.like)
        found = available_resources(memory, seconds, device)
        if self.reserved_bytes >= found.memory_bytes:
            raise BudgetError(
                f"held-out predictions of all kernels and alphas take "
                f"{in_bytes(self.reserved_bytes)}, and memory_budget is "
                f"{in_bytes(found.memory_bytes)}: raise memory_budget, give fewer alphas or "
                "widths, or fit fewer targets at once"
            )
        return replace(
            found,
            memory_bytes=found.memory_bytes - self.reserved_bytes,
            seconds=seconds_left(seconds, self.data) if timed else None,
            threads=self.executor.threads(found.threads),
        )

    @property
    def deadline(self) -> Deadline | None:
        return self.data.deadline

    def require_time(self, wanted: Sequence[Wanted]) -> None:
        """Before the work: all of it is predicted to end in time, the final fit included.

        What a run directory holds takes no time: there it is known later what is yet to be done.
        """
        if self.deadline is None or isinstance(self._run, RunDirectory):
            return
        together = self._predicted(wanted)
        if not self.deadline.has_time_for(together):
            raise BudgetError(self._too_long(together, len(wanted)))

    def has_time_for(self, wanted: Sequence[Wanted]) -> bool:
        """Whether further paths would end in time, even if what is planned first gives up."""
        if self.deadline is None:
            return True
        try:
            return self.deadline.has_time_for(self._predicted(wanted, at_most=True))
        except BudgetError:
            return False

    def _predicted(self, wanted: Sequence[Wanted], *, at_most: bool = False) -> float:
        """Seconds that some paths and the final fit take."""
        resources, plans = self.resources(), []
        for each in wanted:
            try:
                plans.append(self._plan(each, resources))
            except BudgetError as refusal:
                raise BudgetError(f"{each.kernel}: {refusal}") from None
        workers = min(self.executor.workers_now(), len(plans))
        seconds = [plan.seconds_at_most if at_most else plan.seconds for plan in plans]
        return sum(seconds) / workers + self.reserved_seconds

    def _too_long(self, predicted: float, kernels: int) -> str:
        assert self.deadline is not None
        n = self.common.folds.n_rows
        share = self.deadline.left / predicted
        # Work grows with the second to third power of the rows.
        rows = round(n * share**0.5, 1 - len(str(int(n * share**0.5)))) if share > 0 else 0
        ways = ["raise time_budget"]
        if kernels > 1:
            ways.append(f"give fewer kernels or widths than {kernels}")
        if rows >= _FEWEST_ROWS_NAMED:
            ways.append(f"fit on about {int(rows)} rows")
        if n > _CELL_ROWS:
            ways.append("use PartitionedKernelRidge")
        return (
            f"choosing among {kernels} {'kernels' if kernels > 1 else 'kernel'} on {n} rows, and "
            f"the fit, are predicted to take {in_seconds(predicted)}, and "
            f"time_budget={self.deadline.budget:g} s: {', or '.join(ways)}"
        )

    def _problem(self, wanted: Wanted) -> Problem:
        """The data are looked at once for every kernel."""
        # The first kernel of a race has nothing to lose against.
        judged = wanted.beat is not None and bool(np.isfinite(wanted.beat))
        key = (repr(wanted.kernel), wanted.alphas.tobytes(), judged)
        unjudged = (*key[:2], not judged)
        if key not in self._problems and unjudged in self._problems:
            self._problems[key] = replace(self._problems[unjudged], judged=judged)
        if key not in self._problems:
            self._problems[key] = describe(
                self.data,
                self.common.targets,
                gram_of(wanted.kernel, self.common.X),
                wanted.alphas,
                bias=self.common.bias,
                folds=self.common.folds,
                judged=judged,
                method=self._method,
            )
        return self._problems[key]

    def _plan(self, wanted: Wanted, resources: Resources) -> Plan:
        problem = self._problem(wanted)
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
        with giving_up_is_a_budget_error(self._method, resources):
            results = self._results(tasks)
            for k, found in enumerate(results):
                if found is None:
                    yield from self._again(wanted[k:], tasks[k:], [None, *results], resources)
                    return
                self._record(tasks[k], found)
                yield found
                progress((k + 1) / len(wanted))
                self._require_time_for(tasks[k + 1 :])

    def _require_time_for(self, tasks: Sequence[PathTask]) -> None:
        """Between kernels: what is yet to come is still predicted to end in time.

        Methods that cannot look at the clock are taken to be as slow as those that have run.
        """
        if self.deadline is None:
            return
        self.deadline.begun = bool(self.steps)
        fixed = [s for s in self.steps if not METHODS[s.method].may_give_up]
        predicted = sum(s.plan.seconds for s in fixed if s.method == s.plan.method)
        taken = sum(s.seconds for s in fixed if s.method == s.plan.method)
        slower = max(1.0, taken / predicted) if taken > _TELLING_SECONDS else 1.0
        left = slower * self.reserved_seconds
        for task in tasks:
            sure = not METHODS[task.plan.method].may_give_up
            left += task.plan.seconds * (slower if sure else 1.0)
        workers = min(self.executor.workers_now(), max(1, len(tasks)))
        if not self.deadline.has_time_for(left / workers):
            raise BudgetError(
                f"the search was stopped with {len(tasks)} kernels to go: they and the fit would "
                f"take about {in_seconds(left / workers)} more, and of time_budget="
                f"{self.deadline.budget:g} s there are {in_seconds(self.deadline.left)} left: "
                "raise time_budget, give fewer kernels or alphas, fit on fewer rows, or use "
                "PartitionedKernelRidge"
            )

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
        task = PathTask(
            self._sent, wanted.kernel, wanted.alphas, plan, wanted.beat, deadline=self.deadline
        )
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
        self._require_time_for([tasks[k] for k in missing])
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
