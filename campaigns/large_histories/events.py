"""Columns of events of a large history, in memory and on disk."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import numpy as np

from harrow.campaigns.large_histories.byte_block import Flags, Ints
from harrow.cluster_model.lazy_dataclass import dataclass, replace

NONE: Final = -1
"""Stands for a partition or an offset that an event does not have."""


@dataclass(frozen=True, slots=True)
class Events:
    """Rows of the table `ROWS`, as columns, in the order of their positions.

    A partition is a number, and its name is among those of the reader. Where a column has nothing,
    it is `NONE`.
    """

    partition: Ints
    value: Ints
    offset: Ints
    position: Ints
    place: Ints
    process: Ints
    kind: Ints
    together: Ints

    def __len__(self) -> int:
        return len(self.position)

    def take(self, which: Ints | Flags) -> "Events":
        return Events(*(column[which] for column in self.columns()))

    def part(self, begin: int, end: int) -> "Events":
        return Events(*(column[begin:end] for column in self.columns()))

    def with_places(self, place: Ints) -> "Events":
        return replace(self, place=place)

    def at(self, position: Ints) -> "Events":
        return replace(self, position=position)

    def of_kind(self, kind: int) -> "Events":
        return replace(self, kind=np.full(len(self), kind, np.int8))

    def in_partitions(self, partition: Ints) -> "Events":
        return replace(self, partition=partition)

    def columns(self) -> tuple[Ints, ...]:
        return (
            *(self.partition, self.value, self.offset, self.position),
            *(self.place, self.process, self.kind, self.together),
        )


def events_of(
    kind: int,
    position: Ints,
    process: Ints,
    *,
    partition: Ints | None = None,
    value: Ints | None = None,
    offset: Ints | None = None,
    place: Ints | None = None,
) -> Events:
    count = len(position)
    nothing, zeros = np.full(count, NONE, np.int64), np.zeros(count, np.int64)
    return Events(
        partition=nothing if partition is None else partition,
        value=zeros if value is None else value,
        offset=nothing if offset is None else offset,
        position=position,
        place=zeros if place is None else place,
        process=process,
        kind=np.full(count, kind, np.int8),
        together=np.zeros(count, np.int8),
    )


def concatenated(parts: Iterable[Events], *, in_order: bool = False) -> Events:
    """Return the events of all parts, in the order of their positions.

    *in_order* says that they are in this order.
    """
    nothing = np.zeros(0, np.int64)
    empty = events_of(0, nothing, nothing)
    columns = (part.columns() for part in (empty, *parts))
    events = Events(*(np.concatenate(column) for column in zip(*columns, strict=True)))
    if in_order:
        return events
    first = int(events.position.min(initial=0))
    from_first = events.position - first
    # Numbers of 16 bits are sorted in linear time.
    narrow = from_first.astype(np.uint16) if from_first.max(initial=0) < 1 << 16 else from_first
    return events.take(np.argsort(narrow, kind="stable"))


class EventStore:
    """Stores events in a file, part by part."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "events"
        self._sizes: list[int] = []

    def fill(self, parts: Iterable[Events]) -> None:
        with self._path.open("wb") as file:
            for events in parts:
                self._sizes.append(len(events))
                for column in events.columns():
                    column.tofile(file)

    def __iter__(self) -> Iterator[Events]:
        with self._path.open("rb") as file:
            for size in self._sizes:
                yield Events(*(np.fromfile(file, kind, size) for kind in _TYPES))


_TYPES: Final = (*[np.int64] * 6, *[np.int8] * 2)
"""The types of the columns of `Events`."""
