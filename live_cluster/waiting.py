"""Waiting for something that another process or thread does."""

import time
from collections.abc import Callable


def wait_until(holds: Callable[[], bool], timeout_s: float, look_s: float) -> bool:
    """Look every *look_s* until something holds; return whether it did within *timeout_s*."""
    until_s = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > until_s:
            return False
        time.sleep(look_s)
    return True
