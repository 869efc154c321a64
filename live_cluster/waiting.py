"""Waits for a condition that another process or thread makes true."""

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], bool], timeout_s: float, interval_s: float) -> bool:
    """Check a condition every *interval_s*; return whether it became true within *timeout_s*."""
    until_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > until_s:
            return False
        time.sleep(interval_s)
    return True
