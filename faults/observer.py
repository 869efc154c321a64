"""Defines what conditions and runs can observe of a cluster from outside."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from harrow.faults.event_pattern import EventPattern


class ReplicaView(Protocol):
    """An observed replica: its log and, on a leader, the state of its followers."""

    @property
    def role(self) -> str:
        """Return ``leader`` or ``follower``."""

    @property
    def leo(self) -> int:
        """Return the end offset of its log."""

    @property
    def hw(self) -> int:
        """Return its high watermark."""

    @property
    def leader_epoch(self) -> int:
        """Return its latest leader epoch."""

    @property
    def flushed(self) -> int:
        """Return the offset up to which its log has been flushed."""

    @property
    def isr(self) -> tuple[int, ...]:
        """Return the ISR of the partition, as this leader knows it."""

    @property
    def remote(self) -> Mapping[int, int]:
        """Return the LEO of each follower, as this leader knows it."""

    @property
    def epochs(self) -> tuple[tuple[int, int], ...]:
        """Return its leader epoch cache: pairs of leader epoch and start offset."""

    @property
    def log(self) -> tuple[str, ...]:
        """Return the values of the records in its log."""

    @property
    def records(self) -> Iterable[tuple[int, str]]:
        """Return (offset, value) of its records, without deleted and compacted ones, by offset."""


class Observer(Protocol):
    """A cluster, as conditions see it."""

    def replica(self, partition: str, broker: int) -> ReplicaView | None:
        """Return a replica; None while its broker is down or does not host it yet."""

    def partition_state(self, partition: str) -> tuple[int, int, tuple[int, ...]] | None:
        """Return (leader, leader epoch, ISR) from the control plane; None if it has no state."""

    def assignment(self, partition: str) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] | None:
        """Return (replicas, adding replicas, removing replicas) of a partition, if it is known."""

    def controller(self) -> int | None:
        """Return the active controller; None if there is none."""

    def broker_state(self, broker: int) -> str:
        """Return ``up``, ``down`` or ``paused``."""

    def is_registered(self, broker: int) -> bool:
        """Return whether a broker is registered and, in KRaft, not fenced."""

    def is_acked(self, value: str) -> bool:
        """Return whether a send of this value was acknowledged."""

    def is_failed(self, value: str) -> bool:
        """Return whether a send of this value failed, definitely or with an unknown outcome."""

    def is_consumed(self, value: str) -> bool:
        """Return whether a consumer received this value."""

    def first_match(self, pattern: EventPattern) -> int | None:
        """Return the trace position after the first match since the previous step, None if none."""
