"""Cross-validation paths of several kernels: planned here, computed wherever the executor says.

The plan of every kernel is made here, as if there were no executor, so that the result does not
depend on where it is computed; then as many kernels are worked on at once as the memory budget
holds. Workers of a cluster have memory of their own: there the budget is that of one worker.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ridgefold import errors
from ridgefold.crossval import METHODS, Deadline, Progress
from ridgefold.errors import BudgetError, ConditionWarning
from ridgefold.executors import Executor
from ridgefold.notices import warn
from ridgefold.planning import available_resources, device_of, plan_cross_validation
from ridgefold.planning.amounts import in_bytes, in_seconds
from ridgefold.records import KernelPath, Plan, Problem, Resources, StepRecord
from ridgefold.runtime.resumable import resumable_map
from ridgefold.runtime.training_data import TrainingData, seconds_left
from ridgefold.selection.cross_validate import giving_up_is_a_budget_error
from ridgefold.selection.describe import describe
from ridgefold.selection.path_tasks import (
    STEP,
    Common,
    Filed,
    PathTask,
    cross_validated,
    filed,
    gram_of,
)
from ridgefold.storage import fingerprint
from ridgefold.storage.run_directory import Run, RunDirectory

_TELLING_SECONDS = 0.5
"""Shorter work does not say how fast the machine is."""
_FEWEST_ROWS_NAMED, _CELL_ROWS = 100, 1000
"""Fewer rows are no way out, and cells none for fewer than these."""


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
        self.records: list[StepRecord] = []
        self._problems: dict[tuple[str, bytes, bool], Problem] = {}
        self.reserved_bytes = 0.0
        """Of the memory, what the search keeps beside the path that is computed."""
        self.reserved_seconds = 0.0
        """Of the time, what the final fit takes."""
        self._seconds = 0.0
        self._written = 0

    def begin(self) -> None:
        """Forget what earlier searches took, so that a further one has a record of its own."""
        self.records, self._seconds, self._written = [], 0.0, 0

    # -- planning ------------------------------------------------------------------------

    def resources(self, *, timed: bool = True) -> Resources:
        """What a path may use, where the data are."""
        memory, seconds = self._budgets
        device = device_of(self.data.like)
        available = available_resources(memory, seconds, device)
        if self.reserved_bytes >= available.memory_bytes:
            raise BudgetError(
                f"held-out predictions of all kernels and alphas take "
                f"{in_bytes(self.reserved_bytes)}, and memory_budget is "
                f"{in_bytes(available.memory_bytes)}: raise memory_budget, give fewer alphas or "
                "widths, or fit fewer targets at once"
            )
        return replace(
            available,
            memory_bytes=available.memory_bytes - self.reserved_bytes,
            seconds=seconds_left(seconds, self.data) if timed else None,
            threads=self.executor.threads(available.threads),
        )

    @property
    def deadline(self) -> Deadline | None:
        return self.data.deadline

    def require_time(self, tasks: Sequence[PathTask]) -> None:
        """Before the work: all of it is predicted to end in time, the final fit included.

        What a run directory holds takes no time: there it is known later what is yet to be done.
        """
        if self.deadline is None or isinstance(self._run, RunDirectory):
            return
        together = self._predicted(tasks)
        if not self.deadline.has_time_for(together):
            raise BudgetError(self._too_long(together, len(tasks)))

    def has_time_for(self, tasks: Sequence[PathTask]) -> bool:
        """Whether further paths would end in time, even if what is planned first gives up."""
        if self.deadline is None:
            return True
        try:
            return self.deadline.has_time_for(self._predicted(tasks, at_most=True))
        except BudgetError:
            return False

    def _predicted(self, tasks: Sequence[PathTask], *, at_most: bool = False) -> float:
        """Seconds that some paths and the final fit take."""
        resources, plans = self.resources(), []
        for each in tasks:
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

    def _problem(self, task: PathTask) -> Problem:
        """The data are looked at once for every kernel."""
        # The first kernel of a race has nothing to lose against.
        judged = task.beat is not None and bool(np.isfinite(task.beat))
        key = (repr(task.kernel), task.alphas.tobytes(), judged)
        unjudged = (*key[:2], not judged)
        if key not in self._problems and unjudged in self._problems:
            self._problems[key] = replace(self._problems[unjudged], judged=judged)
        if key not in self._problems:
            self._problems[key] = describe(
                self.data,
                self.common.targets,
                gram_of(task.kernel, self.common.X, self.common.fixed),
                task.alphas,
                bias=self.common.bias,
                folds=self.common.folds,
                judged=judged,
                method=self._method,
            )
        return self._problems[key]

    def _plan(self, task: PathTask, resources: Resources) -> Plan:
        plan = plan_cross_validation(self._problem(task), resources, self._method)
        if task.exact:
            certain = (plan.method, *plan.fallbacks)[-1]
            plan = plan_cross_validation(plan.problem, resources, certain)
        return plan

    # -- running -------------------------------------------------------------------------

    def run(self, tasks: Sequence[PathTask], progress: Progress) -> Iterator[KernelPath]:
        """Every path, in order; a task for which there is no memory plans again with less."""
        resources = self.resources()
        planned = [
            self._planned(task, resources, _part(progress, k, len(tasks)))
            for k, task in enumerate(tasks)
        ]
        with giving_up_is_a_budget_error(self._method, resources):
            paths = resumable_map(
                self._within_budget(planned),
                cross_validated,
                planned,
                self._names(planned),
                self._run,
                begin=self._require_time_for,
            )
            started = time.perf_counter()
            for k, path in enumerate(paths):
                self._seconds += time.perf_counter() - started
                self._keep_record(path)
                yield path
                progress((k + 1) / len(tasks))
                self._require_time_for(planned[k + 1 :])
                started = time.perf_counter()

    def _names(self, tasks: Sequence[PathTask]) -> list[str]:
        """What a run directory keeps results by; without one nobody asks."""
        if not isinstance(self._run, RunDirectory):
            return ["" for _ in tasks]
        return [f"kernels/{_digest(task)}" for task in tasks]

    def _planned(self, task: PathTask, resources: Resources, progress: Progress) -> PathTask:
        """The task as it is sent, with its plan."""
        plan = self._plan(task, resources)
        method = plan.method if task.exact else self._method
        planned = replace(
            task,
            method=method,
            plan=plan,
            common=self._sent,
            deadline=self.deadline,
        )
        return planned if self.executor.apart else replace(planned, progress=progress)

    def _require_time_for(self, tasks: Sequence[PathTask]) -> None:
        """Refuse to go on between kernels if what is left is not predicted to end in time.

        Methods that cannot look at the clock are taken to be as slow as those that have run.
        """
        if self.deadline is None:
            return
        self.deadline.begun = bool(self.records)
        fixed = [r for r in self.records if not METHODS[r.method].may_give_up]
        predicted = sum(r.plan.seconds for r in fixed if r.method == r.plan.method)
        taken = sum(r.seconds for r in fixed if r.method == r.plan.method)
        slower = max(1.0, taken / predicted) if taken > _TELLING_SECONDS else 1.0
        left = slower * self.reserved_seconds
        for plan in _plans(tasks):
            sure = not METHODS[plan.method].may_give_up
            left += plan.seconds * (slower if sure else 1.0)
        workers = min(self.executor.workers_now(), max(1, len(tasks)))
        if not self.deadline.has_time_for(left / workers):
            raise BudgetError(
                f"the search was stopped with {len(tasks)} kernels to go: they and the fit would "
                f"take about {in_seconds(left / workers)} more, and of time_budget="
                f"{self.deadline.budget:g} s there are {in_seconds(self.deadline.left)} left: "
                "raise time_budget, give fewer kernels or alphas, fit on fewer rows, or use "
                "PartitionedKernelRidge"
            )

    def _within_budget(self, tasks: Sequence[PathTask]) -> Executor:
        """As many workers as the budget holds at once."""
        plans = _plans(tasks)
        peak = max(plan.cost.peak_bytes for plan in plans)
        budget = plans[0].resources.memory_bytes
        return self.executor.at_most(max(1, int(budget // max(peak, 1.0))))

    def _keep_record(self, path: KernelPath) -> None:
        self.records.append(path.record)
        self._written += path.predictions.nbytes
        for name, text in path.warned:
            category = getattr(errors, name)
            # Tiny ridge values of the grid are ill-conditioned; the one that wins is checked
            # when it is fitted.
            if not issubclass(category, ConditionWarning):
                warn(text, category)

    # -- what it came to -----------------------------------------------------------------

    def whole_record(self, n_kernels: int) -> StepRecord:
        """All paths as one step, planned as the longest of them was.

        Times add up, where kernels are worked on one after the other; of the memory the most
        counts.
        """
        longest = max(self.records, key=lambda record: record.seconds)
        peaks = [record.peak_bytes for record in self.records if record.peak_bytes is not None]
        workers = min(self.executor.workers_now(), n_kernels)
        plan = together([record.plan for record in self.records], longest.plan, workers, n_kernels)
        return StepRecord(
            name=STEP,
            plan=replace(plan, where=place_of(self.executor), moves=self._moves()),
            method=longest.method,
            seconds=self._seconds,
            peak_bytes=max(peaks, default=None),
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


def together(plans: Sequence[Plan], like: Plan, workers: int, n_kernels: int) -> Plan:
    """The plans of several kernels as one, whose words are those of one of them."""

    def in_turn(each: list[float]) -> float:
        return max(*each, sum(each) / workers)

    return replace(
        like,
        problem=replace(like.problem, n_kernels=n_kernels),
        cost=replace(like.cost, peak_bytes=max(plan.cost.peak_bytes for plan in plans)),
        seconds=in_turn([plan.seconds for plan in plans]),
        seconds_at_most=in_turn([plan.seconds_at_most for plan in plans]),
    )


def place_of(executor: Executor) -> str:
    """Where kernels are worked on, in words; empty for the caller."""
    return f"{executor.place}, one kernel a task" if executor.place else ""


def _plans(tasks: Sequence[PathTask]) -> list[Plan]:
    return [task.plan for task in tasks if task.plan is not None]


def _part(progress: Progress, k: int, count: int) -> Progress:
    return lambda share: progress((k + share) / count)


def _digest(task: PathTask) -> str:
    """A name that is the same for the same path, computed in the same way."""
    assert task.plan is not None
    asked = {
        **fingerprint.of_settings({"kernel": task.kernel, "alphas": task.alphas}),
        "methods": [task.plan.method, *task.plan.fallbacks],
        "beat": None if task.beat is None else float(task.beat).hex(),
    }
    return hashlib.sha256(repr(asked).encode()).hexdigest()[:32]
