"""Choose kernel and ridge by exact cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ridgefold.crossval import Folds, Progress
from ridgefold.errors import BudgetError, InvalidInputError, TimeBudgetWarning
from ridgefold.notices import warn
from ridgefold.planning import plan_cross_validation
from ridgefold.records import KernelPath, Problem, StepRecord
from ridgefold.selection.cross_validate import run_cross_validation
from ridgefold.selection.grids import (
    WIDTH_STEP,
    Candidate,
    KernelGrid,
    further_alphas,
    wider,
)
from ridgefold.selection.kernel_paths import KernelPaths
from ridgefold.selection.path_tasks import PathTask, gram_of
from ridgefold.selection.race import promised, settle
from ridgefold.selection.scoring import Rule, Truth

_MOST_EXTENSIONS = 4
"""How often a grid grows where its best pair lies on an edge: by two decades, or a width."""
_FEWEST_RACED = 1000
"""With fewer rows, "auto" scores every pair: it costs little."""
_LEAST_SAMPLED, _MOST_SAMPLED, _SAMPLE_FOLDS, _SAMPLE_ALPHAS = 160, 512, 4, 6
"""Rows, folds and ridge values that tell which kernels to try first."""
_SAMPLE_METHOD = "eigendecomposition"


@dataclass(frozen=True)
class Settings:
    """How to search."""

    alpha_per_target: bool
    one_standard_error: bool
    race: str
    """"full" scores every pair; "race" leaves out what can no longer win; "auto" is one of them."""


@dataclass(frozen=True)
class Trial:
    """One (kernel, alpha) pair and how it did."""

    candidate: Candidate
    alpha: float
    overall: float
    by_fold: np.ndarray
    by_target: np.ndarray
    """Scores of every target by itself, shape (1 + folds, t): over all folds, then of each fold
    (only with one alpha a target, else empty)."""
    seconds: float
    bound: float = np.nan
    """What a pair that was dropped could have reached at most."""


@dataclass(frozen=True)
class Choice:
    """What the search found."""

    candidate: Candidate
    alphas: np.ndarray
    """The chosen ridge for every target, shape (t,)."""
    score: float
    trials: tuple[Trial, ...]
    best_index: int
    predictions: np.ndarray
    """Held-out predictions of the choice, shape (rows of all folds, t)."""
    record: StepRecord
    """How all of it was computed."""


@dataclass(frozen=True)
class _Leader:
    """The kernel that leads so far, with its held-out predictions: the others' are dropped."""

    candidate: Candidate
    merit: float
    alphas: np.ndarray
    predictions: np.ndarray


@dataclass
class GridSearch:
    """Evaluates kernels over all alphas, one cross-validation path each."""

    paths: KernelPaths
    scoring: Rule
    settings: Settings
    _leader: _Leader | None = None

    @property
    def folds(self) -> Folds:
        return self.paths.common.folds

    @property
    def truth(self) -> Truth:
        return self.paths.common.truth

    def run(
        self, grid: KernelGrid, alphas: np.ndarray, extend_alphas: bool, progress: Progress
    ) -> Choice:
        """Try the grid; extend it where the best pair lies on an edge that was chosen here."""
        candidates = list(grid.candidates)
        count = len(candidates)

        self.paths.reserved_bytes = self._kept_bytes(count, len(alphas))
        self.paths.require_time(
            [PathTask(c.kernel, alphas, self._foreseen(k)) for k, c in enumerate(candidates)]
        )
        if self._can_race():
            table = self._race(candidates, alphas, progress)
        else:
            table = self._evaluate([(c, alphas) for c in candidates], progress)
        # scikit-learn's ParameterGrid runs through the kernels for each alpha; ties go to the
        # first in that order.
        trials = [table[k][j] for j in range(len(alphas)) for k in range(count)]
        for _ in range(_MOST_EXTENSIONS):
            best = trials[self._best(trials)]
            more: list[tuple[Candidate, np.ndarray]] = []
            if extend_alphas and best.alpha in (alphas.min(), alphas.max()):
                new = further_alphas(alphas, below=best.alpha == alphas.min())
                more.append((best.candidate, new))
                alphas = np.concatenate([alphas, new])
            if grid.widths_from_data and best.candidate in (candidates[0], candidates[-1]):
                below = best.candidate == candidates[0]
                width = best.candidate.params["length_scale"]
                if 1e-300 < width < 1e300:
                    new_width = wider(best.candidate, 1 / WIDTH_STEP if below else WIDTH_STEP)
                    candidates.insert(0 if below else len(candidates), new_width)
                    more.append((new_width, alphas))
            if not more:
                break
            further = self._extended(more)
            if further is None:
                warn(
                    "the best pair lies on the edge of the grid, which was not extended further, "
                    "as time_budget leaves no time for it: raise time_budget, or give alphas and "
                    "widths",
                    TimeBudgetWarning,
                )
                break
            trials += further
        return self._choose(trials)

    def _extended(self, more: list[tuple[Candidate, np.ndarray]]) -> list[Trial] | None:
        """Further pairs that nobody asked for by name; None if there is no time for them."""
        if not self.paths.has_time_for([PathTask(c.kernel, values) for c, values in more]):
            return None
        try:
            return [trial for path in self._evaluate(more, _silent) for trial in path]
        except BudgetError:
            if self.paths.deadline is None:
                raise
            return None

    def _foreseen(self, kernel: int) -> float | None:
        """The score to beat, as plans see it: in a race, all but the first have one."""
        if not self._can_race():
            return None
        return -np.inf if kernel == 0 else 0.0

    def _kept_bytes(self, kernels: int, n_alphas: int) -> float:
        """Held-out predictions that are kept: in a race of every kernel, else of the leader and
        the latest; then scores, and predictions by row."""
        rows, t = len(self.folds.stacked), int(self.paths.common.targets.shape[1])
        of_one = 8.0 * n_alphas * rows * t
        return of_one * (kernels + 1 if self._can_race() else 3) + 4 * 8.0 * rows * t

    def _can_race(self) -> bool:
        return may_race(self.settings, self.scoring, self.folds.n_rows, self.folds.leave_one_out)

    def _race(
        self, candidates: list[Candidate], alphas: np.ndarray, progress: Progress
    ) -> list[list[Trial]]:
        # A kernel that the grid holds twice runs once, so that its scores tie to the last bit.
        first = [_first_alike(candidates, k) for k in range(len(candidates))]
        distinct = sorted(set(first))
        order = [distinct[k] for k in self._by_promise([candidates[k] for k in distinct], alphas)]

        def ran(kernels: list[int], beat: float, begin: float) -> dict[int, KernelPath]:
            def part(share: float) -> None:
                progress(begin + share * len(kernels) / len(order))

            tasks = [PathTask(candidates[k].kernel, alphas, beat) for k in kernels]
            return dict(zip(kernels, self.paths.run(tasks, part), strict=True))

        def exactly(kernel: int, open_alphas: np.ndarray) -> np.ndarray:
            again = PathTask(candidates[kernel].kernel, alphas[open_alphas], exact=True)
            (path,) = self.paths.run([again], _silent)
            return path.predictions

        paths = ran(order[:1], -np.inf, 0.0)
        if len(order) > 1:
            beat = promised(self.scoring, self.truth, paths[order[0]].lower)
            paths.update(ran(order[1:], beat, 1 / len(order)))
        seconds = sum(path.record.seconds for path in paths.values())
        settled = dict(
            zip(
                distinct,
                settle(
                    self.scoring,
                    self.truth,
                    [paths[k] for k in distinct],
                    lambda place, some: exactly(distinct[place], some),
                ),
                strict=True,
            )
        )
        computed = len(self.folds) * sum(int(np.sum(path.finished)) for path in settled.values())
        return [
            self._trials_of(candidate, alphas, settled[first[k]], seconds / max(computed, 1))
            for k, candidate in enumerate(candidates)
        ]

    def _by_promise(self, candidates: list[Candidate], alphas: np.ndarray) -> list[int]:
        """The kernels in the order of their least squared error on a sample of the rows.

        Of few rows no sample is drawn: the one in the middle of the grid is first.
        """
        n = self.folds.n_rows
        sample = min(_MOST_SAMPLED, max(_LEAST_SAMPLED, n // 12))
        middle = len(candidates) // 2
        as_they_are = [middle, *(k for k in range(len(candidates)) if k != middle)]
        if len(candidates) == 1 or n <= 4 * sample:
            return as_they_are
        rows = np.sort(np.random.default_rng(0).permutation(n)[:sample])
        folds = Folds(sample, tuple(np.array_split(np.arange(sample), _SAMPLE_FOLDS)))
        common, namespace = self.paths.common, self.paths.data.namespace
        targets = namespace.take_rows(common.targets, rows)
        numbers = namespace.to_numpy(targets)
        sample_alphas = alphas[:: max(1, len(alphas) // _SAMPLE_ALPHAS)]
        errors = []
        for candidate in candidates:
            gram = gram_of(candidate.kernel, common.X, common.fixed).restricted(rows)
            problem = Problem(
                sample,
                1,
                targets.shape[1],
                len(sample_alphas),
                itemsize=gram.itemsize,
                folds=folds.shapes,
            )
            try:
                resources = self.paths.resources(timed=False)
                plan = plan_cross_validation(problem, resources, _SAMPLE_METHOD)
            except BudgetError:  # a smaller method may do the search itself
                return as_they_are
            path = run_cross_validation(plan, gram, folds, targets, sample_alphas, bias=common.bias)
            predictions = namespace.to_numpy(path.predictions)
            errors.append(float(np.min(np.mean((predictions - numbers) ** 2, axis=(1, 2)))))
        return [int(k) for k in np.argsort(errors, kind="stable")]

    def _trials_of(
        self, candidate: Candidate, alphas: np.ndarray, path: KernelPath, seconds: float
    ) -> list[Trial]:
        """Scores where all folds were computed; NaN for pairs that were dropped."""
        finished, none = path.finished, np.empty(0)
        overall = np.full(len(alphas), np.nan)
        by_fold = np.full((len(alphas), len(self.folds)), np.nan)
        if finished.any():
            scores = self.scoring(self.truth, path.predictions[finished])
            overall[finished], by_fold[finished] = scores.overall, scores.by_fold
            self._keep_if_leading(
                candidate,
                alphas[finished],
                path.predictions[finished],
                overall[finished],
                none,
            )
        return [
            Trial(
                candidate,
                float(a),
                float(overall[j]),
                by_fold[j],
                none,
                seconds,
                float(path.dropped[j]),
            )
            for j, a in enumerate(alphas)
        ]

    def _evaluate(
        self, paths: Sequence[tuple[Candidate, np.ndarray]], progress: Progress
    ) -> list[list[Trial]]:
        """Every alpha with its kernel, to the end."""
        tasks = [PathTask(candidate.kernel, alphas) for candidate, alphas in paths]
        return [
            self._scored(candidate, alphas, path)
            for (candidate, alphas), path in zip(
                paths, self.paths.run(tasks, progress), strict=True
            )
        ]

    def _scored(self, candidate: Candidate, alphas: np.ndarray, path: KernelPath) -> list[Trial]:
        predictions = path.predictions
        scores = self.scoring(self.truth, predictions)
        by_target = np.empty((len(alphas), 1, 0))
        if self.settings.alpha_per_target:
            alone = [
                self.scoring(self._truth_of(j), predictions[:, :, j : j + 1])
                for j in range(predictions.shape[2])
            ]
            by_target = np.stack(
                [np.column_stack([each.overall, each.by_fold]) for each in alone], axis=2
            )
        self._keep_if_leading(candidate, alphas, predictions, scores.overall, by_target[:, 0])
        seconds = path.record.seconds / (len(alphas) * len(self.folds))
        return [
            Trial(
                candidate,
                float(alpha),
                float(scores.overall[j]),
                scores.by_fold[j],
                by_target[j],
                seconds,
            )
            for j, alpha in enumerate(alphas)
        ]

    def _keep_if_leading(
        self,
        candidate: Candidate,
        alphas: np.ndarray,
        predictions: np.ndarray,
        overall: np.ndarray,
        by_target: np.ndarray,
    ) -> None:
        scores = by_target if self.settings.alpha_per_target else overall[:, None]
        merit = float(np.max(np.where(np.isfinite(scores), scores, -np.inf), axis=0).mean())
        leader = self._leader
        if leader is not None and leader.candidate == candidate:
            alphas = np.concatenate([leader.alphas, alphas])
            predictions = np.concatenate([leader.predictions, predictions])
            merit = max(merit, leader.merit)
        elif leader is not None and merit <= leader.merit:
            return
        self._leader = _Leader(candidate, merit, alphas, predictions)

    def _truth_of(self, target: int) -> Truth:
        return Truth(
            self.truth.folds,
            self.truth.y[:, target : target + 1],
            self.truth.weights,
            self.truth.classes,
        )

    # -- choice --------------------------------------------------------------------------

    @staticmethod
    def _best(trials: list[Trial]) -> int:
        """The first trial with the highest finite score."""
        scores = np.asarray([trial.overall for trial in trials])
        scores = np.where(np.isfinite(scores), scores, -np.inf)
        if not np.any(np.isfinite(scores)):
            raise InvalidInputError(
                "no pair of kernel and alpha has a finite score: check that scoring is defined on "
                "every fold (a fold with one class, or one row, leaves some scores undefined)"
            )
        return int(np.argmax(scores))

    def _choose(self, trials: list[Trial]) -> Choice:
        index = self._best(trials)
        if self.settings.one_standard_error:
            same = [i for i, t in enumerate(trials) if t.candidate == trials[index].candidate]
            index = same[
                _largest_within_one_error(
                    [trials[i].alpha for i in same],
                    np.asarray([trials[i].overall for i in same]),
                    trials[index].by_fold,
                )
            ]
        candidate, score = trials[index].candidate, trials[index].overall
        alphas = np.full(self.paths.common.targets.shape[1], trials[index].alpha)
        if self.settings.alpha_per_target:
            index, alphas, score = self._best_by_target(trials)
            candidate = trials[index].candidate
        predictions = self._predictions_of(candidate, alphas)
        record = self.paths.whole_record(len(_kernels_of(trials)))
        return Choice(candidate, alphas, score, tuple(trials), index, predictions, record)

    def _best_by_target(self, trials: list[Trial]) -> tuple[int, np.ndarray, float]:
        """The kernel whose targets do best on average when each has its own best alpha."""
        best: tuple[float, int, np.ndarray] | None = None
        for kernel in _kernels_of(trials):
            indices = [i for i, trial in enumerate(trials) if trial.candidate == kernel]
            by_fold = np.stack([trials[i].by_target[1:] for i in indices])
            scores = np.stack([trials[i].by_target[0] for i in indices])
            scores = np.where(np.isfinite(scores), scores, -np.inf)
            winners = np.argmax(scores, axis=0)
            mean = float(scores[winners, np.arange(scores.shape[1])].mean())
            if best is None or mean > best[0]:
                if self.settings.one_standard_error:
                    values = [trials[i].alpha for i in indices]
                    winners = np.asarray(
                        [
                            _largest_within_one_error(values, scores[:, j], by_fold[w, :, j])
                            for j, w in enumerate(winners)
                        ]
                    )
                chosen = np.asarray([trials[indices[w]].alpha for w in winners])
                best = (mean, indices[int(winners[0])], chosen)
        assert best is not None
        return best[1], best[2], best[0]

    def _predictions_of(self, candidate: Candidate, alphas: np.ndarray) -> np.ndarray:
        leader = self._leader
        if (
            leader is not None
            and leader.candidate == candidate
            and np.isin(alphas, leader.alphas).all()
        ):
            known, path = leader.alphas, leader.predictions
        else:  # another kernel was as good, or these were computed before it led
            known = np.unique(alphas)
            (again,) = self.paths.run([PathTask(candidate.kernel, known)], _silent)
            path = again.predictions
        where = [int(np.flatnonzero(known == alpha)[0]) for alpha in alphas]
        return np.stack([path[w, :, j] for j, w in enumerate(where)], axis=1)


def may_race(settings: Settings, scoring: Rule, n_rows: int, leave_one_out: bool) -> bool:
    """A race needs a bound on the scores, and gives no scores by target or beside the best.

    Of single rows no method leaves any out on the way: there is nothing to race for.
    """
    return (
        (settings.race == "race" or n_rows >= _FEWEST_RACED)
        and settings.race != "full"
        and scoring.spread is not None
        and not leave_one_out
        and not settings.alpha_per_target
        and not settings.one_standard_error
    )


def _first_alike(candidates: list[Candidate], k: int) -> int:
    """The first candidate with the same kernel."""
    return next(j for j in range(k + 1) if candidates[j].kernel == candidates[k].kernel)


def _largest_within_one_error(
    alphas: list[float], scores: np.ndarray, best_by_fold: np.ndarray
) -> int:
    """The position of the largest alpha within one standard error of the best score."""
    known = best_by_fold[np.isfinite(best_by_fold)]  # a fold of one row may have no score
    error = float(np.std(known, ddof=1)) / np.sqrt(len(known)) if len(known) > 1 else 0.0
    floor = np.max(np.where(np.isfinite(scores), scores, -np.inf)) - error
    return max((alpha, i) for i, alpha in enumerate(alphas) if scores[i] >= floor)[1]


def _silent(share: float) -> None:
    """Work that is too short to report."""


def _kernels_of(trials: list[Trial]) -> list[Candidate]:
    """Every kernel that was tried, once."""
    kernels: list[Candidate] = []
    for trial in trials:
        if trial.candidate not in kernels:
            kernels.append(trial.candidate)
    return kernels


def results_table(trials: tuple[Trial, ...]) -> dict[str, Any]:
    """`cv_results_` in scikit-learn's shape."""
    keys = list(dict.fromkeys(["alpha", *(k for trial in trials for k in trial.candidate.params)]))
    params = [{"alpha": trial.alpha, **trial.candidate.params} for trial in trials]
    table: dict[str, Any] = {
        "mean_fit_time": np.asarray([trial.seconds for trial in trials]),
        "std_fit_time": np.zeros(len(trials)),
        "mean_score_time": np.zeros(len(trials)),
        "std_score_time": np.zeros(len(trials)),
    }
    for key in keys:
        known = [values[key] for values in params if key in values]
        numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in known)
        dtype = np.result_type(*known) if numbers else object
        column = np.ma.MaskedArray(np.empty(len(trials), dtype=dtype), mask=True)
        for i, values in enumerate(params):
            if key in values:
                column[i] = values[key]
        table[f"param_{key}"] = column
    table["params"] = params
    by_fold = np.stack([trial.by_fold for trial in trials])
    for k in range(by_fold.shape[1]):
        table[f"split{k}_test_score"] = by_fold[:, k]
    overall = np.asarray([trial.overall for trial in trials])
    table["mean_test_score"] = overall
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # scores near the largest number: their spread is infinite
        table["std_test_score"] = by_fold.std(axis=1)
    ranked = np.where(np.isfinite(overall), overall, -np.inf)
    bounds = np.asarray([trial.bound for trial in trials])
    if np.any(np.isnan(overall) & ~np.isnan(bounds)):  # some were dropped
        table["bound_test_score"] = np.where(np.isnan(overall), bounds, overall)
    table["rank_test_score"] = (1 + np.sum(ranked[None, :] > ranked[:, None], axis=1)).astype(
        np.int32
    )
    return table
