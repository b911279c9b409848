"""Levels as numbers: what they are, and that no row's number holds its own target."""

import numpy as np
import pytest

from ridgefold import LSSVMRegressorCV, Search, diagnose
from ridgefold.errors import InvalidInputError, ModelFileError
from ridgefold.records import CodedColumn
from ridgefold.tables.level_codes import with_codes
from ridgefold.tables.wide_columns import packed_columns, unpacked_columns

rng = np.random.default_rng(3)
N, LEVELS = 1200, 60
EFFECT = rng.standard_normal(LEVELS)
PLACE = rng.integers(LEVELS, size=N)
X1 = rng.uniform(-1.0, 1.0, N)
Y = 2.0 * X1 + EFFECT[PLACE] + 0.3 * rng.standard_normal(N)
TABLE = {"shop": [f"s{place:02d}" for place in PLACE], "size": X1}


def coded(table=TABLE, targets=Y):
    found = with_codes(diagnose(table).encoder, table, targets)
    assert found is not None
    return found


def taken(table, rows):
    return {name: [values[i] for i in rows] for name, values in table.items()}


def test_codes_are_the_effects_of_levels_beside_other_columns():
    found = coded()
    assert found.feature_names == ("shop code", "size")
    (column,) = [c for c in found.encoder.columns.columns if isinstance(c, CodedColumn)]
    assert column.levels == tuple(f"s{k:02d}" for k in range(LEVELS))
    assert np.corrcoef(column.codes[0], EFFECT)[0, 1] > 0.99
    assert np.corrcoef(found.X[:, 0], EFFECT[PLACE])[0, 1] > 0.98


def test_means_are_drawn_towards_zero_by_the_rows_they_rest_on():
    table = {"shop": TABLE["shop"]}
    targets = EFFECT[PLACE] + rng.standard_normal(N)
    found = coded(table, targets)
    counts = np.bincount(PLACE, minlength=LEVELS)
    values = targets - targets.mean()
    means = np.bincount(PLACE, values) / counts
    within = np.sum((values - means[PLACE]) ** 2) / (N - LEVELS)
    typical = (N - np.sum(counts**2) / N) / (LEVELS - 1)
    between = (np.sum(counts * means**2) / (LEVELS - 1) - within) / typical
    shrunk = means * counts / (counts + within / between)
    codes = np.asarray(found.encoder.columns.columns[0].codes[0])
    np.testing.assert_allclose(codes, shrunk / np.std(shrunk[PLACE]), rtol=1e-9, atol=1e-12)


def test_no_code_holds_the_target_of_its_own_row():
    before = coded().X
    for i in (0, 5, 700):
        changed = Y.copy()
        changed[i] += 1.0
        after = coded(targets=changed).X
        other = np.flatnonzero(np.abs(after - before).max(axis=1) > 1e-3)
        assert i not in other
        same_level = PLACE[other] == PLACE[i]
        assert same_level.any()  # those of the other half do move
    unit = np.std(EFFECT)
    noise = rng.standard_normal(N)
    table = {"shop": [f"s{place:03d}" for place in rng.integers(400, size=N)]}
    found = with_codes(diagnose(table).encoder, table, noise)
    if found is not None and np.std(found.X[:, 0]) > 0:
        assert abs(np.corrcoef(found.X[:, 0], noise)[0, 1]) < 0.1 * max(1.0, unit)


def test_levels_that_are_new_count_as_those_of_no_rows():
    found = coded()
    new = found.encoder.apply({"shop": ["never seen", "s01"], "size": [0.0, 0.0]}).X
    assert new[0, 0] == 0.0
    assert new[1, 0] != 0.0


def test_missing_values_have_a_code_of_their_own():
    shops = list(TABLE["shop"])
    gaps = range(0, N, 10)
    for i in gaps:
        shops[i] = None
    targets = Y.copy()
    targets[::10] = 2.0 * X1[::10] + 5.0
    found = coded({"shop": shops, "size": X1}, targets)
    new = found.encoder.apply({"shop": [None, "s01"], "size": [0.0, 0.0]}).X
    assert new[0, 0] > new[1, 0] + 1.0


def test_rows_count_by_their_weights():
    encoder = diagnose(TABLE).encoder
    weights = np.where(np.arange(N) % 3 == 0, 0.0, 2.0)
    weighted = with_codes(encoder, TABLE, Y, weights=weights)
    changed = np.where(weights == 0.0, 100.0, Y)
    other = with_codes(encoder, TABLE, changed, weights=weights)
    np.testing.assert_allclose(weighted.X, other.X, atol=1e-9)


def test_every_column_of_the_targets_has_a_code():
    found = coded(targets=np.column_stack([Y, -Y]))
    assert found.feature_names == ("shop code 1", "shop code 2", "size")
    np.testing.assert_allclose(found.X[:, 0], -found.X[:, 1], atol=1e-9)


def test_tables_without_such_columns_have_none():
    table = {"shop": [f"s{place % 30}" for place in PLACE], "size": X1}
    assert with_codes(diagnose(table).encoder, table, Y) is None
    with pytest.raises(InvalidInputError, match="finite"):
        with_codes(diagnose(TABLE).encoder, TABLE, np.full(N, np.nan))


def test_held_out_errors_are_those_of_encoder_and_model_refitted_on_every_fold():
    rows = np.arange(600)
    table, y = taken(TABLE, rows), Y[rows]
    model = LSSVMRegressorCV(cv=5, kernel="rbf", search=Search(race="full"))
    whole = model.fit(coded(table, y).X, y)
    claimed = (
        np.sqrt(np.mean(whole.held_out_residuals_**2))
        if hasattr(whole, "held_out_residuals_")
        else np.sqrt(-whole.best_score_)
    )
    off = []
    folds = np.arange(600) % 5
    for fold in range(5):
        inside, outside = rows[folds != fold], rows[folds == fold]
        part = coded(taken(table, inside), y[inside])
        fit = LSSVMRegressorCV(cv=5, kernel="rbf", search=Search(race="full")).fit(
            part.X, y[inside]
        )
        new = part.encoder.apply(taken(table, outside)).X
        off.append(y[outside] - fit.predict(new))
    refitted = np.sqrt(np.mean(np.concatenate(off) ** 2))
    assert claimed == pytest.approx(refitted, rel=0.15)


def test_records_of_codes_are_kept_and_checked():
    columns = coded().encoder.columns
    assert unpacked_columns("columns", packed_columns(columns)) == columns
    (column,) = [c for c in columns.columns if isinstance(c, CodedColumn)]
    short = CodedColumn(column.name, column.levels, (column.codes[0][1:],), column.missing)
    from dataclasses import replace

    with pytest.raises(ModelFileError, match="a code for each level"):
        unpacked_columns("columns", replace(columns, columns=(short,)))
