"""Rates are measured, remembered, and never read from a damaged file."""

import json
import multiprocessing
import os

import pytest

from ridgefold.planning import calibration, measurement
from ridgefold.planning.rates import DEFAULT_RATES, Rates, seconds
from ridgefold.records import Cost, Problem

PROBLEM = Problem(n_rows=1000, n_columns=5)
pytestmark = pytest.mark.filterwarnings("ignore::ridgefold.errors.SlowBlasWarning")
"""Whether another kernel of OpenBLAS is faster depends on the processor."""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder, small measurements, and nothing remembered from other tests."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("RIDGEFOLD_RATES", raising=False)
    monkeypatch.setattr(measurement, "SIZES", (40, 80))
    monkeypatch.setattr(measurement, "_LEAST_SECONDS", 0.0)
    monkeypatch.setattr(calibration, "_measured_here", {})
    calibration.machine_rates.cache_clear()
    yield tmp_path / "ridgefold"
    calibration.machine_rates.cache_clear()


def test_rates_are_measured_and_remembered(cache):
    assert calibration.machine_rates() is None
    assert calibration.known_rates() is DEFAULT_RATES
    calibration.machine_rates.cache_clear()
    rates = calibration.calibrate()
    assert set(rates.by_kind) == set(DEFAULT_RATES.by_kind)
    assert all(rate > 0 for points in rates.by_kind.values() for _, rate in points)
    [file] = cache.iterdir()
    assert calibration.read(file) == rates
    calibration._measured_here.clear()
    calibration.machine_rates.cache_clear()
    assert calibration.machine_rates() == rates  # another process would read the file


def test_old_rates_are_measured_anew(cache):
    calibration.calibrate()
    [file] = cache.iterdir()
    calibration._measured_here.clear()
    month = 31 * 86_400
    os.utime(file, (file.stat().st_atime, file.stat().st_mtime - month))
    calibration.machine_rates.cache_clear()
    assert calibration.machine_rates() is None
    assert calibration.calibrate_if_unknown(None)


def test_the_first_long_computation_takes_a_shorter_look(cache, monkeypatch):
    looked_at = []
    plain = measurement._at
    monkeypatch.setattr(measurement, "_at", lambda n, bench: looked_at.append(n) or plain(n, bench))
    assert calibration.calibrate_if_unknown(None)
    assert looked_at == [40]  # not the largest size
    rates = calibration.machine_rates()
    assert set(rates.by_kind) == set(DEFAULT_RATES.by_kind)
    for kind, points in rates.by_kind.items():
        assert kind == "calls" or [size for size, _ in points] == [40, 80]
    assert not calibration.calibrate_if_unknown(None)  # it is known now


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "3", "{}", '{"product": [[200, 1e9]]}', '{"product": "x"}'],
)
def test_a_damaged_file_is_not_read(tmp_path, text):
    path = tmp_path / "rates.json"
    path.write_text(text)
    assert calibration.read(path) is None


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), 1e30])
def test_absurd_rates_are_not_read(tmp_path, rate):
    path = tmp_path / "rates.json"
    path.write_text(json.dumps({**DEFAULT_RATES.by_kind, "product": [[200, rate]]}))
    assert calibration.read(path) is None


def test_a_folder_that_cannot_be_written_does_not_matter(cache, monkeypatch):
    cache.parent.joinpath("ridgefold").write_text("a file where the folder should be")
    assert calibration.calibrate() == calibration.machine_rates()


def test_rates_can_be_given_by_a_file(tmp_path, monkeypatch):
    path = tmp_path / "rates.json"
    doubled = {k: [[s, 2 * r] for s, r in v] for k, v in DEFAULT_RATES.by_kind.items()}
    path.write_text(json.dumps(doubled))
    monkeypatch.setenv("RIDGEFOLD_RATES", str(path))
    calibration.machine_rates.cache_clear()
    try:
        cost = Cost({"product": 1e9}, 0.0)
        fast = seconds(cost, PROBLEM, calibration.known_rates())
        assert fast == pytest.approx(seconds(cost, PROBLEM, DEFAULT_RATES) / 2)
    finally:
        calibration.machine_rates.cache_clear()


def _write_many(path, value):
    rates = Rates(dict.fromkeys(DEFAULT_RATES.by_kind, ((200.0, value),)))
    for _ in range(30):
        calibration._write(path, rates)
        found = calibration.read(path)
        assert found is not None
        assert {rate for points in found.by_kind.values() for _, rate in points} <= {1e9, 2e9}


def test_processes_that_calibrate_at_once_never_read_half_a_file(tmp_path):
    path = tmp_path / "rates.json"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_write_many, args=(path, v)) for v in (1e9, 2e9)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert [file.name for file in tmp_path.iterdir()] == ["rates.json"]


def test_rates_lie_between_those_measured():
    rates = Rates({"product": ((100.0, 1e9), (10_000.0, 4e9))})
    assert rates.at("product", 10) == 1e9
    assert rates.at("product", 1000) == pytest.approx(2e9)
    assert rates.at("product", 1e6) == 4e9


@pytest.mark.parametrize("kernel", ["euclidean", "manhattan", "dot", "given", "other"])
def test_every_way_to_compute_a_kernel_has_a_time(kernel):
    problem = Problem(n_rows=1000, n_columns=50, kernel=kernel)
    assert 0 < seconds(Cost({"kernel": 1e6}, 0.0), problem) < 1
