"""Displays draw what the estimators hold, in the manner of scikit-learn's."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.model_selection import RepeatedKFold

import ridgefold
from report_models import ALPHAS, model, numbers, rows
from ridgefold.errors import InvalidInputError, NoSlopeError
from ridgefold.report import (
    CellsDisplay,
    ConfusionDisplay,
    CoverageDisplay,
    CVSurfaceDisplay,
    EffectCurveDisplay,
    EffectsDisplay,
    HeldOutDisplay,
    ImportanceDisplay,
    LengthScalesDisplay,
    ReliabilityDisplay,
    SpectrumDisplay,
)

CASES = [
    (CVSurfaceDisplay, "regressor"),
    (CVSurfaceDisplay, "raced"),
    (CVSurfaceDisplay, "one kernel"),
    (CVSurfaceDisplay, "families"),
    (CVSurfaceDisplay, "three classes"),
    (CVSurfaceDisplay, "learned"),
    (HeldOutDisplay, "regressor"),
    (HeldOutDisplay, "cells"),
    (HeldOutDisplay, "table"),
    (ImportanceDisplay, "regressor"),
    (ImportanceDisplay, "cells of classes"),
    (ImportanceDisplay, "hostile columns"),
    (ImportanceDisplay, "table"),
    (LengthScalesDisplay, "learned"),
    (LengthScalesDisplay, "cells of classes"),
    (LengthScalesDisplay, "hostile columns"),
    (EffectsDisplay, "regressor"),
    (EffectsDisplay, "classifier"),
    (EffectsDisplay, "table"),
    (EffectsDisplay, "cells"),
    (EffectsDisplay, "hostile columns"),
    (CellsDisplay, "cells"),
    (CellsDisplay, "cells of classes"),
    (ConfusionDisplay, "classifier"),
    (ConfusionDisplay, "three classes"),
    (ReliabilityDisplay, "classifier"),
    (ReliabilityDisplay, "cells of classes"),
    (CoverageDisplay, "regressor"),
    (SpectrumDisplay, "regressor"),
    (SpectrumDisplay, "precomputed"),
    (SpectrumDisplay, "cells"),
]


@pytest.fixture
def ax():
    return Figure().add_subplot()


@pytest.mark.parametrize(("display", "name"), CASES)
@pytest.mark.filterwarnings("ignore:Glyph")
def test_displays_draw_on_the_axes_that_they_are_given(display, name, ax):
    drawn = display.from_estimator(model(name), ax=ax)
    assert drawn.ax_ is ax
    assert drawn.figure_ is ax.figure
    assert ax.has_data() or ax.patches
    ax.figure.canvas.draw()


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("regressor", 0),
        ("table", "colour"),
        ("cells", 1),
        ("classifier", 2),
        ("hostile columns", 2),
    ],
)
def test_curves_draw_on_the_axes_that_they_are_given(name, column, ax):
    drawn = EffectCurveDisplay.from_estimator(model(name), column, ax=ax)
    assert drawn.ax_ is ax
    assert ax.lines
    ax.figure.canvas.draw()


def test_without_axes_a_figure_of_pyplot_is_made():
    with mpl.rc_context({"backend": "Agg"}):
        import matplotlib.pyplot as plt

        plt.switch_backend("Agg")
        drawn = HeldOutDisplay.from_estimator(model("regressor"))
        assert drawn.figure_ in [plt.figure(n) for n in plt.get_fignums()]
        plt.close("all")


def test_the_surface_holds_the_errors_of_the_search(ax):
    fitted = model("regressor")
    drawn = CVSurfaceDisplay.from_estimator(fitted, ax=ax)
    k, j = drawn.best
    assert drawn.alphas[j] == fitted.alpha_
    assert drawn.kernels[k]["length_scale"] == fitted.best_params_["length_scale"]
    assert drawn.scores[k, j] == pytest.approx(np.sqrt(-fitted.best_score_))
    assert drawn.scores[k, j] == np.nanmin(drawn.scores)
    assert np.all(np.diff([kernel["length_scale"] for kernel in drawn.kernels]) > 0)
    assert len(drawn.keys) == np.isfinite(drawn.scores).sum()


def test_dropped_pairs_are_drawn_with_their_bounds(ax):
    drawn = CVSurfaceDisplay.from_estimator(model("raced"), ax=ax)
    assert drawn.dropped.any()
    assert np.isnan(drawn.scores[drawn.dropped]).all()
    assert np.all(drawn.bounds[drawn.dropped] >= drawn.scores[drawn.best])


def test_a_score_by_name_is_read_as_it_is(ax):
    drawn = CVSurfaceDisplay.from_estimator(model("three classes"), ax=ax)
    assert not drawn.errors
    assert drawn.score_name == "balanced accuracy"
    assert drawn.scores[drawn.best] == pytest.approx(model("three classes").best_score_)


def test_families_have_one_curve_each(ax):
    CVSurfaceDisplay.from_estimator(model("families"), ax=ax)
    words = {text.get_text() for text in ax.texts}
    assert {"rbf", "laplacian", "linear"} <= words


def test_both_kinds_of_held_out_figures_are_drawn(ax):
    HeldOutDisplay.from_estimator(model("regressor"), kind="residual_vs_predicted", ax=ax)
    assert ax.get_ylabel() == "true minus predicted"
    X = rows(20)
    drawn = HeldOutDisplay.from_estimator(
        model("several targets"), X, np.stack([numbers(X)] * 3, 1), target=2, ax=ax
    )
    np.testing.assert_array_equal(drawn.predictions, model("several targets").predict(X)[:, 2])


def test_the_confusion_matrix_counts_rows(ax):
    drawn = ConfusionDisplay.from_estimator(model("three classes"), ax=ax)
    assert drawn.counts.sum() == len(rows())
    fitted = model("three classes")
    right = np.mean(fitted.held_out_predictions_ == fitted.classes_[fitted.y_fit_])
    assert np.trace(drawn.counts) / drawn.counts.sum() == pytest.approx(right)


def test_cells_own_the_rows_in_which_they_have_the_largest_share(ax):
    fitted = model("cells")
    drawn = CellsDisplay.from_estimator(fitted, ax=ax)
    assert set(drawn.owner) <= set(range(4))
    assert drawn.sizes.tolist() == fitted.partition_sizes_.tolist()
    whole = np.sqrt(np.mean(fitted.held_out_residuals_**2))
    assert drawn.errors.min() <= whole <= drawn.errors.max()


def test_cells_of_one_column_are_drawn_along_it(ax):
    X = rows(300, 1)
    fitted = ridgefold.PartitionedLSSVMRegressor(n_partitions=3).fit(X, np.sin(3 * X[:, 0]))
    drawn = CellsDisplay.from_estimator(fitted, ax=ax)
    assert drawn.axis_names == ("column 0", "target")


def test_the_effective_dimension_of_all_rows_is_exact(ax):
    fitted = ridgefold.KernelRidge(0.1, kernel="rbf").fit(rows(), numbers(rows()))
    drawn = SpectrumDisplay.from_estimator(fitted, ax=ax)
    K = fitted.kernel_(rows())
    exact = np.trace(K @ np.linalg.inv(K + 0.1 * np.eye(len(K))))
    assert drawn.dimension == pytest.approx(exact)


def test_shares_of_learned_scales_add_up_to_one(ax):
    drawn = LengthScalesDisplay.from_estimator(model("cells of classes"), ax=ax)
    assert drawn.shares.sum() == pytest.approx(1.0)


def test_names_with_dollars_are_no_mathematics(ax):
    LengthScalesDisplay.from_estimator(model("hostile columns"), ax=ax)
    labels = ax.get_yticklabels()
    assert any("$x^2$" in label.get_text() for label in labels)
    assert not any(label.get_parse_math() for label in labels)


@pytest.mark.parametrize(
    ("display", "name", "message"),
    [
        (CVSurfaceDisplay, "plain", "has searched nothing: use KernelRidgeCV"),
        (HeldOutDisplay, "plain", "keeps no held-out predictions of numbers: give a test set"),
        (HeldOutDisplay, "classifier", "or ConfusionDisplay for classes"),
        (ImportanceDisplay, "refined", "no row can be left out of this Partitioned"),
        (LengthScalesDisplay, "regressor", "has learned no scales: fit with metric=.learned"),
        (CellsDisplay, "regressor", "has no cells that lie side by side"),
        (CellsDisplay, "average", "has no cells that lie side by side"),
        (ConfusionDisplay, "regressor", "keeps no held-out classes"),
        (ReliabilityDisplay, "three classes", "keeps no held-out probabilities"),
        (CoverageDisplay, "plain", "keeps nothing to make intervals from"),
        (SpectrumDisplay, "compressed", "a compressed model keeps few of its rows"),
    ],
)
def test_what_cannot_be_drawn_is_said(display, name, message):
    with pytest.raises(InvalidInputError, match=message):
        display.from_estimator(model(name))


def test_arguments_that_are_wrong_are_named():
    with pytest.raises(InvalidInputError, match=r"kind must be one of .* got 'pie'"):
        HeldOutDisplay.from_estimator(model("regressor"), kind="pie")
    with pytest.raises(InvalidInputError, match="target must be one of 0 to 0, got 3"):
        HeldOutDisplay.from_estimator(model("regressor"), target=3)
    with pytest.raises(InvalidInputError, match="coverage must lie between 0 and 1"):
        CoverageDisplay.from_estimator(model("regressor"), coverage=1.5)
    with pytest.raises(InvalidInputError, match="estimator must be a fitted estimator"):
        CVSurfaceDisplay.from_estimator("a model")


def test_a_grid_of_two_numbers_is_drawn_as_curves(ax):
    fitted = ridgefold.KernelRidgeCV(
        ALPHAS, kernel="polynomial", kernel_params={"degree": [2, 3], "coef0": [0.5, 1.0]}, cv=3
    ).fit(rows(60), numbers(rows(60)))
    drawn = CVSurfaceDisplay.from_estimator(fitted, ax=ax)
    assert drawn.width_name is None
    assert len(ax.lines) == 4


def test_errors_of_rows_that_several_folds_test_are_still_errors(ax):
    folds = RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)
    fitted = ridgefold.KernelRidgeCV(ALPHAS, cv=folds).fit(rows(60), numbers(rows(60)))
    drawn = CVSurfaceDisplay.from_estimator(fitted, ax=ax)
    assert drawn.score_name == "root mean square error"
    assert drawn.scores[drawn.best] == pytest.approx(np.sqrt(-fitted.best_score_))


def test_effects_are_drawn_per_standard_deviation_the_largest_first(ax):
    fitted = model("regressor")
    effects = fitted.marginal_effects()
    drawn = EffectsDisplay(effects=effects, most=3).plot(ax)
    sizes = effects.average * fitted.X_fit_.std(axis=0)
    order = np.argsort(-np.abs(sizes))[:3]
    assert drawn.names == tuple(effects.names[i] for i in order)
    np.testing.assert_allclose(drawn.averages, sizes[order])
    assert drawn.left_out == 1
    assert "1 smaller" in drawn.caption()
    with pytest.raises(InvalidInputError, match="output must be"):
        EffectsDisplay(effects=effects, output=1)
    with pytest.raises(NoSlopeError, match="knows no columns"):
        EffectsDisplay.from_estimator(model("precomputed"))
    with pytest.raises(InvalidInputError, match="no marginal_effects"):
        EffectsDisplay.from_estimator(3)
