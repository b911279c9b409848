"""How kernel and ridge are chosen by cross-validation."""

from __future__ import annotations

from typing import Any

from ridgefold.crossval import METHODS
from ridgefold.errors import InvalidInputError
from ridgefold.options.base import OptionObject

RACES = ("auto", "full", "race")
_METHODS_OF_PAPERS = {
    "an2007": '"inverse_blocks"',
    "cosme": '"block_recursive"',
    "nascimento": '"block_recursive"',
    "welling": '"refit"',
    "tanaka": '"eigendecomposition"',
    "liu": 'PartitionedKernelRidge(partition="hyperplanes", combine="route")',
    "tandon": 'PartitionedKernelRidge(partition="kmeans", combine="route")',
    "zhang": 'PartitionedKernelRidge(partition="random", combine="average")',
}
"""What the methods of some papers are called here, by the names that people ask for."""


def refuse_name_of_paper(name: str, value: Any) -> None:
    """Raise a typed error that gives the name used here, if `value` names the method of a paper."""
    asked = value.lower() if isinstance(value, str) else ""
    if asked in _METHODS_OF_PAPERS:
        raise InvalidInputError(
            f"{name}={value!r} is the name of a paper: what it describes is called "
            f"{_METHODS_OF_PAPERS[asked]} here"
        )


def check_method(name: str, value: Any) -> None:
    """Raise a typed error unless `value` names a cross-validation method, or is "auto"."""
    if isinstance(value, str) and value in ("auto", *METHODS):
        return
    refuse_name_of_paper(name, value)
    raise InvalidInputError(f"{name} must be one of auto, {', '.join(METHODS)}, got {value!r}")


class Search(OptionObject):
    """How kernel and ridge are chosen: the argument `search` of the models with ``CV``.

    Parameters
    ----------
    method : str, default="auto"
        Cross-validation method: the name of one, or the one predicted to be fastest within the
        memory budget.
    race : {"auto", "full", "race"}, default="auto"
        "full" scores every pair of kernel and alpha. "race" drops pairs as soon as they cannot win
        any more, by bounds on their scores: the same winner, sooner; dropped pairs have NaN in
        `cv_results_`, and as `bound_test_score` what they could have reached at most. It needs
        ``scoring=None`` or a negated error by name, folds of more than one row, and neither
        `alpha_per_target` nor `one_standard_error`; otherwise every pair is scored. "auto" races
        from 1000 rows on.
    stack : bool, default=False
        Combine several kernels instead of picking one: those of the list (every family, for
        ``kernel="auto"``), or the learned metrics that lead, each with its own ridge. They are
        weighted by exact held-out predictions: non-negative least squares, for classes a logistic
        regression, which calibrates probabilities too. Held-out predictions, scores and intervals
        are those of the stack without each fold; ``stack_`` says who is in it, with what weight
        and error.
    alpha_per_target : bool, default=False
        Choose one ridge for each target of a regression.
    one_standard_error : bool, default=False
        Take the largest alpha whose score is within one standard error of the best.
    average_folds : bool, default=False
        Predict with the mean of the models of the folds instead of one fit on all rows. It needs
        a `cv` that holds every row out once, and costs nothing.
    weighted_scores : bool, default=True
        Count rows by their `sample_weight` in the scores too, if there is one, as GridSearchCV of
        scikit-learn does since its version 1.9: rows of weight zero take no part. False counts
        every row once.

    Examples
    --------
    >>> from ridgefold import KernelRidgeCV, Search
    >>> model = KernelRidgeCV(search=Search(method="banded"))
    >>> model.set_params(search__race="full").search
    Search(method='banded', race='full')
    """

    argument = "search"

    def __init__(
        self,
        *,
        method: str = "auto",
        race: str = "auto",
        stack: bool = False,
        alpha_per_target: bool = False,
        one_standard_error: bool = False,
        average_folds: bool = False,
        weighted_scores: bool = True,
    ) -> None:
        self.method = method
        self.race = race
        self.stack = stack
        self.alpha_per_target = alpha_per_target
        self.one_standard_error = one_standard_error
        self.average_folds = average_folds
        self.weighted_scores = weighted_scores

    def check(self) -> None:
        check_method("search.method", self.method)
        self._require_one_of("race", RACES)
        for name in (
            "stack",
            "alpha_per_target",
            "one_standard_error",
            "average_folds",
            "weighted_scores",
        ):
            self._require_bool(name)
