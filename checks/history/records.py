"""What is kept of a history: sends, what was polled, where consumers jumped, what was done as one."""

from dataclasses import dataclass, field
from typing import NamedTuple

Value = str | int
"""A record: its value is unique in its partition."""

Pair = tuple[int, Value]
"""An offset and the value that stands there."""


@dataclass(slots=True, eq=False)
class SendRecord:
    """One send: its invocation and what came of it.

    ``outcome`` is ``ok``, ``fail`` or ``info``, None while nothing came back. ``offset`` is
    what the completion said, None if it said nothing. ``invoked`` and ``completed`` are
    positions in the history (-1: not there), ``transaction`` the operation that it was part
    of when that did more than this.
    """

    process: int
    partition: str
    value: Value
    invoked: int
    invoked_us: int
    outcome: str | None = None
    offset: int | None = None
    completed: int = -1
    completed_us: int | None = None
    transaction: "Transaction | None" = None


@dataclass(slots=True, eq=False)
class Transaction:
    """A completed operation of several micro-operations, at least one of them a send.

    ``reads`` are the pairs that it polled, by partition, in the order of reading. ``committed``
    is None until a rule has worked it out.
    """

    process: int
    position: int
    outcome: str
    committed: bool | None = None
    sends: list[SendRecord] = field(default_factory=list)
    reads: dict[str, list[Pair]] = field(default_factory=dict)


class Jump(NamedTuple):
    """Where a process read on at another offset than the next one: from one pair to another.

    ``came`` and ``went`` are the positions of the operations; they are the same when it
    happened within one. ``subscribed`` tells a consumer of a group from one with assigned
    partitions.
    """

    process: int
    last: Pair
    next: Pair
    came: int
    went: int
    subscribed: bool

    @property
    def internal(self) -> bool:
        """Whether it happened within one operation."""
        return self.came == self.went


@dataclass(slots=True, eq=False)
class ProducerSession:
    """The sends of a process to a partition, in the order of their invocations."""

    process: int
    partition: str
    sends: list[SendRecord] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class PartitionHistory:
    """What a history says of one partition.

    ``polled`` has every pair that an ok poll returned, with the position of the last one that
    did; ``polled_in_vain`` those of polls whose operation failed or whose end is unknown.
    ``sends`` are by value, in the order of their invocations. ``jumps`` are made of the fields of `Jump`,
    also where nothing was jumped over: there are many of them where offsets have gaps. ``read_dry`` is the
    position at which the last ok poll was invoked that returned nothing of the partition to a process that
    reads it (-1: none).
    """

    name: str
    sends: dict[Value, list[SendRecord]] = field(default_factory=dict)
    acked: list[SendRecord] = field(default_factory=list)
    failed: list[SendRecord] = field(default_factory=list)
    unsure: list[SendRecord] = field(default_factory=list)
    polled: dict[Pair, int] = field(default_factory=dict)
    polled_in_vain: dict[Pair, int] = field(default_factory=dict)
    jumps: list[tuple[int, Pair, Pair, int, int, bool]] = field(default_factory=list)
    read_dry: int = -1
