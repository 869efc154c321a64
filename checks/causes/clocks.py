"""What clocks showed that were not right: a broker deletes records, and removes tombstones, by the age that its clock says."""

from harrow.checks.index import Index
from harrow.cluster_model.events import ClockStepped
from harrow.cluster_model.topology import process_name


def lead_us(index: Index, broker: int, number: int) -> int:
    """Return by how much older than it is a broker may take a record for at a line of the trace.

    That is how far its clock is ahead then, of the clock that was furthest behind until then: who wrote the timestamp is not looked up.
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
