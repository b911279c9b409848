"""Rows given by the paths of files: the same model and predictions, columns found by name."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest

from ridgefold import PartitionedLSSVMClassifier, PartitionedLSSVMRegressor, load
from ridgefold.errors import InvalidInputError, RepeatedRowsWarning, TableError


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Rows in a table, in one with the columns the other way round, and in an .npy file."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 2))
    y = np.sin(X[:, 0]) + 2 * X[:, 1]
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "y": y})
    pa_parquet.write_table(table, folder / "rows.parquet")
    pa_parquet.write_table(table.select(["b", "a"]), folder / "swapped.parquet")
    np.save(folder / "X.npy", X)
    return folder, X, y


budgets = pytest.mark.parametrize("budget", ["auto", "50kB"])


@budgets
def test_columns_are_found_by_name_also_after_a_model_was_saved(files, budget, tmp_path):
    folder, X, y = files
    model = PartitionedLSSVMRegressor(n_partitions=4, memory_budget=budget)
    model.fit(folder / "rows.parquet", "y")
    model.save(tmp_path / "m.ridgefold")
    expected = PartitionedLSSVMRegressor(n_partitions=4).fit(X, y).predict(X)
    for each in (model, load(tmp_path / "m.ridgefold")):
        assert each.feature_names_in_.tolist() == ["a", "b"]
        for name in ("rows.parquet", "swapped.parquet"):
            np.testing.assert_allclose(each.predict(folder / name), expected, rtol=1e-12)


def test_a_frame_with_other_columns_than_the_table_is_refused(files):
    folder, X, _ = files
    pandas = pytest.importorskip("pandas")
    model = PartitionedLSSVMRegressor(n_partitions=4).fit(folder / "rows.parquet", "y")
    with pytest.raises(InvalidInputError, match="same order"):
        model.predict(pandas.DataFrame({"b": X[:, 1], "a": X[:, 0]}))


def test_refitting_on_an_array_forgets_the_names_of_a_table(files):
    folder, X, y = files
    model = PartitionedLSSVMRegressor(n_partitions=4).fit(folder / "rows.parquet", "y")
    assert not hasattr(model.fit(X, y), "feature_names_in_")


@budgets
def test_a_path_is_predicted_as_the_rows_in_it(files, budget):
    folder, X, y = files
    path = folder / "X.npy"
    model = PartitionedLSSVMRegressor(n_partitions=4, memory_budget=budget).fit(path, y)
    np.testing.assert_array_equal(model.predict(path), model.predict(X))
    assert model.score(path, y) == model.score(X, y)
    for ends, expected in zip(model.predict_interval(path), model.predict_interval(X), strict=True):
        np.testing.assert_array_equal(ends, expected)


@budgets
def test_classes_of_rows_at_a_path(files, budget):
    folder, X, y = files
    model = PartitionedLSSVMClassifier(n_partitions=4, probability=True, memory_budget=budget)
    model.fit(folder / "X.npy", y > 0)
    np.testing.assert_array_equal(model.predict(folder / "X.npy"), model.predict(X))
    np.testing.assert_array_equal(model.predict_proba(folder / "X.npy"), model.predict_proba(X))


def test_a_table_without_a_column_of_the_fit_is_refused(files, tmp_path):
    folder, X, _ = files
    model = PartitionedLSSVMRegressor(n_partitions=4).fit(folder / "rows.parquet", "y")
    pa_parquet.write_table(pa.table({"a": X[:, 0]}), tmp_path / "a.parquet")
    with pytest.raises(TableError, match="has no column 'b'"):
        model.predict(tmp_path / "a.parquet")


def test_an_array_of_other_columns_than_a_table_of_a_nameless_fit_is_refused(files):
    folder, X, y = files
    model = PartitionedLSSVMRegressor(n_partitions=4).fit(X, y)
    with pytest.raises(InvalidInputError, match="3 features"):
        model.predict(folder / "rows.parquet")


@pytest.mark.parametrize(
    ("y", "weights", "name"), [("yy", None, "y"), (np.zeros(400), "w", "sample_weight")]
)
def test_what_is_no_file_is_called_by_its_argument(files, y, weights, name):
    folder, _, _ = files
    with pytest.raises(TableError, match=f"^{name} must be an array"):
        PartitionedLSSVMRegressor().fit(folder / "X.npy", y, sample_weight=weights)


@pytest.mark.parametrize("settings", [{}, {"alpha": 0.1, "intervals": "jackknife+"}])
def test_rows_on_disk_that_repeat_are_warned_of(files, tmp_path, settings):
    _, X, y = files
    np.save(tmp_path / "twice.npy", np.repeat(X, 2, axis=0))
    model = PartitionedLSSVMRegressor(n_partitions=4, memory_budget="50kB", **settings)
    with pytest.warns(RepeatedRowsWarning, match="repeat others.*sample_weight"):
        model.fit(tmp_path / "twice.npy", np.repeat(y, 2))


def test_repeated_rows_on_disk_do_no_harm_where_nothing_is_chosen(files, tmp_path, recwarn):
    _, X, y = files
    np.save(tmp_path / "twice.npy", np.repeat(X, 2, axis=0))
    PartitionedLSSVMRegressor(
        kernel_params={"length_scale": 1.0},
        n_partitions=4,
        memory_budget="50kB",
        alpha=0.1,
        intervals=None,
    ).fit(tmp_path / "twice.npy", np.repeat(y, 2))
    assert not recwarn
