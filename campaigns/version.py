"""The version of harrow, in the one place that everything else reads it from."""

import re
from typing import Final

VERSION: Final = "0.2.0"

_RECORDS_SINCE: Final = (0, 2)
"""The oldest version (major, minor) whose records of runs this one reads: until then traces had other events,
and findings had sentences where they have data now."""


def reads_records_of(version: str) -> bool:
    """Return whether this version reads what *version* recorded of runs; of one that is not known, it tries."""
    numbers = _numbers(version)
    return numbers is None or _RECORDS_SINCE <= numbers <= (_numbers(VERSION) or numbers)


def _numbers(version: str) -> tuple[int, int] | None:
    found = re.match(r"(\d+)\.(\d+)", version)
    return None if found is None else (int(found[1]), int(found[2]))
