"""How the executors of one machine end: by an error, an interrupt, or the death of the driver."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import threading

import psutil
import pytest

from ridgefold.errors import NumericalError
from ridgefold.executors import EXECUTORS

HERE = [name for name in EXECUTORS if not EXECUTORS[name].remote]
MANY = 200


def noted(item):
    """Note the task in the folder; the third one fails."""
    folder, number = item
    (folder / str(number)).touch()
    if number == 2:
        raise NumericalError(f"item {number} overflows")
    return number


@pytest.mark.parametrize("name", HERE)
@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_keeps_its_type_and_ends_the_work(name, workers, tmp_path):
    executor = EXECUTORS[name](workers)
    with pytest.raises(NumericalError, match=r"^item 2 overflows$"):
        list(executor.map(noted, [(tmp_path, number) for number in range(MANY)]))
    assert 3 <= len(list(tmp_path.iterdir())) < MANY / 2


def worked(item):
    """Some milliseconds of work: what is not stopped does not end before it could be."""
    hashlib.pbkdf2_hmac("sha256", b"", b"", 20_000)
    return noted(item)


@pytest.mark.parametrize("name", HERE)
def test_who_stops_in_the_middle_leaves_nothing_under_way(name, tmp_path):
    executor = EXECUTORS[name](2)
    items = [(tmp_path, number) for number in range(3, MANY)]

    def interrupted():
        with executor.held():
            for _ in executor.map(worked, items):
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as kept:
        interrupted()
    # The frames of the work are still alive, and yet it is at its end.
    assert kept.tb is not None
    assert list(executor.map(noted, [(tmp_path, MANY)])) == [MANY]
    assert len(list(tmp_path.iterdir())) < MANY / 2


def interrupting(number):
    if number == 1:
        # Only the main thread is interrupted, as by the key.
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    return number


@pytest.mark.parametrize("name", ["serial", "threads"])
def test_the_key_that_interrupts_ends_the_work(name):
    executor = EXECUTORS[name](2)
    with pytest.raises(KeyboardInterrupt), executor.held():
        list(executor.map(interrupting, range(MANY)))
    assert list(executor.map(abs, [-1, -2])) == [1, 2]


DRIVER = """
import os, signal, sys, time
from ridgefold.executors import Processes

def endless(number):
    sys.stdout.write(f"{os.getpid()}\\n")
    sys.stdout.flush()
    while True:
        time.sleep(60)

if __name__ == "__main__":
    list(Processes(2).map(endless, [1, 2]))
"""


@pytest.mark.skipif(os.name != "posix", reason="parents are looked for as POSIX shows them")
def test_a_driver_that_is_killed_leaves_no_workers(tmp_path):
    (tmp_path / "driver.py").write_text(DRIVER)
    with subprocess.Popen(  # noqa: S603 - a script of this test
        [sys.executable, tmp_path / "driver.py"], stdout=subprocess.PIPE, text=True
    ) as driver:
        workers = [psutil.Process(int(driver.stdout.readline())) for _ in range(2)]
        assert all(worker.ppid() == driver.pid for worker in workers)
        driver.kill()
        _, alive = psutil.wait_procs(workers, timeout=20)
        for worker in alive:
            worker.kill()
    assert alive == []
