"""Computes the error of clocks: a broker ages records and tombstones by its own clock."""

from harrow.checks.index import Index
from harrow.cluster_model.events import ClockStepped
from harrow.cluster_model.topology import process_name


def lead_us(index: Index, broker: int, number: int) -> int:
    """Return how much too old a record may look to a broker at a line of the trace.

    This is how far the broker's clock is ahead of the slowest clock so far. The clock that wrote
    the timestamp is not looked up.
    """
    name = process_name(broker)
    ahead = lowest = 0
    for line in index.events(ClockStepped):
        if line.number >= number:
            break
        lowest = min(lowest, line.event.skew_us)
        if line.event.process == name:
            ahead = line.event.skew_us
    return ahead - lowest
