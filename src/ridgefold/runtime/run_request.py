"""The run directory that a model asks for, and the arguments that a fit is compared by."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from ridgefold.options import compute_of, flat_arguments
from ridgefold.storage import fingerprint
from ridgefold.storage.paths import usable_path

SEEDS = 2**31 - 1
"""A generator that is given as `random_state` draws one number below this."""


def folder_of(model: Any) -> Path | None:
    folder = compute_of(model).run_dir
    return None if folder is None else usable_path(folder, "compute.run_dir").resolve()


def settings_of(model: Any, without_effect: Collection[str]) -> dict[str, str]:
    """The arguments of an estimator as text, but for those whose names are in `without_effect`."""
    apart = {"random_state", *without_effect}
    settings = {name: v for name, v in flat_arguments(model).items() if name not in apart}
    return {
        **fingerprint.of_settings(settings),
        "random_state": _seed_words(model.random_state),
    }


def _seed_words(random_state: Any) -> str:
    """A generator is described by the first number that it would draw, anything else by itself."""
    if isinstance(random_state, np.random.RandomState):
        copy = np.random.RandomState()
        copy.set_state(random_state.get_state())
        return f"a generator that draws {copy.randint(SEEDS)}"
    return repr(random_state)
