"""Ends a group of processes when harrow has gone, even if harrow was killed.

It runs in its own process and uses only the standard library. Its standard input ends with harrow,
which kills it first if the group is to stay.
"""

import contextlib
import os
import signal
import sys
import time
from typing import Final

_GRACE_S: Final = 10.0
"""How long the group has to end by itself."""
_INTERVAL_S: Final = 0.1
_IGNORED: Final = tuple(each for each in signal.Signals if each.name in {"SIGINT", "SIGTERM", "SIGHUP"})


def main() -> None:
    """Wait for the end of the input, then end the group in the first argument."""
    group = int(sys.argv[1])
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGTERM)
        os.killpg(group, signal.SIGCONT)
        until_s = time.monotonic() + _GRACE_S
        while time.monotonic() < until_s:
            os.killpg(group, 0)
            time.sleep(_INTERVAL_S)
        os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
