"""Reduces a history to the operations that rules need: the suspects, and assignments of consumers.

The history is read twice. The first time, it becomes tables (`EventColumns`), in which SQL finds
the suspects. The second time, `KeptOperations` takes the operations on suspects alone.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Any, Final

from harrow.campaigns.large_histories.operation_order import OperationOrder
from harrow.campaigns.large_histories.suspects import READ_STEPS, find_suspects
from harrow.campaigns.large_histories.tables import (
    ASSIGNED,
    ASSIGNMENTS,
    CALLED_SEND,
    EVENTS,
    JUMPS,
    LINES,
    PLACE_BITS,
    POLL_ENDED,
    POLL_INVOKED,
    POLLED,
    POLLED_TOGETHER,
    POLLS,
    PROCESS,
    ROWS,
    SENT_NOTHING,
    STORIES,
    SUSPECTS,
    TableEngine,
    exists,
)
from harrow.checks.history.index import HistoryIndex, OperationColumns
from harrow.checks.history.records import UNKNOWN
from harrow.checks.history.removed_records import RemovedRecords
from harrow.cluster_model.history import POLL, READING_OR_WRITING
from harrow.cluster_model.lazy_dataclass import dataclass, replace

_NOTHING: Final[frozenset[str]] = frozenset()
_OPERATION_BYTES: Final = 1_200


_EVENTS_OF_SUSPECTS: Final = f"from {EVENTS} semi join {SUSPECTS} using (partition, value)"


EVENTS_MAX: Final = 1_000_000
"""How many events of suspects are judged together. Each takes about a kilobyte."""


class ReductionError(Exception):
    """A history cannot be reduced. The message gives the reason."""


class TooManySuspectsError(ReductionError):
    """A history has more suspects than can be judged together."""

    def __init__(self, events: int, events_max: int) -> None:
        super().__init__(
            f"rules need {events} events of this history, and at most {events_max} can be judged together"
        )


@dataclass(frozen=True, slots=True)
class Reduction:
    """What remains of a history: ``places`` has the records of each operation, by its position.

    A place has the partition, and the place in the operation. Operations without places are
    assignments, and the first polls after them. ``passed_over`` counts the lines of
    processes that are not clients.
    """

    places: Mapping[int, Collection[tuple[str, int]]]
    passed_over: int
    names_transactions_sends: bool
    removed: RemovedRecords


def reduce(tables: TableEngine, *, numbered: bool = False, events_max: int = EVENTS_MAX) -> Reduction:
    """Reduce a history whose rows the tables has.

    Raises `TooManySuspectsError` if more than *events_max* events remain, and `ReductionError` if
    operations of several files have the same number.
    """
    if numbered and (repeated := tables.rows(_REPEATED_NUMBERS)):
        [(position,)] = repeated
        raise ReductionError(
            f"operations of several processes have the index {position}: number the operations of all files together"
        )
    find_suspects(tables)
    [(events,)] = tables.rows(f"select count(*) {_EVENTS_OF_SUSPECTS}")
    if events > events_max:
        raise TooManySuspectsError(events, events_max)
    places: dict[int, set[tuple[str, int]]] = {
        position: set()
        for query in (_FIRST_POLLS, f"select position from {ASSIGNMENTS}")
        for (position,) in tables.rows(query)
    }
    for position, partition, place in tables.rows(f"select position, partition, place {_EVENTS_OF_SUSPECTS}"):
        places.setdefault(position, set()).add((partition, place))
    [(sent, acked, polled)] = tables.rows(_REMOVED)
    [(lines, passed_over)] = tables.rows(f"select sum(position), sum(place) from {ROWS} where kind = {LINES}")
    [(processes,)] = tables.rows(f"select count(distinct process) from {ROWS} where kind < {LINES}")
    named = exists(tables, f"{ROWS} where kind = {SENT_NOTHING} or together = {CALLED_SEND}")
    removed = RemovedRecords(
        lines=lines or 0,
        processes=processes,
        sent=sent or 0,
        acked=acked or 0,
        polled=polled or 0,
        ranks=ranks_of(tables),
        read_dry=_read_dry(tables),
        sends_in_turn=exists(tables, SENDS_IN_TURN),
        polls_in_turn=any(exists(tables, _polls_in_turn(reads)) for reads in (READ_STEPS, EVENTS)),
        polls_together=exists(tables, f"{ROWS} where kind = {POLLED_TOGETHER}"),
    )
    return Reduction(places, passed_over or 0, named, removed)


def ranks_of(tables: TableEngine) -> dict[str, dict[int, int]]:
    """Return the ranks of the offsets whose distance a finding may state (`RemovedRecords`)."""
    ranks: dict[str, dict[int, int]] = {}
    for partition, *ends in tables.rows(
        f"select partition, from_offset, from_rank, to_offset, to_rank from {JUMPS}"
    ):
        here, rank, there, other_rank = ends
        ranks.setdefault(partition, {}).update({here: rank, there: other_rank})
    return ranks


_REPEATED_NUMBERS: Final = f"""
select position from {ROWS} where kind < {PROCESS}
group by position having min(process) <> max(process) order by position limit 1
"""

_REMOVED: Final = f"""
select count(*) filter (where invoked + completed > 0), sum(acked), count(*) filter (where polled > 0)
from {STORIES} anti join {SUSPECTS} using (partition, value)
"""

SENDS_IN_TURN: Final = f"""(
    select sender from {STORIES}
    where not irregular and invoked + completed > 0 and (acked > 0 or polled > 0)
    group by sender, partition having min(operation) <> max(operation)
) as in_turn"""
"""The processes that sent several records at known offsets to a partition, in turn. A send whose
offset is unknown or doubtful is a suspect, and so are its neighbours."""


def _polls_in_turn(reads: str) -> str:
    """Return the SQL of the processes that read on in a partition where they had ended before.

    *reads* is a table of polled records. An assignment that does not name a partition makes a
    process lose its position there. So if a poll reads on after another, no such assignment is
    between the two.
    """
    return f"""(
        select process from (
            select process, partition, position, is_read, assignments
                - sum(is_named) over (partition by process, partition order by position) as losses
            from (
                select *, sum(is_assignment) over (partition by process order by position) as assignments
                from (
                    select distinct process, partition, position, 1 as is_read, 0 as is_named, 0 as is_assignment
                    from {reads} where kind = {POLLED}
                    union all
                    select process, partition, position, 0, 1, 0 from {ASSIGNED}
                    union all
                    select process, null, position, 0, 0, 1 from {ASSIGNMENTS}
                ) as steps
            ) as assigned
        ) as named
        where is_read = 1 group by process, partition, losses having min(position) <> max(position)
    ) as in_turn"""


_FIRST_POLLS: Final = f"""
select position from (
    select position, is_poll, lag(is_poll) over (partition by process order by position) as earlier
    from (
        select position, process, 0 as is_poll from {ASSIGNMENTS}
        union all
        select position, process, 1 as is_poll
        from {POLLS} semi join {ASSIGNMENTS} using (process) where kind = {POLL_ENDED}
    ) as steps
) as pairs where is_poll = 1 and earlier = 0
"""
"""The first poll after an assignment names the assigned partitions."""

_UNREAD: Final = f"""
select distinct partition from {STORIES} semi join {SUSPECTS} using (partition, value)
where polled = 0 and (acked > 0 or (together > 0 and failed = 0))
"""
"""The partitions for which it matters whether a poll found them empty."""

_OK_POLLS: Final = f"""
select process, position, assignment,
    row_number() over (partition by process, assignment order by position desc) - 1 as polls_later
from (
    select process, position, is_poll,
        max(case when is_poll = 0 then position else {UNKNOWN} end)
            over (partition by process order by position rows unbounded preceding) as assignment
    from (
        select process, position, 1 as is_poll from {POLLS} where kind = {POLL_ENDED}
        union all
        select process, position, 0 as is_poll from {ASSIGNMENTS}
    ) as steps
) as assigned where is_poll = 1
"""
"""The ok polls, with the position of the last assignment, and the number of later polls before the
next assignment."""

_DRY_AFTER_READ: Final = f"""
select process, assignment, partition, count(*) as reads,
    min(case when polls_later <> reads_later then reads_later end) as dry
from (
    select *, row_number() over (partition by process, assignment, partition order by polls_later) - 1
        as reads_later
    from (
        select distinct process, partition, position
        from {EVENTS} semi join unread using (partition) where kind = {POLLED}
    ) as reads join ok_polls using (process, position)
) as numbered group by process, assignment, partition
"""
"""For each partition that a process read, the last poll that returned nothing of it: the number of
later polls. Polls and reads are counted from the last one; where the counts differ, a poll returned
nothing."""

_DRY: Final = f"""
select partition, process, assignment, dry
from dry_after_read anti join (select process, position as assignment from {ASSIGNED}) as named
    using (process, assignment)
where dry is not null
union all
select named.partition, named.process, named.position as assignment,
    coalesce(dry_after_read.dry, dry_after_read.reads, 0) as dry
from (select * from {ASSIGNED} semi join unread using (partition)) as named left join dry_after_read
    on dry_after_read.process = named.process and dry_after_read.assignment = named.position
    and dry_after_read.partition = named.partition
"""
"""A process that has an assignment reads the partitions of the assignment, even before its first
record. Any other process reads the partitions that it has read."""


def _read_dry(tables: TableEngine) -> dict[str, tuple[int, int]]:
    """Return the positions at which the last poll that found a partition empty began and ended."""
    tables.define("unread", _UNREAD)
    if not exists(tables, "unread"):
        return {}
    tables.define("ok_polls", _OK_POLLS)
    tables.define("dry_after_read", _DRY_AFTER_READ)
    last = tables.rows(
        f"""
        select partition, position, process from (
            select dry.partition, position, process,
                row_number() over (partition by dry.partition order by position desc) as number
            from ({_DRY}) as dry join ok_polls using (process, assignment)
            where polls_later = dry
        ) as found where number = 1
        """
    )
    invoked = dict(
        tables.rows(
            f"""
            select ended.position, max(begun.position)
            from (values {", ".join(f"({position}, {process})" for _, position, process in last)})
                as ended(position, process)
            join {POLLS} as begun on begun.process = ended.process and begun.position < ended.position
            where begun.kind = {POLL_INVOKED} group by ended.position
            """
        )
        if last
        else ()
    )
    return {partition: (invoked.get(position, UNKNOWN), position) for partition, position, _ in last}


KeptOperation = tuple[int, OperationColumns]
"""The position of an operation, and the operation alone in its columns."""


class KeptOperations:
    """Takes the operations of a history, or of a part of it, and keeps those of a `Reduction`.

    It is an `OperationSink`. *places* are those of the reduction.
    """

    def __init__(self, places: Mapping[int, Collection[tuple[str, int]]], order: OperationOrder) -> None:
        self.kept: list[KeptOperation] = []
        self._places = places
        self._order = order

    def next_number(self) -> int:
        return self._order.next_number()

    def take_any_offset(self) -> None:
        """Ignore an offset of more than 64 bits, which the tables have refused."""

    def memory_bytes(self) -> int:
        return len(self.kept) * _OPERATION_BYTES

    def pass_over(self, time_us: int, number: int) -> None:
        self._order.positions([number])

    def add(self, operations: OperationColumns) -> None:
        """Add the next operations."""
        processes, types, fs, values, times_us, numbers, rebalances = operations
        positions = self._order.positions(numbers)
        wanted = [at for at, position in enumerate(positions) if position in self._places]
        for at in wanted:
            position, value = positions[at], values[at]
            if fs[at] in READING_OR_WRITING:
                value = _kept(value, self._places[position])
            rebalanced = rebalances.get(at, _NOTHING)
            kept = [processes[at]], [types[at]], [fs[at]], [value], [times_us[at]], [numbers[at]]
            self.kept.append((position, OperationColumns(*kept, {0: rebalanced})))

    def finish(self) -> None:
        """End a file of the history."""


def reduced_history(reduction: Reduction, kept: Iterable[KeptOperation]) -> HistoryIndex:
    """Return the history that consists of the *kept* operations.

    Raises `ReductionError` if they are not those of the reduction.
    """
    in_order = sorted(kept, key=itemgetter(0))
    positions = [position for position, _ in in_order]
    for position, following in pairwise(positions):
        if position == following:
            raise ReductionError(
                f"two operations have the index {position}: in a history of several files, number the operations of all "
                "files together"
            )
    if len(positions) != len(reduction.places):
        raise ReductionError("the history changed while it was read")
    # Positions of polls become those of the reduced history.
    read_dry = {
        name: (bisect_left(positions, begun), bisect_left(positions, ended))
        for name, (begun, ended) in reduction.removed.read_dry.items()
    }
    history = HistoryIndex(removed=replace(reduction.removed, read_dry=read_dry))
    history.passed_over = reduction.passed_over
    history.names_transactions_sends = reduction.names_transactions_sends
    for _, operation in in_order:
        history.add(operation)
    history.finish()
    return history


def _kept(value: Sequence[Any], places: Collection[tuple[str, int]]) -> list[Any]:
    """Return the micro-operations with the kept records alone."""
    kept: list[Any] = []
    for number, micro in enumerate(value):
        first = number << PLACE_BITS
        if len(micro) == 1:
            kept.append(micro)
            continue
        if micro[0] != POLL:
            if (micro[1], first) in places:
                kept.append(micro)
            continue
        records = {
            partition: [pair for at, pair in enumerate(pairs, first) if (partition, at) in places]
            for partition, pairs in micro[1].items()
        }
        kept.append([POLL, {partition: pairs for partition, pairs in records.items() if pairs}])
    return kept
