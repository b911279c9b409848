"""A process that dies is told as what it is."""

from __future__ import annotations

import pytest

from ridgefold.errors import WorkerLostError
from ridgefold.executors.processes import Processes


def _die(item):
    import os

    os._exit(1)


def test_a_process_that_dies_is_a_lost_worker():
    with pytest.raises(WorkerLostError, match="fewer processes"):
        list(Processes(2).map(_die, [1, 2]))
