"""The section ``swarm``: what each seed draws."""

from campaigns.literal_texts import duration_range_text, duration_text, rate_text, setting_text
from campaigns.plan import Swarm, SwarmFaults
from campaigns.written.faults import fault_entry, listed
from campaigns.yaml_text import Rows, Word


def swarm_rows(swarm: Swarm | None) -> Rows | None:
    """Return the section, None when nothing is left open."""
    if swarm is None:
        return None
    rows = Rows(
        kafka=list(swarm.releases),
        **{key: range_value(bounds) for key, bounds in _ranges(swarm) if bounds is not None},
        settings=Rows(
            (name, [Word(setting_text(name, value)) for value in values]) for name, values in swarm.settings
        ),
        latency=[Word(duration_range_text(latency)) for latency in swarm.latencies],
        writeback=[Word(_writeback_text(period_us)) for period_us in swarm.writebacks_us],
        duration=None if swarm.duration_us is None else Word(duration_range_text(swarm.duration_us)),
        rate=[Word(rate_text(interval_us)) for interval_us in swarm.intervals_us],
        faults=None if swarm.faults is None else _fault_rows(swarm.faults),
        core=swarm.core or None,
    )
    return Rows((key, value) for key, value in rows.items() if value not in (None, [], {}))


def _ranges(swarm: Swarm) -> tuple[tuple[str, tuple[int, int] | None], ...]:
    return (
        ("brokers", swarm.brokers),
        ("racks", swarm.racks),
        ("partitions", swarm.partitions),
        ("replication_factor", swarm.replication_factor),
        ("producers", swarm.producers),
        ("consumers", swarm.consumers),
    )


def _writeback_text(period_us: int | None) -> str:
    return "never" if period_us is None else duration_text(period_us)


def _fault_rows(faults: SwarmFaults) -> Rows:
    fast_us, slow_us = faults.mean_us
    rate = rate_text(slow_us) if fast_us == slow_us else f"{rate_text(slow_us)}..{rate_text(fast_us)}"
    rows = Rows(in_play=range_value(faults.in_play), rate=Word(rate))
    if faults.together != (1, 1):
        rows["together"] = range_value(faults.together)
    rows["any_of"] = listed(fault_entry(fault) for fault in faults.kinds)
    return rows


def range_value(bounds: tuple[int, int]) -> int | Word:
    """Return a number, or a range of them such as ``3..5``."""
    low, high = bounds
    return low if low == high else Word(f"{low}..{high}")
