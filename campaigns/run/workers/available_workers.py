"""How many processes are worth starting; asked also where none is started in the end."""

import os


def available_workers() -> int:
    """Return how many processes this one may keep busy."""
    allowed = getattr(os, "sched_getaffinity", None)
    return (os.cpu_count() or 1) if allowed is None else len(allowed(0))
