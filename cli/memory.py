"""How much memory a command has taken."""

import sys
from typing import Final

_KIB: Final = 1 if sys.platform == "darwin" else 1024
"""Linux counts in KiB, macOS in bytes."""


def peak_memory_mib() -> int | None:
    """Return the most that this process or one of its workers has had at a time; None where no system tells."""
    try:
        import resource
    except ImportError:
        return None
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return max(usage.ru_maxrss for usage in usages) * _KIB // (1024 * 1024)
