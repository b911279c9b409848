"""Plans of partitioned fits on a cluster, from shapes alone."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import ridgefold
from ridgefold import PartitionedLSSVMRegressor
from ridgefold.cli import app


def plan(rows, workers, memory="64GB", columns=20, **settings):
    explained = ridgefold.explain(
        PartitionedLSSVMRegressor(**settings),
        n_samples=rows,
        n_features=columns,
        n_workers=workers,
        memory_budget=memory,
    )
    return explained.steps[0], str(explained)


def test_a_thousand_million_rows_on_a_hundred_workers_can_be_planned():
    step, text = plan(10**9, 100)
    assert step["cells"] == round(1e9 / 512)
    assert "1,000,000,000 rows" in text
    for part in step["parts"]:
        assert part["step"] in text
        assert f"on {part['where']}: " in text
        assert f"moves {part['moves']}" in text
        assert part["refused"] is None
    assert "assumed: " in text


def test_more_workers_are_faster_until_the_rest_decides():
    times = [plan(10**8, workers)[0]["predicted_seconds"] for workers in (1, 10, 100, 10_000)]
    assert times == sorted(times, reverse=True)
    assert times[0] / times[1] > 5
    assert times[2] / times[3] < 5
    assert all(t > plan(10**8, 1)[0]["serial_seconds"] for t in times)


def test_time_grows_in_proportion_to_rows():
    small, large = (plan(rows, 10)[0]["predicted_seconds"] for rows in (10**7, 10**8))
    assert 8 < large / small < 12


def test_a_step_that_does_not_fit_is_named():
    step, text = plan(10**9, 100, memory="2GB")
    refused = [part["step"] for part in step["parts"] if part["refused"]]
    assert refused == ["learning 1,953,125 cells from 31,250,000 rows"]
    assert "does not fit: needs" in text


def test_few_rows_are_one_cell():
    assert plan(300, 4)[0]["cells"] == 1


@pytest.mark.parametrize("as_json", [False, True])
def test_the_command_line_plans_for_a_cluster(as_json):
    arguments = ["explain", "--rows", "1e9", "--columns", "20", "--workers", "100"]
    result = CliRunner().invoke(app, [*arguments, *(["--json"] if as_json else [])])
    assert result.exit_code == 0, result.output
    if as_json:
        assert json.loads(result.stdout)[0]["workers"] == 100
    else:
        assert "partitioned fit on 100 workers" in result.stdout
