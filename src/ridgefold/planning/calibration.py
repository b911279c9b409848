"""Measure this machine and its devices, once, and remember.

Rates are kept in the user's cache folder, one file for each machine, number of threads and version
of the libraries, and one for each kind of device. A file is written whole or not at all, so that
processes that start together each measure for themselves and the last one's figures stay. A file
that cannot be read is measured anew; where nothing can be written, nothing is.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import time
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from ridgefold.errors import InvalidInputError, SlowBlasWarning
from ridgefold.notices import warn
from ridgefold.planning.blas_kernels import faster_kernel, loaded_kernels
from ridgefold.planning.devices import array_here, array_on, device_of
from ridgefold.planning.measurement import measure, measure_device, measure_quickly
from ridgefold.planning.rates import DEFAULT_RATES, H200_RATES, Rates
from ridgefold.planning.resources import thread_count
from ridgefold.storage.atomic import written_whole

_VARIABLE = "RIDGEFOLD_RATES"
"""Set to "default" to use the built-in rates, or to the path of a file of rates."""
_WHAT = "three sizes"
"""What is measured: rates that were measured otherwise are not used."""
_DAYS = 30
"""Older rates are measured anew: the machine may have been busy, or be another by now."""


def calibrate(device: str | None = None) -> Rates:
    """Measure how fast this machine does each kind of work, and use that from now on.

    Takes a few seconds; the first long computation on a machine spends a second or two on a
    shorter look. Plans predict times, and choose between methods, by these rates; without
    a calibration, built-in rates of an ordinary core (of an NVIDIA H200 for devices) are used until
    a long computation is planned.

    OpenBLAS sometimes takes slower code than the processor can run; where setting
    ``OPENBLAS_CORETYPE`` would be faster, a `SlowBlasWarning` names the setting and the measured
    factor.

    Parameters
    ----------
    device : str, optional
        Measure this device of torch, as "cuda", instead of the processor.

    Examples
    --------
    >>> import ridgefold
    >>> rates = ridgefold.calibrate()  # doctest: +SKIP
    """
    if device is None:
        faster = faster_kernel()
        if faster is not None:
            warn(f"{faster}", SlowBlasWarning)
        return _keep(None, measure())
    like = array_on(device)
    if like is None:
        raise InvalidInputError(
            f"device={device!r} cannot be measured, as torch has no such device here: leave it "
            'out for the processor, or name one that torch has, as "cuda"'
        )
    accelerator = device_of(like)
    if accelerator is None:
        return _keep(None, measure())
    return _keep(accelerator.name, measure_device(like))


def calibrate_if_unknown(name: str | None) -> bool:
    """Measure a device (None: the processor) that is here and has not been measured; True if so."""
    if machine_rates(name) is not None:
        return False
    if name is None:
        _keep(None, measure_quickly())
        return True
    like = array_here(name)
    if like is None:
        return False
    _keep(name, measure_device(like))
    return True


def _keep(name: str | None, rates: Rates) -> Rates:
    with suppress(OSError):  # a read-only home: measured again next time
        _write(_cache_file(name), rates)
    machine_rates.cache_clear()
    _measured_here[name] = rates
    return rates


_measured_here: dict[str | None, Rates] = {}


@functools.lru_cache(maxsize=8)
def machine_rates(device: str | None = None) -> Rates | None:
    """The rates of this machine, or of a device by its name, if measured; None otherwise."""
    chosen = os.environ.get(_VARIABLE, "")
    if chosen == "default":
        return _built_in(device)
    if chosen and device is None:
        return read(Path(chosen))
    return _measured_here.get(device) or _read_recent(_cache_file(device))


def known_rates(device: str | None = None) -> Rates:
    """The rates of this machine, or of a device by its name, or the built-in ones."""
    return machine_rates(device) or _built_in(device)


def _built_in(device: str | None) -> Rates:
    return DEFAULT_RATES if device is None else H200_RATES


# -- remembering -------------------------------------------------------------------------


def _cache_file(device: str | None = None) -> Path:
    folder = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    machine = (
        [
            platform.node(),
            platform.machine(),
            platform.processor(),
            str(os.cpu_count()),
            str(thread_count()),
            np.__version__,
            scipy.__version__,
            *sorted(loaded_kernels()),
        ]
        if device is None
        else [platform.node(), device, _torch_version()]
    )
    key = hashlib.sha256("\n".join([_WHAT, *machine]).encode()).hexdigest()[:16]
    return Path(folder) / "ridgefold" / f"rates-{key}.json"


def _torch_version() -> str:
    try:
        return version("torch")
    except PackageNotFoundError:
        return "none"


def _write(path: Path, rates: Rates) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    values: dict[str, Any] = {**rates.by_kind, _SINGLE: rates.single_precision}
    with written_whole(path) as file:
        file.write(json.dumps(values, indent=1).encode())


_SINGLE = "single_precision"


def _read_recent(path: Path) -> Rates | None:
    try:
        age = time.time() - path.stat().st_mtime
    except OSError:
        return None
    return read(path) if age < _DAYS * 86_400 else None


def read(path: Path) -> Rates | None:
    """Rates from a file; None if it is missing or not what was written."""
    try:
        stored = json.loads(path.read_text())
        single = float(stored.pop(_SINGLE, DEFAULT_RATES.single_precision))
        by_kind = {
            str(kind): tuple((float(size), float(rate)) for size, rate in points)
            for kind, points in stored.items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return None
    rates = [rate for points in by_kind.values() for _, rate in points]
    if set(by_kind) != set(DEFAULT_RATES.by_kind) or not all(0 < r < 1e18 for r in rates):
        return None
    return Rates(by_kind, single) if all(by_kind.values()) and 0 < single < 1e3 else None
