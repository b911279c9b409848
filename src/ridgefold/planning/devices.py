"""The device that work is planned for: that of an array, or one named before there are data."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from ridgefold.errors import InvalidInputError
from ridgefold.linalg import Array, namespace_of
from ridgefold.linalg.namespace import on_device


@dataclass(frozen=True)
class Device:
    """An accelerator."""

    name: str
    """As its maker calls it; rates are kept by it."""
    free_bytes: float | None
    """None if the device is not here, or does not say."""


def device_of(like: Array) -> Device | None:
    """The accelerator that holds an array; None for the processor."""
    namespace = namespace_of(like)
    name = namespace.accelerator(like)
    return None if name is None else Device(name, namespace.free_bytes(like))


def device_named(device: str | None) -> Device | None:
    """The accelerator that torch calls `device`; one that is not here has a name only."""
    if device is None:
        return None
    if not isinstance(device, str) or not device:
        raise InvalidInputError(f'device must be a name such as "cuda", or None, got {device!r}')
    like = array_on(device)
    return Device(device, None) if like is None else device_of(like)


def array_on(device: str) -> Array | None:
    """A small array on a device, to make others like it; None if there is no such device."""
    try:
        return on_device(np.zeros(1), device)
    except InvalidInputError:
        return None


def array_here(name: str) -> Array | None:
    """A small array on the device that its maker calls `name`; None if it is not here."""
    arrays = (array_on(f"cuda:{number}") for number in itertools.count())
    here = itertools.takewhile(lambda a: a is not None, arrays)
    return next((a for a in here if namespace_of(a).accelerator(a) == name), None)
