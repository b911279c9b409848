"""A report says what there is to say about every kind of model, and nothing else."""

from __future__ import annotations

import base64
import hashlib
import re

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ridgefold
from page_reading import Page
from report_models import MAKERS, labels, model, numbers, rows
from ridgefold import (
    KernelRidge,
    KernelRidgeCV,
    LSSVMClassifierCV,
    PartitionedLSSVMRegressor,
    Search,
    write_report,
)
from ridgefold.errors import InvalidInputError
from ridgefold.report.unseen_intervals import unseen_intervals
from ridgefold.report.unseen_rows import unseen_rows
from ridgefold.tables import load_bundled

ALWAYS = {"asked"}
SECTIONS = {
    "automatic": {"held-out", "coverage", "tried", "importance", "effects", "computed"},
    "automatic classes": {"classes", "tried", "importance", "effects", "computed"},
    "regressor": {
        "computed",
        "coverage",
        "effects",
        "held-out",
        "importance",
        "notes",
        "search",
        "spectrum",
    },
    "table": {
        "computed",
        "coverage",
        "effects",
        "held-out",
        "importance",
        "notes",
        "search",
        "spectrum",
    },
    "raced": {
        "computed",
        "coverage",
        "effects",
        "held-out",
        "importance",
        "notes",
        "search",
        "spectrum",
    },
    "one kernel": {"computed", "effects", "held-out", "importance", "notes", "search", "spectrum"},
    "families": {
        "computed",
        "coverage",
        "effects",
        "held-out",
        "importance",
        "notes",
        "search",
        "spectrum",
    },
    "learned": {
        "computed",
        "coverage",
        "effects",
        "held-out",
        "importance",
        "length-scales",
        "notes",
        "search",
        "spectrum",
    },
    "precomputed": {"computed", "coverage", "held-out", "notes", "search", "spectrum"},
    "several targets": {
        "computed",
        "coverage",
        "effects",
        "held-out",
        "importance",
        "notes",
        "search",
        "spectrum",
    },
    "classifier": {"classes", "computed", "effects", "importance", "notes", "search", "spectrum"},
    "three classes": {
        "classes",
        "computed",
        "effects",
        "importance",
        "notes",
        "search",
        "spectrum",
    },
    "plain classifier": {"classes", "computed", "effects", "importance", "spectrum"},
    "cells": {
        "cells",
        "computed",
        "coverage",
        "effects",
        "held-out",
        "importance",
        "notes",
        "spectrum",
    },
    "cells of classes": {
        "cells",
        "classes",
        "computed",
        "effects",
        "importance",
        "length-scales",
        "notes",
        "spectrum",
    },
    "average": {"cells", "computed", "effects", "spectrum"},
    "refined": {"cells", "computed", "effects", "spectrum"},
    "plain": {"computed", "effects", "importance", "spectrum"},
    "with intervals": {"computed", "coverage", "effects", "held-out", "importance", "spectrum"},
    "compressed": {"computed", "effects", "held-out", "notes", "search"},
    "hostile columns": {
        "computed",
        "coverage",
        "effects",
        "held-out",
        "importance",
        "length-scales",
        "search",
        "spectrum",
    },
    "hostile classes": {
        "classes",
        "computed",
        "effects",
        "importance",
        "notes",
        "search",
        "spectrum",
    },
}


def test_what_was_tried_is_shown_with_its_errors(tmp_path):
    fitted = model("automatic")
    page = report(fitted, tmp_path / "r.html")
    assert "What was tried" in page.text
    assert "linear" in page.text
    for each in fitted.leaderboard_:
        assert each.candidate in page.text
    assert "Made of" in page.text
    assert f"{fitted.held_out_error_:.3g}"[:4] in page.text


def report(fitted, path, *arguments, **options) -> Page:
    write_report(fitted, path, *arguments, **options)
    return Page(path.read_text("utf-8"))


def test_every_model_above_has_its_sections_stated():
    assert set(SECTIONS) == set(MAKERS)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The page of each model, made when it is first asked for."""
    folder, made = tmp_path_factory.mktemp("pages"), {}

    def page_of(name: str) -> Page:
        if name not in made:
            made[name] = report(model(name), folder / f"{name}.html")
            made[name].size = (folder / f"{name}.html").stat().st_size
        return made[name]

    return page_of


@pytest.mark.parametrize("name", MAKERS)
def test_a_page_has_the_sections_that_its_model_can_fill(name, pages):
    page = pages(name)
    assert set(page.sections) - {"notes"} == (SECTIONS[name] | ALWAYS) - {"notes"}
    if "notes" in SECTIONS[name]:
        assert "notes" in page.sections
    assert "nan" not in re.findall(r"[a-z]+", page.text)
    assert page.size < 400_000


@pytest.mark.parametrize("name", ["learned", "cells of classes", "table"])
def test_a_model_from_a_file_has_the_same_page(name, tmp_path):
    fitted = model(name)
    fitted.save(tmp_path / "m")
    write_report(fitted, tmp_path / "a.html", target_name="y")
    write_report(ridgefold.load(tmp_path / "m"), tmp_path / "b.html", target_name="y")
    assert (tmp_path / "a.html").read_text() == (tmp_path / "b.html").read_text()


def test_the_answer_states_the_held_out_error(tmp_path):
    fitted = model("regressor")
    y = numbers(rows())
    error = np.sqrt(np.mean((y - fitted.held_out_predictions_) ** 2))
    page = report(fitted, tmp_path / "r.html", target_name="output")
    share = 100 * error / np.std(y)
    assert f"the model is off by {error:.3g} (root mean square), {share:.1f}\u00a0% of what" in (
        " ".join(page.texts)
    )
    assert "true output" in page.text


def test_the_answer_for_classes_states_the_share_of_right_answers(pages):
    fitted, page = model("classifier"), pages("classifier")
    right = np.mean(fitted.held_out_predictions_ == labels(rows(), ("below", "above")))
    assert f"names the right class in {100 * right:.1f}\u00a0% of the cases" in " ".join(page.texts)


def test_test_rows_unlike_all_of_the_fit_are_counted(tmp_path):
    X_test = rows()[:50] + 0.01
    alike = report(model("regressor"), tmp_path / "a.html", X_test, numbers(X_test))
    assert "outside what the model has seen" not in alike.text
    X_test[:2, 3] = 22.0
    page = report(model("regressor"), tmp_path / "b.html", X_test, numbers(X_test))
    assert "2 of the 50 test rows lie outside what the model has seen" in page.text


def test_a_test_set_takes_the_place_of_held_out_rows(tmp_path):
    X_test = np.random.default_rng(9).standard_normal((300, 4))
    y_test = numbers(X_test)
    fitted = model("regressor")
    page = report(fitted, tmp_path / "r.html", X_test, y_test)
    error = np.sqrt(np.mean((y_test - fitted.predict(X_test)) ** 2))
    assert f"On test rows, the model is off by {error:.3g}" in page.text
    assert "as predict_interval gives them for the test rows" in page.text
    lower, upper = fitted.predict_interval(X_test, 0.9)
    inside = 100 * np.mean((lower <= y_test) & (y_test <= upper))
    assert f"{inside:.1f}\u00a0%" in " ".join(page.texts)
    wanted = np.where(y_test > 10, "above", "below")
    page = report(model("classifier"), tmp_path / "c.html", X_test, wanted)
    right = np.mean(model("classifier").predict(X_test) == wanted)
    assert f"On test rows, the model names the right class in {100 * right:.1f}" in page.text


def test_every_held_out_prediction_is_that_of_the_estimator():
    kept = unseen_rows(model("several targets").report_facts())
    np.testing.assert_array_equal(kept.predictions, model("several targets").held_out_predictions_)
    cells = unseen_rows(model("cells").report_facts())
    np.testing.assert_allclose(cells.residuals, model("cells").held_out_residuals_, atol=1e-12)
    classes = unseen_rows(model("plain classifier").report_facts())
    decisions = model("plain classifier").held_out_decisions_
    np.testing.assert_array_equal(classes.predicted, decisions > 0)
    loo = unseen_rows(model("with intervals").report_facts())
    refitted = KernelRidge(0.1, kernel="rbf").fit(rows()[1:], numbers(rows())[1:])
    assert loo.predictions[0, 0] == pytest.approx(refitted.predict(rows()[:1])[0], rel=1e-8)


@pytest.mark.parametrize("name", ["regressor", "cells", "cells of classes", "classifier"])
def test_of_very_many_rows_some_are_looked_at(name, tmp_path, monkeypatch):
    whole = unseen_rows(model(name).report_facts())
    monkeypatch.setattr("ridgefold.report.unseen_rows._MOST_ROWS", 50)
    some = unseen_rows(model(name).report_facts())
    assert some.sampled
    assert len(some.rows) == 50
    np.testing.assert_array_equal(some.truth, whole.truth[some.rows])
    page = report(model(name), tmp_path / "r.html")
    assert "Errors are those of 50 rows, evenly spread" in page.text


@pytest.mark.parametrize("name", ["regressor", "cells", "with intervals", "several targets"])
def test_held_out_intervals_hold_about_the_share_that_was_asked_for(name):
    found = unseen_intervals(model(name).report_facts())
    for coverage, inside in zip(found.coverages, found.inside, strict=True):
        assert abs(np.mean(inside) - coverage) < 0.06
    assert np.all(np.diff([float(w[0]) for w in found.widths]) > 0)


def test_the_steps_of_a_fit_on_cells_are_shown_with_their_cost(pages):
    fitted, page = model("cells"), pages("cells")
    steps = fitted.run_record_.steps
    assert [step.name for step in steps] == [
        "fitting a linear part",
        "finding slopes",
        "cutting 4 cells",
        "choosing a pair for all cells",
        "fitting 4 cells",
        "fitting a coarse model of all rows",
    ]
    for step in steps:
        assert step.name in page.text
        assert step.plan.method in page.text
    assert "predicted time" in page.text
    assert "measured time" in page.text
    assert "to choose and fit" in page.text


def test_the_plan_is_shown_with_predicted_and_measured_cost(pages):
    page = pages("regressor")
    steps = model("regressor").run_record_.steps
    for word in ("predicted time", "measured time", "why it was not taken", steps[0].method):
        assert word in page.text
    assert steps[1].plan.method in page.text


def test_pairs_that_left_a_race_are_said_to_have_been_dropped(pages):
    page = pages("raced")
    assert "dropped on the way" in page.text
    assert "at least" in page.text
    assert "dropped early" in page.text


def test_what_is_worth_knowing_is_said_in_words(tmp_path, pages):
    X = rows(60)
    noise = np.random.default_rng(5).standard_normal(60)
    fitted = KernelRidgeCV(
        [1e-3, 1e-2, 1e-1], kernel="rbf", kernel_params={"length_scale": 0.1}, cv=3
    ).fit(X, noise)
    page = report(fitted, tmp_path / "r.html")
    assert "no better than predicting the mean" in page.text
    assert "is the last that was tried on its side" in page.text
    with pytest.warns(ridgefold.errors.ConditionWarning):
        poor = KernelRidge(0.0, kernel="rbf").fit(np.repeat(X, 2, axis=0), np.repeat(noise, 2))
    assert "While fitting:" in report(poor, tmp_path / "p.html").text
    halves = KernelRidgeCV([0.1, 1.0], cv=[(np.arange(30), np.arange(30, 60))]).fit(X, noise)
    assert "were never held out" in report(halves, tmp_path / "h.html").text
    rare = np.where(np.arange(60) < 55, "often", "rare")
    always = LSSVMClassifierCV([1e3, 1e4], cv=3).fit(X, rare)
    assert "always naming the largest class" in report(always, tmp_path / "c.html").text
    assert "was compressed" in pages("compressed").text


def test_a_scoring_function_that_a_file_lost_is_not_taken_for_squared_errors(tmp_path):
    def largest(y, predicted):
        return -float(np.max(np.abs(y - predicted)))

    fitted = KernelRidgeCV([0.1, 1.0], cv=3, scoring=largest).fit(rows(), numbers(rows()))
    with pytest.warns(ridgefold.errors.LeftOutWarning):
        fitted.save(tmp_path / "m")
    page = report(ridgefold.load(tmp_path / "m"), tmp_path / "r.html")
    search = page.text.split("How kernel and ridge were chosen")[1].split("Effective")[0]
    assert "root mean square" not in search


def test_many_rows_are_drawn_as_a_density_and_the_page_stays_small(tmp_path):
    data = load_bundled("ccpp")
    X = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0)
    fitted = KernelRidge(1.0, fit_intercept=True).fit(X, data.y)
    page = report(fitted, tmp_path / "r.html", X, data.y)
    assert f"{len(X):,} rows; the stronger the colour" in page.text
    assert (tmp_path / "r.html").stat().st_size < 300_000


X, Y = rows(40), numbers(rows(40))
UNUSUAL = {
    "torch tensors": lambda: KernelRidgeCV([0.1, 1.0], cv=3).fit(tensor(X), tensor(Y)),
    "classes on torch": lambda: LSSVMClassifierCV([0.1, 1.0], cv=3, probability=True).fit(
        tensor(X), tensor((Y > 10).astype(int))
    ),
    "sparse rows": lambda: KernelRidgeCV([0.1, 1.0], cv=3).fit(
        scipy.sparse.csr_array(np.where(X > 0, X, 0)), Y
    ),
    "float32": lambda: KernelRidgeCV([0.1, 1.0], cv=3).fit(X.astype("f"), Y.astype("f")),
    "a function as kernel": lambda: KernelRidgeCV([0.1, 1.0], kernel=product, cv=3).fit(X, Y),
    "four rows": lambda: KernelRidgeCV([0.1, 1.0], cv=2).fit(X[:4], Y[:4]),
    "one pair": lambda: KernelRidgeCV([1.0], kernel="linear", cv=2).fit(X, Y),
    "constant targets": lambda: KernelRidgeCV([0.1, 1.0], cv=2).fit(X, np.ones((40, 2))),
    "a constant": lambda: KernelRidgeCV([0.1, 1.0], cv=2, fit_intercept=True).fit(X, 0 * Y),
    "weights of zero": lambda: KernelRidge(0.1, kernel="rbf", intervals="cv+").fit(
        X, Y, sample_weight=np.arange(40) % 3
    ),
    "an own ridge for each target": lambda: KernelRidgeCV(
        [0.1, 1.0, 10.0], cv=3, search=Search(alpha_per_target=True)
    ).fit(X, np.stack([Y, X[:, 0]], axis=1)),
    "twenty classes": lambda: LSSVMClassifierCV([0.1, 1.0], cv=2, probability=True).fit(
        X, np.arange(40) % 20
    ),
    "one cell": lambda: PartitionedLSSVMRegressor(n_partitions=1).fit(X, Y),
    "one row a cell": lambda: PartitionedLSSVMRegressor(n_partitions=20).fit(X, Y),
    "cells without residuals": lambda: PartitionedLSSVMRegressor(
        kernel_params={"length_scale": 1.0}, n_partitions=2, alpha=1.0, intervals=None
    ).fit(X, Y),
    "huge numbers": lambda: KernelRidgeCV([0.1, 1.0], cv=3).fit(X, 1e60 * Y),
}


def tensor(values):
    return pytest.importorskip("torch").tensor(values)


def product(a, b):
    return float(a @ b)


@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_models_have_pages_too(name, tmp_path):
    page = report(UNUSUAL[name](), tmp_path / "r.html")
    assert "asked" in page.sections
    assert "nan" not in re.findall(r"[a-z]+", page.text)


# -- the page itself -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["regressor", "hostile classes"])
def test_the_policy_allows_the_style_and_script_of_the_page_and_nothing_else(name, pages):
    page = pages(name)
    metas = [m for m in page.find("meta") if m.get("http-equiv") == "Content-Security-Policy"]
    policy = metas[0]["content"]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        assert len(page.find(tag)) == 1
        digest = hashlib.sha256("".join(page.inside[tag]).encode()).digest()
        assert f"{tag}-src 'sha256-{base64.b64encode(digest).decode()}'" in policy


@pytest.mark.parametrize("name", MAKERS)
def test_nothing_on_a_page_refers_to_anything_outside_it(name, pages):
    page = pages(name)
    for tag, attributes in page.elements:
        assert tag not in {"link", "img", "iframe", "object", "embed", "form", "a", "base"}, tag
        for key, value in attributes.items():
            assert not key.startswith("on"), (tag, key)
            assert key not in {"src", "style", "srcset", "action"}, (tag, key)
            if key == "href":
                assert value.startswith("#")
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids))
    assert "http" not in "".join(page.inside["style"] + page.inside["script"])


def test_figures_tell_what_they_show_to_those_who_cannot_see_them(pages):
    page = pages("learned")
    figures = page.find("svg")
    assert len(figures) >= 5
    assert all(figure["role"] == "img" and figure["aria-label"] for figure in figures)


def test_a_page_is_the_same_every_time(tmp_path):
    for name in "ab":
        write_report(model("cells"), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_pyplot_and_its_settings_are_left_alone(tmp_path):
    import matplotlib as mpl
    from matplotlib import _pylab_helpers

    before, figures = dict(mpl.rcParams), list(_pylab_helpers.Gcf.get_all_fig_managers())
    write_report(model("learned"), tmp_path / "r.html")
    assert dict(mpl.rcParams) == before
    assert list(_pylab_helpers.Gcf.get_all_fig_managers()) == figures


# -- what is refused -----------------------------------------------------------------------


def test_a_file_is_replaced_only_when_asked(tmp_path):
    path = tmp_path / "r.html"
    path.write_text("mine")
    with pytest.raises(InvalidInputError, match="exists: choose another path, or pass force=True"):
        write_report(model("plain"), path)
    assert path.read_text() == "mine"
    write_report(model("plain"), path, force=True)
    assert path.read_text().startswith("<!doctype html>")
    assert [each.name for each in tmp_path.iterdir()] == ["r.html"]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((rows(5), None), {}, "X_test and y_test go together"),
        ((rows(5), [1.0, 2.0]), {}, "one entry for each row of X_test: got 2 for 5"),
        ((rows(2), [[1.0, 2.0], [1.0, 2.0]]), {}, "y_test must have 1 columns"),
        ((rows(2), [np.nan, np.nan]), {}, "no row without missing values"),
        ((), {"target_name": ["a", "b"]}, "target_name must name 1 target, got"),
    ],
)
def test_what_does_not_fit_together_is_said(arguments, options, message, tmp_path):
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        write_report(model("regressor"), tmp_path / "r.html", *arguments, **options)
    assert not (tmp_path / "r.html").exists()


def test_classes_that_were_not_learned_are_named(tmp_path):
    with pytest.raises(InvalidInputError, match="y_test has the class 'sideways'"):
        write_report(model("classifier"), tmp_path / "r.html", rows(2), ["above", "sideways"])


def test_models_that_are_not_fitted_or_not_ours_are_refused(tmp_path):
    with pytest.raises(NotFittedError):
        write_report(KernelRidge(), tmp_path / "r.html")
    pipeline = make_pipeline(StandardScaler(), KernelRidge()).fit(rows(), numbers(rows()))
    with pytest.raises(InvalidInputError, match="pass the last step of the pipeline"):
        write_report(pipeline, tmp_path / "r.html")
    with pytest.raises(InvalidInputError, match="there is no folder"):
        write_report(model("plain"), tmp_path / "nowhere" / "r.html")
