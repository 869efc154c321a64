"""Rare states that a run counts when it reaches them, from its trace."""

from collections.abc import Callable, Sequence
from typing import Final

from cluster_model.trace import TraceEvent

PROBES: Final[dict[str, str]] = {
    "controller-changed": "A broker became controller after virtual time 0.",
    "stale-controller-refused": "A broker refused a control request of a former controller.",
    "stale-broker-epoch-refused": "A broker refused a control request meant for its earlier life.",
    "session-expired": "ZooKeeper ended a broker's session.",
    "clean-election": "A member of the ISR was elected leader of a partition that had lost its leader.",
    "unclean-election": "A replica outside the ISR was elected leader.",
    "isr-shrank": "A leader took a follower out of the ISR.",
    "isr-shrank-to-one": "An ISR was reduced to the leader alone.",
    "isr-expanded": "A follower came back into an ISR.",
    "truncated": "A follower cut its log back.",
    "truncated-below-hw": "A follower cut its log below a high watermark that its partition had reached.",
    "unflushed-lost": "Power loss took records that were not flushed.",
    "duplicate-batch-suppressed": "A leader recognised a batch that it had already.",
    "sequence-refused": "A leader refused a batch for its sequence number.",
    "not-enough-replicas": "A leader refused a batch because its ISR was below min.insync.replicas.",
    "not-enough-replicas-after-append": "The ISR fell below min.insync.replicas after the append.",
    "zombie-leader-accepted-write": "A broker appended in a leader epoch that had been succeeded.",
    "fenced-by-leader-epoch": "A fetch was refused for its leader epoch.",
    "produce-timed-out": "A leader gave up waiting for its followers.",
    "fetch-out-of-range": "A fetch asked for an offset behind the end of the log.",
}

_Counter = Callable[["_Counts", TraceEvent], None]


class _Counts:
    """The counts so far, and the little that has to be remembered between events."""

    __slots__ = ("committed", "counts", "elected_epoch")

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.committed: dict[str, int] = {}
        self.elected_epoch: dict[str, int] = {}

    def hit(self, probe: str) -> None:
        self.counts[probe] = self.counts.get(probe, 0) + 1


def count_probes(trace: Sequence[TraceEvent]) -> dict[str, int]:
    """Return how often each probe was hit; probes that were not are left out."""
    counts = _Counts()
    counters = _COUNTERS
    for event in trace:
        counter = counters.get(event[1])
        if counter is not None:
            counter(counts, event)
    return {probe: counts.counts[probe] for probe in PROBES if probe in counts.counts}


def _controller_elected(counts: _Counts, event: TraceEvent) -> None:
    if event[0] > 0:
        counts.hit("controller-changed")


def _rejected(counts: _Counts, event: TraceEvent) -> None:
    probe = _PROBE_BY_ERROR.get(event[6])
    if probe is not None:
        counts.hit(probe)


_PROBE_BY_ERROR: Final = {
    "STALE_CONTROLLER_EPOCH": "stale-controller-refused",
    "STALE_BROKER_EPOCH": "stale-broker-epoch-refused",
    "OUT_OF_ORDER_SEQUENCE_NUMBER": "sequence-refused",
    "UNKNOWN_PRODUCER_ID": "sequence-refused",
    "NOT_ENOUGH_REPLICAS": "not-enough-replicas",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": "not-enough-replicas-after-append",
    "FENCED_LEADER_EPOCH": "fenced-by-leader-epoch",
    "REQUEST_TIMED_OUT": "produce-timed-out",
    "OFFSET_OUT_OF_RANGE": "fetch-out-of-range",
}


def _session_expired(counts: _Counts, _: TraceEvent) -> None:
    counts.hit("session-expired")


def _election(counts: _Counts, event: TraceEvent) -> None:
    _, _, _, partition, _, epoch, _, unclean, reason = event
    counts.elected_epoch[partition] = max(epoch, counts.elected_epoch.get(partition, 0))
    if unclean:
        counts.hit("unclean-election")
    elif reason not in ("topic creation", "preferred leader"):
        counts.hit("clean-election")


def _isr(counts: _Counts, event: TraceEvent) -> None:
    isr, change = event[5], event[6]
    counts.hit("isr-shrank" if change == "shrink" else "isr-expanded")
    if len(isr) == 1:
        counts.hit("isr-shrank-to-one")


def _isr_reduced(counts: _Counts, event: TraceEvent) -> None:
    if len(event[6]) == 1:
        counts.hit("isr-shrank-to-one")


def _append(counts: _Counts, event: TraceEvent) -> None:
    if event[5] < counts.elected_epoch.get(event[3], 0):
        counts.hit("zombie-leader-accepted-write")


def _hw(counts: _Counts, event: TraceEvent) -> None:
    partition, hw = event[3], event[4]
    if hw > counts.committed.get(partition, 0):
        counts.committed[partition] = hw


def _truncate(counts: _Counts, event: TraceEvent) -> None:
    counts.hit("truncated")
    if event[5] < counts.committed.get(event[3], 0):
        counts.hit("truncated-below-hw")


def _unflushed_lost(counts: _Counts, _: TraceEvent) -> None:
    counts.hit("unflushed-lost")


def _duplicate_batch(counts: _Counts, _: TraceEvent) -> None:
    counts.hit("duplicate-batch-suppressed")


_COUNTERS: Final[dict[str, _Counter]] = {
    "controller_elected": _controller_elected,
    "rejected": _rejected,
    "session_expired": _session_expired,
    "election": _election,
    "isr": _isr,
    "isr_reduced": _isr_reduced,
    "append": _append,
    "hw": _hw,
    "truncate": _truncate,
    "unflushed_lost": _unflushed_lost,
    "duplicate_batch": _duplicate_batch,
}
