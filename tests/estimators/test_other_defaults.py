"""LS-SVM regressors are kernel ridge with other defaults, and in nothing else different."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone

from ridgefold import KernelRidge, KernelRidgeCV, LSSVMRegressor, LSSVMRegressorCV
from ridgefold.estimators.other_defaults import with_defaults

PAIRS = [
    (LSSVMRegressor, KernelRidge, {"kernel": "rbf", "fit_intercept": True}),
    (LSSVMRegressorCV, KernelRidgeCV, {"fit_intercept": True}),
]
IDS = [cls.__name__ for cls, _, _ in PAIRS]
X = np.random.default_rng(0).normal(size=(30, 2))
Y = 10.0 + X[:, 0]


@pytest.mark.parametrize(("cls", "parent", "changed"), PAIRS, ids=IDS)
def test_the_signature_has_the_arguments_of_the_parent_and_its_own_defaults(cls, parent, changed):
    own, inherited = inspect.signature(cls).parameters, inspect.signature(parent).parameters
    assert list(own) == list(inherited)
    assert [each.kind for each in own.values()] == [each.kind for each in inherited.values()]
    expected = {name: each.default for name, each in inherited.items()} | changed
    assert {name: each.default for name, each in own.items()} == expected
    assert cls().get_params() == expected
    assert parent().get_params() == {name: each.default for name, each in inherited.items()}


@pytest.mark.parametrize(("cls", "parent", "changed"), PAIRS, ids=IDS)
def test_the_words_for_it_name_what_differs_from_its_own_defaults(cls, parent, changed):
    assert repr(cls()) == repr(cls(**changed)) == f"{cls.__name__}()"
    assert repr(cls(fit_intercept=False)) == f"{cls.__name__}(fit_intercept=False)"
    with pytest.raises(TypeError, match=rf"^{cls.__name__}\.__init__\(\) got an unexpected"):
        cls(no_argument=1)


@pytest.mark.parametrize(("cls", "parent", "changed"), PAIRS, ids=IDS)
def test_clones_and_pickles_keep_the_arguments(cls, parent, changed):
    model = cls(0.5 if parent is KernelRidge else [0.5], fit_intercept=False, kernel="laplacian")
    for copy in (clone(model), pickle.loads(pickle.dumps(model))):  # noqa: S301
        assert type(copy) is cls
        assert copy.get_params() == model.get_params()


@pytest.mark.parametrize(("cls", "parent", "changed"), PAIRS, ids=IDS)
def test_the_model_is_that_of_the_parent_with_these_arguments(cls, parent, changed):
    own, other = cls(gamma=0.3).fit(X, Y), parent(gamma=0.3, **changed).fit(X, Y)
    np.testing.assert_array_equal(own.predict(X), other.predict(X))
    assert own.intercept_ == other.intercept_ != 0


def test_a_default_of_no_argument_is_refused():
    with pytest.raises(TypeError, match="Wrong has no keyword-only arguments"):

        @with_defaults(gama=1.0)
        class Wrong(KernelRidge):
            pass
