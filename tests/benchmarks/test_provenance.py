"""Results say which code they were measured with, and several runs are merged into medians."""

from __future__ import annotations

import importlib
import sys

import pytest

from documentation import ROOT

SCRIPT = ROOT / "benchmarks" / "scale" / "fit.py"


@pytest.fixture(scope="module")
def modules():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        yield {name: importlib.import_module(name) for name in ("provenance", "measure", "run")}
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


def test_results_of_this_very_code_are_current(modules):
    provenance = modules["provenance"]
    record = {"sources": provenance.recorded_now(SCRIPT)}
    assert provenance.changed_since(record, SCRIPT) == []


def test_changed_code_is_named(modules):
    provenance = modules["provenance"]
    sources = provenance.recorded_now(SCRIPT)
    sources["folders"]["linalg"] = "another"
    sources["script"] = "another"
    changed = provenance.changed_since({"sources": sources}, SCRIPT)
    assert set(changed) == {"the script", "linalg"}


def test_results_without_a_record_of_their_code_say_so(modules):
    assert modules["provenance"].changed_since({"figures": []}, SCRIPT) is None


def test_comments_and_docstrings_do_not_count(modules, tmp_path):
    fingerprint = modules["provenance"].fingerprint
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    bare, written = tmp_path / "a" / "code.py", tmp_path / "b" / "code.py"
    bare.write_text("def double(x):\n    return 2 * x\n")
    written.write_text('def double(x):\n    """Twice."""\n    return 2 * x  # exactly\n')
    assert fingerprint([bare]) == fingerprint([written])
    written.write_text("def double(x):\n    return 3 * x\n")
    assert fingerprint([bare]) != fingerprint([written])


def test_several_runs_are_their_median_with_the_range(modules):
    figure = modules["measure"].Figure
    runs = [[figure("time", t, "s", at_most=2.0)] for t in (3.0, 1.0, 1.5)]
    (merged,) = modules["run"].median_of(runs)
    assert (merged.measured, merged.spread, merged.held) == (1.5, (1.0, 3.0), True)
    assert "1.5 s (1 to 3)" in modules["measure"].markdown_table([merged])


def test_what_one_run_did_not_measure_has_no_range(modules):
    figure = modules["measure"].Figure
    (merged,) = modules["run"].median_of([[figure("time", 1.0)], [figure("time", None)]])
    assert merged.spread is None
