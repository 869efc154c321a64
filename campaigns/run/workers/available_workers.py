"""Counts the processors that workers can use, in a module of its own that imports little."""

import os


def available_workers() -> int:
    """Return how many processes can run at once."""
    allowed = getattr(os, "sched_getaffinity", None)
    return (os.cpu_count() or 1) if allowed is None else len(allowed(0))
