"""What conditions, and a run itself, can see of a cluster from outside."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from harrow.faults.conditions.event_pattern import EventPattern


class ReplicaView(Protocol):
    """What can be seen of a replica: its log, and as leader what it knows of its followers."""

    @property
    def role(self) -> str:
        """Return ``leader`` or ``follower``."""

    @property
    def leo(self) -> int:
        """Return its log end offset."""

    @property
    def hw(self) -> int:
        """Return its high watermark."""

    @property
    def leader_epoch(self) -> int:
        """Return the leader epoch that it knows."""

    @property
    def flushed(self) -> int:
        """Return the offset up to which its log is on disk."""

    @property
    def isr(self) -> tuple[int, ...]:
        """Return as a leader the ISR that it knows."""

    @property
    def remote(self) -> Mapping[int, int]:
        """Return as a leader the LEO that it knows of each follower."""

    @property
    def epochs(self) -> tuple[tuple[int, int], ...]:
        """Return its leader epoch cache."""

    @property
    def log(self) -> tuple[str, ...]:
        """Return the values in its log."""

    @property
    def records(self) -> Iterable[tuple[int, str]]:
        """Return the offsets and values of what can be read of its log: not what has been deleted, nor what compaction took."""


class Observer(Protocol):
    """What conditions are evaluated against."""

    def replica(self, partition: str, broker: int) -> ReplicaView | None:
        """Return a replica, None while its broker is down or has not heard of it yet."""

    def partition_state(self, partition: str) -> tuple[int, int, tuple[int, ...]] | None:
        """Return (leader, leader epoch, ISR) as the control plane has them."""

    def assignment(self, partition: str) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] | None:
        """Return (replicas, those that are being added, those that are being removed) of a partition."""

    def controller(self) -> int | None:
        """Return the active controller, None while there is none."""

    def broker_state(self, broker: int) -> str:
        """Return ``up``, ``down`` or ``paused``."""

    def is_registered(self, broker: int) -> bool:
        """Return whether a broker is registered, and in KRaft not fenced."""

    def is_acked(self, value: str) -> bool:
        """Return whether a send of this value was reported as a success."""

    def is_failed(self, value: str) -> bool:
        """Return whether a send of this value was reported as a failure, definite or not."""

    def is_consumed(self, value: str) -> bool:
        """Return whether a consumer got this value."""

    def first_match(self, pattern: EventPattern) -> int | None:
        """Return the position in the trace behind the first such event since the step before."""
