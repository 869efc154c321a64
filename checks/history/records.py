"""What is kept of a history: sends, what was polled, where consumers jumped, what was done as one."""

from typing import NamedTuple

Value = str | int
"""A record: its value is unique in its partition."""

Pair = tuple[int, Value]
"""An offset and the value that stands there."""


class Send:
    """One send: its invocation and what came of it.

    ``outcome`` is ``ok``, ``fail`` or ``info``, None while nothing came back. ``offset`` is
    what the completion said, None if it said nothing. ``invoked`` and ``completed`` are
    positions in the history (-1: not there), ``transaction`` the operation that it was part
    of when that did more than this.
    """

    __slots__ = (
        "completed",
        "completed_us",
        "invoked",
        "invoked_us",
        "offset",
        "outcome",
        "partition",
        "process",
        "transaction",
        "value",
    )

    def __init__(self, process: int, partition: str, value: Value, invoked: int, invoked_us: int) -> None:
        self.process = process
        self.partition = partition
        self.value = value
        self.invoked = invoked
        self.invoked_us = invoked_us
        self.outcome: str | None = None
        self.offset: int | None = None
        self.completed = -1
        self.completed_us: int | None = None
        self.transaction: Transaction | None = None


class Transaction:
    """A completed operation of several micro-operations, at least one of them a send.

    ``reads`` are the pairs that it polled, by partition, in the order of reading. ``committed``
    is None until somebody has worked it out.
    """

    __slots__ = ("committed", "outcome", "position", "process", "reads", "sends")

    def __init__(self, process: int, position: int, outcome: str) -> None:
        self.committed: bool | None = None
        self.process = process
        self.position = position
        self.outcome = outcome
        self.sends: list[Send] = []
        self.reads: dict[str, list[Pair]] = {}


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


class Session:
    """The sends of a process to a partition, in the order of their invocations."""

    __slots__ = ("partition", "process", "sends")

    def __init__(self, process: int, partition: str) -> None:
        self.process = process
        self.partition = partition
        self.sends: list[Send] = []


class PartitionHistory:
    """What a history says of one partition.

    ``polled`` has every pair that an ok poll returned, with the position of the last one that
    did; ``polled_in_vain`` those of polls whose operation failed or whose end is unknown.
    ``sends`` are by value, in the order of their invocations. ``jumps`` are made of the fields of `Jump`,
    also where nothing was jumped over: there are many of them where offsets have gaps. ``read_dry`` is the position at which
    the last ok poll was invoked that returned nothing of the partition to a process that reads it
    (-1: none).
    """

    __slots__ = (
        "acked",
        "failed",
        "jumps",
        "name",
        "polled",
        "polled_in_vain",
        "read_dry",
        "sends",
        "unsure",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.sends: dict[Value, list[Send]] = {}
        self.acked: list[Send] = []
        self.failed: list[Send] = []
        self.unsure: list[Send] = []
        self.polled: dict[Pair, int] = {}
        self.polled_in_vain: dict[Pair, int] = {}
        self.jumps: list[tuple[int, Pair, Pair, int, int, bool]] = []
        self.read_dry = -1
