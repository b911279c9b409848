"""The arguments of all estimators: few, and the same name means the same everywhere."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import ridgefold
from ridgefold import (
    CellOptions,
    Compute,
    KernelRidge,
    KernelRidgeCV,
    LSSVMClassifier,
    LSSVMClassifierCV,
    LSSVMRegressor,
    LSSVMRegressorCV,
    MetricLearning,
    PartitionedKernelRidge,
    PartitionedLSSVMClassifier,
    PartitionedLSSVMRegressor,
    Search,
    cross_val_path,
)
from ridgefold.errors import InvalidInputError
from ridgefold.options import OPTION_CLASSES

GIVEN = [KernelRidge, LSSVMRegressor, LSSVMClassifier]
CHOOSING = [
    KernelRidgeCV,
    LSSVMRegressorCV,
    LSSVMClassifierCV,
    PartitionedKernelRidge,
    PartitionedLSSVMRegressor,
    PartitionedLSSVMClassifier,
]
ESTIMATORS = [*GIVEN, *CHOOSING]
FRONT_DOOR = [ridgefold.RidgefoldRegressor, ridgefold.RidgefoldClassifier]
OBJECTS = [Search, MetricLearning, Compute, CellOptions]
MOST = 16

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 2))
Y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(60)
LABELS = Y > 0


def defaults(function):
    return {
        name: parameter.default
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }


def test_every_public_estimator_is_here():
    public = {
        each
        for name in ridgefold.__all__
        if inspect.isclass(each := getattr(ridgefold, name)) and hasattr(each, "fit")
    }
    assert public == {*ESTIMATORS, *FRONT_DOOR}


@pytest.mark.parametrize("cls", [*ESTIMATORS, *FRONT_DOOR, *OBJECTS])
def test_an_estimator_has_at_most_sixteen_arguments(cls):
    assert len(inspect.signature(cls).parameters) <= MOST


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_an_argument_has_one_default_in_every_class(cls):
    expected = {
        **{name: value for each in CHOOSING for name, value in defaults(each).items()},
        **{name: value for each in (Search, CellOptions) for name, value in defaults(each).items()},
        "fit_intercept": "LSSVM" in cls.__name__,
    }
    if cls in GIVEN:
        expected |= {"alpha": 1, "degree": 3, "coef0": 1}
    if cls is KernelRidge:  # which takes the place of scikit-learn's
        expected["kernel"] = "linear"
    assert defaults(cls) == {name: expected[name] for name in defaults(cls)}


def test_options_of_one_name_have_one_default():
    shared = set(defaults(Search)) & set(defaults(CellOptions))
    assert shared == {"weighted_scores"}
    assert defaults(Search)["weighted_scores"] == defaults(CellOptions)["weighted_scores"]


def test_functions_have_the_arguments_of_the_estimators():
    path = defaults(cross_val_path)
    same = set(path) & {*defaults(KernelRidgeCV), "method", "verbose"}
    assert same == set(path) - {"sample_weight", "groups"}
    expected = {**defaults(Compute), **defaults(Search), **defaults(KernelRidgeCV)}
    assert {name: path[name] for name in same} == {name: expected[name] for name in same}


@pytest.mark.parametrize("cls", OBJECTS)
def test_options_are_given_by_name(cls):
    kinds = {parameter.kind for parameter in inspect.signature(cls).parameters.values()}
    assert kinds == {inspect.Parameter.KEYWORD_ONLY}
    assert OPTION_CLASSES[cls.argument] is cls
    cls().check()


def test_nested_arguments_are_set_and_copied():
    model = KernelRidgeCV(search=Search(race="full"), compute=Compute(n_jobs=2))
    twin = clone(model).set_params(search__method="banded", compute__n_jobs=None)
    assert twin.search.get_params() == Search(method="banded", race="full").get_params()
    assert twin.compute.n_jobs is None
    assert (model.search.method, model.compute.n_jobs) == ("auto", 2)
    assert twin.get_params()["search__method"] == "banded"
    with pytest.raises(ValueError, match="Invalid parameter 'speed' for estimator Search"):
        twin.set_params(search__speed=3)


@pytest.mark.parametrize("metric", [None, "learned"])
def test_setting_a_part_makes_the_object_that_is_not_there(metric):
    model = PartitionedKernelRidge(metric=metric).set_params(
        metric__rows=50, cells__clip=False, compute__verbose=1
    )
    assert model.metric.get_params() == MetricLearning(rows=50).get_params()
    assert model.cells.clip is False
    assert model.compute.verbose == 1


def test_an_object_and_a_part_of_it_are_set_at_once():
    model = KernelRidgeCV().set_params(search=Search(race="full"), search__method="refit")
    assert model.search.get_params() == Search(method="refit", race="full").get_params()


def test_grid_search_reaches_into_the_objects():
    grid = {"metric__groups": [None, [[0, 1]]], "search__one_standard_error": [False, True]}
    search = GridSearchCV(KernelRidgeCV([0.1, 1.0], metric="learned"), grid, cv=2).fit(X, Y)
    assert len(search.cv_results_["params"]) == 4
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))
    assert search.best_estimator_.metric.groups == search.best_params_["metric__groups"]


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_defaults_are_those_of_none(cls):
    y = LABELS if "Classifier" in cls.__name__ else Y
    plain = cls().fit(X, y)
    spelt = cls()
    for name, options in OPTION_CLASSES.items():
        if name != "metric" and hasattr(spelt, name):
            spelt.set_params(**{name: options()})
    np.testing.assert_array_equal(spelt.fit(X, y).predict(X), plain.predict(X))


def test_learned_stands_for_the_default_of_metric_learning():
    by_name = KernelRidgeCV([0.1, 1.0], metric="learned").fit(X, Y)
    by_object = KernelRidgeCV([0.1, 1.0], metric=MetricLearning()).fit(X, Y)
    np.testing.assert_array_equal(by_name.length_scales_, by_object.length_scales_)


def test_one_number_for_alpha_is_that_ridge():
    assert KernelRidgeCV(0.3).fit(X, Y).alpha_ == 0.3
    assert set(PartitionedKernelRidge(n_partitions=2, alpha=0.3).fit(X, Y).alpha_) == {0.3}
    np.testing.assert_array_equal(cross_val_path(X, Y, alpha=0.3).alphas, [0.3])


def test_a_list_of_length_scales_is_chosen_from_and_a_tuple_is_one_a_column():
    chosen = KernelRidgeCV(0.1, kernel_params={"length_scale": [0.5, 1.0, 2.0]}).fit(X, Y)
    assert len(chosen.cv_results_["params"]) == 3
    each = KernelRidgeCV(0.1, kernel_params={"length_scale": (0.5, 2.0)}).fit(X, Y)
    assert each.kernel_ == ridgefold.kernels.RBF((0.5, 2.0))
    both = KernelRidgeCV(0.1, kernel="poly", kernel_params={"degree": [1, 2], "coef0": 0.5})
    assert both.fit(X, Y).best_params_["degree"] in (1, 2)
    assert both.kernel_.coef0 == 0.5


WRONG = [
    (KernelRidge, {"compute": Compute(solver="svd")}, "compute.solver must be one of .*got 'svd'"),
    (KernelRidge, {"compute": Compute(tol=2.0)}, "compute.tol must lie between 0 and 1"),
    (KernelRidge, {"compute": {"tol": 1e-3}}, "compute must be None or an object such as ridgef"),
    (KernelRidge, {"compute": Compute(n_jobs=2)}, "compute.n_jobs=2 has no use in KernelRidge"),
    (KernelRidge, {"intervals": "cv"}, 'intervals must be "auto", "cv\\+", "jackknife\\+" or None'),
    (KernelRidgeCV, {"compute": Compute(device="cuda")}, "compute.device='cuda' has no use in"),
    (KernelRidgeCV, {"search": Search(method="fast")}, "search.method must be one of auto, "),
    (KernelRidgeCV, {"search": Search(race="slow")}, "search.race must be one of .*got 'slow'"),
    (KernelRidgeCV, {"search": "banded"}, "search must be None or an object such as ridgefold.Sea"),
    (KernelRidgeCV, {"search": MetricLearning()}, "search must be None or an object"),
    (KernelRidgeCV, {"search": Search(average_folds=3)}, "search.average_folds must be True or"),
    (KernelRidgeCV, {"metric": "scales"}, 'metric must be None, "learned" or an object such as'),
    (KernelRidgeCV, {"metric": MetricLearning(rows=1)}, "metric.rows must be a whole number >= 2"),
    (
        LSSVMClassifierCV,
        {"search": Search(alpha_per_target=True)},
        "search.alpha_per_target=True has no use in LSSVMClassifierCV: classes share one ridge",
    ),
    (PartitionedKernelRidge, {"cells": CellOptions(overlap=2)}, "cells.overlap, .* from 0 to 1"),
    (PartitionedKernelRidge, {"cells": CellOptions(tolerance="a")}, "cells.tolerance, .* got 'a'"),
    (PartitionedKernelRidge, {"cells": CellOptions(tuning="own")}, "cells.tuning must be one of"),
    (
        PartitionedKernelRidge,
        {"cells": CellOptions(coarse_model="all")},
        "cells.coarse_model must be one of \"auto\", None, got 'all'",
    ),
    (PartitionedKernelRidge, {"cells": CellOptions(refine=0)}, "cells.refine must be None"),
    (PartitionedKernelRidge, {"cells": CellOptions(clip=1)}, "cells.clip must be True or False"),
    (
        PartitionedKernelRidge,
        {"compute": Compute(solver="primal")},
        "compute.solver='primal' has no use in PartitionedKernelRidge: cells are solved by",
    ),
    (
        PartitionedKernelRidge,
        {"metric": MetricLearning(transforms="auto")},
        "metric.transforms='auto' has no use in PartitionedKernelRidge",
    ),
]


@pytest.mark.parametrize(("cls", "arguments", "message"), WRONG, ids=[m for *_, m in WRONG])
def test_wrong_options_are_named_by_their_place_and_nothing_is_changed(cls, arguments, message):
    model = cls(**arguments)
    before = dict(vars(model))
    with pytest.raises(InvalidInputError, match=message):
        model.fit(X, LABELS if "Classifier" in cls.__name__ else Y)
    assert vars(model) == before


@pytest.mark.parametrize(
    ("paper", "name"),
    [
        ("An2007", '"inverse_blocks"'),
        ("Nascimento", '"block_recursive"'),
        ("tanaka", '"eigendecomposition"'),
        ("liu", 'partition="hyperplanes", combine="route"'),
        ("zhang", 'partition="random", combine="average"'),
        ("tandon", 'partition="kmeans", combine="route"'),
    ],
)
def test_the_name_of_a_paper_is_answered_with_the_name_to_use(paper, name):
    for ask in (
        lambda: KernelRidgeCV(search=Search(method=paper)).fit(X, Y),
        lambda: cross_val_path(X, Y, method=paper),
        lambda: PartitionedKernelRidge(paper, 2).fit(X, Y),
    ):
        with pytest.raises(InvalidInputError, match=re.escape(name)):
            ask()
