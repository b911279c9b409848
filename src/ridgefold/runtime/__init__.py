"""Do what was planned: where it runs, what it took, and what to do when it fails."""

from ridgefold.runtime.meter import metered

__all__ = [
    "metered",
]
