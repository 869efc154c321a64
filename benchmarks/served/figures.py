"""The work of a program in Python: `benchmarks.served_clients` says what it does."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

PARTITIONS: Final = 3
TRANSACTIONS: Final = 20
PER_TRANSACTION: Final = 50
ABORTED_EVERY: Final = 5
COMMITTED: Final = (TRANSACTIONS - TRANSACTIONS // ABORTED_EVERY) * PER_TRANSACTION
PATIENCE_S: Final = 60.0


def write_figures(
    result: Path,
    produce: Callable[[], int],
    consume: Callable[[], dict[str, Any]],
    transactions: Callable[[], dict[str, int]],
) -> None:
    """Do all the work, and write the figures as JSON."""
    began_s = time.monotonic()
    acked = produce()
    produced_s = time.monotonic()
    group = consume()
    consumed_s = time.monotonic()
    figures = {
        "acked": acked,
        **group,
        **transactions(),
        "produced_s": round(produced_s - began_s, 2),
        "consumed_s": round(consumed_s - produced_s, 2),
    }
    result.write_text(json.dumps(figures), encoding="utf-8")
