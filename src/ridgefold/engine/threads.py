"""Keep the linear algebra library to the threads that were planned."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from threadpoolctl import ThreadpoolController


@functools.lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def threads(count: int) -> AbstractContextManager[Any]:
    """A context in which BLAS uses at most `count` threads."""
    controller = _controller()
    if all(pool["num_threads"] <= count for pool in controller.info()):
        return nullcontext()
    limited: AbstractContextManager[Any] = controller.limit(limits=count)
    return limited
