"""A device is planned for by its own rates and memory. Here torch's processor stands in for one."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from cases import rows, targets
from ridgefold import KernelRidge, KernelRidgeCV, calibrate, cross_val_path, explain
from ridgefold.errors import BudgetError, InvalidInputError
from ridgefold.linalg import namespace_of
from ridgefold.linalg.torch_routines import TorchNamespace
from ridgefold.planning import (
    available_resources,
    calibration,
    device_named,
    device_of,
    measurement,
    plan_cross_validation,
)
from ridgefold.planning.rates import DEFAULT_RATES, H200_RATES, seconds
from ridgefold.records import Cost, FoldShape, Problem, Resources
from ridgefold.runtime import Meter
from ridgefold.solvers import SOLVERS

TENSOR = torch.zeros(1, dtype=torch.float64)
GPU = Resources(memory_bytes=1e12, device="NVIDIA H200")
PROCESSOR = Resources(memory_bytes=1e12)


@pytest.fixture
def toy(monkeypatch):
    """A device of a hundred megabytes: tensors of the processor say that they are on it."""
    monkeypatch.setattr(TorchNamespace, "accelerator", lambda self, like: "Toy")
    monkeypatch.setattr(TorchNamespace, "free_bytes", lambda self, like: 1e8)
    monkeypatch.setattr(TorchNamespace, "held_after_reset", lambda self, like: 3e6)
    monkeypatch.setattr(TorchNamespace, "peak_bytes", lambda self, like: 5e6)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder and small measurements."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("RIDGEFOLD_RATES", raising=False)
    monkeypatch.setattr(measurement, "DEVICE_SIZES", (40, 60, 80))
    monkeypatch.setattr(measurement, "_LEAST_SECONDS", 0.0)
    monkeypatch.setattr(calibration, "_measured_here", {})
    calibration.machine_rates.cache_clear()
    yield tmp_path / "ridgefold"
    calibration.machine_rates.cache_clear()


# -- rates -------------------------------------------------------------------------------


def products(kind, work):
    """How many products of 20,000 rows some work of that size, in n³ operations, takes."""
    problem, n3 = Problem(n_rows=20_000, n_columns=10), 20_000.0**3
    one = seconds(Cost({"product": 2 * n3}, 0.0, size=20_000), problem, H200_RATES)
    return seconds(Cost({kind: work * n3}, 0.0, size=20_000), problem, H200_RATES) / one


def test_the_built_in_rates_of_devices_are_those_of_an_h200():
    assert 19 <= products("eigendecomposition", 9) <= 25
    cholesky = products("cholesky", 1 / 3)
    assert 0.3 <= cholesky <= 0.4
    assert 1.5 <= cholesky + products("inverse", 2 / 3) <= 2.0
    one_pass = Cost({"memory": 8.0 * 53_500**2}, 0.0, size=53_500)
    assert seconds(one_pass, Problem(53_500, 10), H200_RATES) == pytest.approx(6e-3, rel=0.05)
    assert set(H200_RATES.by_kind) == set(DEFAULT_RATES.by_kind)


@pytest.mark.parametrize(
    ("folds", "n_alphas", "on_processor", "on_device"),
    [
        (FoldShape(1, 9999, 10_000), 5, "banded", "inverse_blocks"),
        (FoldShape(1, 9999, 10_000), 30, "banded", "eigendecomposition"),
        (FoldShape(2000, 8000, 5), 10, "banded", "refit"),
    ],
)
def test_other_methods_win_on_a_device(folds, n_alphas, on_processor, on_device):
    problem = Problem(10_000, 20, n_alphas=n_alphas, kernel="given", semidefinite=False)
    problem = Problem(**{**vars(problem), "folds": (folds,)})
    assert plan_cross_validation(problem, PROCESSOR).method == on_processor
    assert plan_cross_validation(problem, GPU).method == on_device


def test_an_eigendecomposition_gives_way_to_factorisations_where_both_can_run():
    """A spectrum that falls slowly: two Cholesky factors a fold instead of one decomposition."""
    spectrum = (*(100.0 / (i + 1) ** 0.2 for i in range(255)), 1e-8)
    problem = Problem(
        10_000,
        64,
        n_alphas=30,
        smallest_alpha=1e-4,
        folds=(FoldShape(2000, 8000, 5),),
        spectrum=spectrum,
    )
    plan = plan_cross_validation(problem, GPU)
    assert plan.method == "anchored"
    reasons = {each.method: each.reason for each in plan.rejected}
    assert reasons["eigendecomposition"].startswith("predicted 1.2 s")


def test_float32_gains_less_on_an_h200_than_on_a_core():
    cost = Cost({"product": 1e12}, 0.0)
    double, single = Problem(1000, 10), Problem(1000, 10, itemsize=4)
    for rates in (DEFAULT_RATES, H200_RATES):
        share = seconds(cost, single, rates) / seconds(cost, double, rates)
        assert share == pytest.approx(rates.single_precision)
    assert H200_RATES.single_precision > DEFAULT_RATES.single_precision


# -- calibration -------------------------------------------------------------------------


def test_a_device_is_measured_and_remembered_by_its_name(toy, cache):
    assert calibration.known_rates("Toy") is H200_RATES
    rates = calibrate(device="cpu")
    assert set(rates.by_kind) == set(DEFAULT_RATES.by_kind)
    assert all(rate > 0 for points in rates.by_kind.values() for _, rate in points)
    assert [size for size, _ in rates.by_kind["product"]] == [40.0, 60.0]
    assert rates.single_precision > 0
    [file] = cache.iterdir()
    assert calibration.read(file) == rates
    calibration._measured_here.clear()
    calibration.machine_rates.cache_clear()
    assert calibration.known_rates("Toy") == rates  # another process would read the file
    assert calibration.known_rates("another device") is H200_RATES
    assert calibration.known_rates() is DEFAULT_RATES


def test_sizes_that_do_not_fit_the_device_are_not_measured(toy, cache, monkeypatch):
    monkeypatch.setattr(TorchNamespace, "free_bytes", lambda self, like: 6 * 8.0 * 50**2)
    rates = calibrate(device="cpu")
    assert [size for size, _ in rates.by_kind["product"]] == [40.0]


def test_torch_on_the_processor_is_the_processor(cache, monkeypatch):
    monkeypatch.setattr(measurement, "SIZES", (40, 60))
    rates = calibrate(device="cpu")
    assert calibration.known_rates() == rates
    assert device_of(TENSOR) is None
    assert device_named("cpu") is None


def test_a_device_that_is_not_here_cannot_be_measured():
    with pytest.raises(InvalidInputError, match=r"device='cuda:99' cannot be measured"):
        calibrate(device="cuda:99")


@pytest.mark.parametrize("name", ["Toy", None])
def test_a_long_plan_measures_what_it_runs_on_if_that_is_here(toy, cache, monkeypatch, name):
    monkeypatch.setattr(measurement, "SIZES", (40, 60))
    on_cpu = {"cuda:0": TENSOR}
    monkeypatch.setattr("ridgefold.planning.devices.array_on", on_cpu.get)
    problem = Problem(
        300_000, 10, folds=(FoldShape(60_000, 240_000, 5),), kernel="given", semidefinite=False
    )
    plan_cross_validation(problem, Resources(1e15, device=name))
    assert list(calibration._measured_here) == [name]
    plan_cross_validation(problem, Resources(1e15, device="elsewhere"))
    assert list(calibration._measured_here) == [name]


def test_a_damaged_share_of_single_precision_is_not_read(tmp_path):
    path = tmp_path / "rates.json"
    for share in (0.0, -1.0, "x", None):
        path.write_text(json.dumps({**DEFAULT_RATES.by_kind, "single_precision": share}))
        assert calibration.read(path) is None


# -- memory ------------------------------------------------------------------------------


def test_the_budget_on_a_device_is_a_share_of_its_own_memory(toy):
    resources = available_resources("auto", device=device_of(TENSOR))
    assert resources.memory_bytes == pytest.approx(0.7e8)
    assert resources.device == "Toy"
    assert available_resources("2GB", device=device_of(TENSOR)).memory_bytes == 2e9


def test_a_device_that_is_not_here_needs_a_budget():
    with pytest.raises(InvalidInputError, match=r"'cuda:99' has free is not known.*memory_budget"):
        explain(n_samples=1000, n_features=5, device="cuda:99")
    text = str(explain(n_samples=1000, n_features=5, device="cuda:99", memory_budget="80GB"))
    assert "of 80 GB, on cuda:99" in text
    with pytest.raises(InvalidInputError, match=r'device must be a name such as "cuda"'):
        explain(n_samples=1000, n_features=5, device=3)


def test_fits_on_a_device_are_planned_for_it(toy):
    X = torch.from_numpy(rows(60, 3))
    y = targets(rows(60, 3))
    model = KernelRidge(0.1, kernel="rbf").fit(X, y)
    assert model.plan_.resources.device == "Toy"
    assert model.plan_.resources.memory_bytes == pytest.approx(0.7e8)
    assert model.run_record_.steps[0].peak_bytes == 2e6
    assert "of 70 MB, on Toy" in str(model.explain())
    search = KernelRidgeCV(alpha=[0.1, 1.0], cv=3).fit(X, y)
    assert search.cv_plan_.resources.device == search.plan_.resources.device == "Toy"
    path = cross_val_path(X, y, alpha=[0.1, 1.0], cv=3)
    assert path.plan.resources.device == "Toy"
    on_processor = KernelRidge(0.1, kernel="rbf").fit(X.numpy(), y)
    assert on_processor.plan_.resources.device is None


def test_a_matrix_that_does_not_fit_the_device_is_not_stored_there(toy):
    X = torch.from_numpy(rows(3400, 2))
    model = KernelRidge(1.0, kernel="rbf").fit(X, targets(rows(3400, 2)))
    assert model.plan_.method == "conjugate_gradient"  # 92 MB for the matrix, 70 MB may be used
    assert model.plan_.cost.peak_bytes <= 0.7e8


def test_a_device_without_memory_is_planned_for_again(monkeypatch):
    tried = []

    def fail(system):
        tried.append(1)
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(SOLVERS["cholesky"], "solve", fail, raising=False)
    X = torch.from_numpy(rows(3400, 2))
    model = KernelRidge(1.0, kernel="rbf").fit(X, targets(rows(3400, 2)))
    assert tried == [1]
    assert model.plan_.method == "conjugate_gradient"
    monkeypatch.setattr(SOLVERS["conjugate_gradient"], "solve", fail, raising=False)
    with pytest.raises(BudgetError, match=r"the system gave no memory|no solver fits"):
        model.fit(X, targets(rows(3400, 2)))


def test_other_errors_of_torch_are_passed_on(monkeypatch):
    def fail(system):
        raise RuntimeError("something else")

    monkeypatch.setattr(SOLVERS["cholesky"], "solve", fail, raising=False)
    with pytest.raises(RuntimeError, match="something else"):
        KernelRidge(1.0, kernel="rbf").fit(torch.from_numpy(rows(20, 2)), targets(rows(20, 2)))


def test_memory_is_metered_where_the_work_is(toy):
    with Meter(TENSOR) as meter:
        pass
    assert meter.peak_bytes == 2e6
    with Meter() as meter:
        np.ones(10).sum()
    assert meter.peak_bytes != 2e6


def test_the_processor_names_no_device():
    for like in (np.zeros(1), TENSOR):
        namespace = namespace_of(like)
        assert namespace.accelerator(like) is None
        assert namespace.free_bytes(like) is None
        assert namespace.held_after_reset(like) is None
        assert namespace.peak_bytes(like) is None
        namespace.wait(like)
