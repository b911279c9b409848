"""How much memory may be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from ridgefold.errors import InvalidInputError
from ridgefold.planning import available_resources, parse_memory, resources


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [
        ("2GB", 2e9),
        ("2 gb", 2e9),
        ("1.5GiB", 1.5 * 1024**3),
        ("512 MiB", 512 * 1024**2),
        ("100k", 1e5),
        ("3T", 3e12),
        ("7", 7.0),
        ("1e9", 1e9),
        ("64B", 64.0),
        (1000, 1000.0),
        (2.5e9, 2.5e9),
    ],
)
def test_sizes_are_read_as_people_write_them(text, n_bytes):
    assert parse_memory(text) == n_bytes
    assert available_resources(text).memory_bytes == n_bytes


@pytest.mark.parametrize(
    "value",
    ["", "lots", "2XB", "-1GB", "1.2.3GB", "0", 0, -5, float("nan"), float("inf"), True, None],
)
def test_sizes_that_cannot_be_read_are_named(value):
    with pytest.raises(InvalidInputError, match=r"memory_budget must be .*got"):
        parse_memory(value)


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine whose files are written by the test."""
    real = Path

    def elsewhere(path):
        text = str(path)
        return (
            real(tmp_path / text.lstrip("/")) if text.startswith(("/proc", "/sys")) else real(path)
        )

    monkeypatch.setattr(resources, "Path", elsewhere)

    def write(path, text):
        file = tmp_path / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    return write


MEMINFO = "MemTotal: 16000 kB\nMemFree: 100 kB\nMemAvailable:    8000 kB\n"


def test_auto_is_a_share_of_what_is_available(machine):
    machine("/proc/meminfo", MEMINFO)
    assert available_resources("auto").memory_bytes == pytest.approx(0.7 * 8000 * 1024)


def test_limits_of_a_container_count(machine):
    machine("/proc/meminfo", MEMINFO)
    machine("/sys/fs/cgroup/memory.max", "5000000\n")
    machine("/sys/fs/cgroup/memory.current", "1000000\n")
    assert available_resources("auto").memory_bytes == pytest.approx(0.7 * 4e6)


def test_cached_files_of_a_container_count_as_free(machine):
    machine("/proc/meminfo", MEMINFO)
    machine("/sys/fs/cgroup/memory.max", "5000000\n")
    machine("/sys/fs/cgroup/memory.current", "4900000\n")
    machine("/sys/fs/cgroup/memory.stat", "anon 100\nfile 3000000\ninactive_file 2000000\n")
    assert available_resources("auto").memory_bytes == pytest.approx(0.7 * 2.1e6)


def test_limits_of_an_old_container_count(machine):
    machine("/proc/meminfo", MEMINFO)
    machine("/sys/fs/cgroup/memory/memory.limit_in_bytes", "3000000\n")
    machine("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1000000\n")
    assert available_resources("auto").memory_bytes == pytest.approx(0.7 * 2e6)


@pytest.mark.parametrize("limit", ["max\n", "9223372036854771712\n"])
def test_containers_without_a_limit_leave_the_machine(machine, limit):
    machine("/proc/meminfo", MEMINFO)
    machine("/sys/fs/cgroup/memory.max", limit)
    machine("/sys/fs/cgroup/memory.current", "1000000\n")
    assert available_resources("auto").memory_bytes == pytest.approx(0.7 * 8000 * 1024)


def test_a_full_container_leaves_nothing_rather_than_the_machine(machine):
    machine("/proc/meminfo", MEMINFO)
    machine("/sys/fs/cgroup/memory.max", "1000000\n")
    machine("/sys/fs/cgroup/memory.current", "1000000\n")
    assert available_resources("auto").memory_bytes == 0.0


def test_machines_without_these_files_still_have_a_budget(machine):
    assert available_resources("auto").memory_bytes > 0
