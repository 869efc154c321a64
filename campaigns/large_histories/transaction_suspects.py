"""Finds the transactions of a history that rules need, with SQL: torn ones, and those on cycles.

A cycle of dependencies (`harrow.checks.history.transaction_cycles`) consists of transactions and of
runs of single sends between their records. Here, a run belongs to the transaction before it, and
records of unknown senders do not interrupt anything, so there are at least the cycles of the rules.
Each cycle has a dependency on a transaction that ended later. So only transactions in the time
between the two ends of such a dependency can be on a cycle, and their graphs are small.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import pyarrow as pa

from harrow.campaigns.large_histories.tables import (
    ACKED,
    BUCKET_BITS,
    EVENTS,
    FAILED,
    KNOWN,
    POLLED,
    POLLED_IN_VAIN,
    SCATTERED,
    STORIES,
    UNSURE,
    WORD_BITS,
    WORDS,
    TableEngine,
    TablesError,
    bits_below,
)
from harrow.checks.history.transaction_cycles import components

CELL_BITS: Final = 10
"""Operations whose positions differ only in the last bits are in one cell."""

_GRAPH_MAX: Final = 4_000_000
"""How many dependencies a graph may have. Each takes about 200 bytes."""

_OPERATIONS: Final = "cycle_operations"
_RANGES: Final = "cycle_ranges"


def operations_of(values: str) -> str:
    """Return the SQL of all sends of the transactions that sent one of some *values*."""
    return f"""(
        select * from {EVENTS} semi join (
            select distinct position from {EVENTS} semi join {values} using (partition, value)
            where together > 0 and kind <= {UNSURE}
        ) as touched using (position) where kind <= {UNSURE})"""


def _unmatched(end: str, other_end: str) -> str:
    return f"""
        select partition, value from {STORIES} semi join (
            select {end} from {STORIES} where together > 0 and {end} is not null group by {end}
            having min({other_end}) <> max({other_end}) or count({other_end}) not in (0, count(*))
        ) as unmatched using ({end}) where together > 0"""


_TORN: Final = f"""
select partition, value from {STORIES} semi join (
    select operation from {STORIES} where together > 0 and acked = 0 and failed = 0 group by operation
    having sum(case when polled > 0 then 1 else 0 end) between 1 and count(*) - 1
) as torn using (operation) where together > 0
"""
"""Of a transaction with an unknown outcome, some records were read and others were not."""

_ENDED: Final = f"""
select position, kind, count(*) as sends, count(distinct partition) as partitions
from {EVENTS} where together > 0 and kind in ({ACKED}, {FAILED}, {UNSURE}) group by position, kind
"""

_EXAMPLES: Final = f"""
select partition, value from {EVENTS} where together > 0 and position in (
    select min(position) from ({_ENDED}) as ended where sends > 1 and kind <> {FAILED}
    union all
    select min(position) from ({_ENDED}) as ended where sends > partitions and kind <> {FAILED}
    union all
    select min(position) from ({_ENDED}) as ended where sends > 1 and kind = {UNSURE}
    union all
    select min(invoked_at) from (
        select invoked_at from {STORIES} where together > 0 and completed = 0
        group by invoked_at having count(*) > 1
    ) as begun
    union all
    select min(position) from {EVENTS} where together > 0 and kind in ({POLLED}, {POLLED_IN_VAIN})
)
"""
"""The first transaction of each kind for which rules ask to know whether a history tries them."""

_STEPS: Final = f"""
select partition, record_offset, record_offset >> {BUCKET_BITS} as bucket, operation, is_read,
    case when is_read = 0 then record_offset end as written_at
from (
    select partition, highest as record_offset, operation, 0 as is_read
    from {STORIES} where together > 0 and lowest = highest and unsure_at = 0
    union all
    select {STORIES}.partition, {SCATTERED}.record_offset, operation, 0 as is_read
    from {SCATTERED} join {STORIES}
        on {STORIES}.partition = {SCATTERED}.partition and {STORIES}.value = {SCATTERED}.value
    where together > 0
    union all
    select partition, record_offset, position as operation, 1 as is_read
    from {EVENTS} where kind in ({POLLED}, {POLLED_IN_VAIN}) and together > 0
) as steps
"""
"""The records of transactions, and the records that transactions polled, by their offset."""

_CARRIED: Final = """
select partition, bucket, max(last_at) over earlier as from_offset,
    max_by(last_operation, last_at) over earlier as from_operation
from (
    select partition, bucket, max(written_at) as last_at, max_by(operation, written_at) as last_operation
    from transaction_steps group by partition, bucket
) as buckets
window earlier as (partition by partition order by bucket rows between unbounded preceding and 1 preceding)
"""
"""The last record of a transaction before each bucket of offsets."""

_DEPENDENCIES: Final = f"""
select coalesce(here.from_operation, carried.from_operation) as from_operation, operation as to_operation,
    here.partition, coalesce(here.from_offset, carried.from_offset) as from_offset,
    record_offset as to_offset, is_read
from (
    select *, max(written_at) over earlier as from_offset, max_by(operation, written_at) over earlier as from_operation
    from transaction_steps
    window earlier as (partition by partition, bucket order by record_offset, is_read, operation
        rows between unbounded preceding and 1 preceding)
) as here join carried on carried.partition = here.partition and carried.bucket = here.bucket
where coalesce(here.from_operation, carried.from_operation) is not null
union all
select {STORIES}.operation, position, {STORIES}.partition, 0 as from_offset, 0 as to_offset, 2 as is_read
from {EVENTS} join {STORIES} on {STORIES}.partition = {EVENTS}.partition and {STORIES}.value = {EVENTS}.value
where kind <= {UNSURE} and {STORIES}.together > 0 and (invoked > 1 or completed > 1)
"""
"""A transaction depends on the one with the last record before its own, or before one that it
polled. Transactions that sent the same value count as one."""

_BOTH_WAYS: Final = """
select from_operation, to_operation from dependencies where from_operation <> to_operation
union all
select to_operation, from_operation from dependencies
where from_operation <> to_operation and from_offset = to_offset and is_read <> 1
"""

_CELLS: Final = f"""
select cell, row_number() over (order by cell) as number from (
    select distinct from_operation >> {CELL_BITS} as cell from both_ways
    union select distinct to_operation >> {CELL_BITS} from both_ways
) as named
"""

_BACKWARD: Final = f"""
select low.number, max(high.number)
from both_ways
join cells as low on low.cell = to_operation >> {CELL_BITS}
join cells as high on high.cell = from_operation >> {CELL_BITS}
where from_operation > to_operation group by low.number order by low.number
"""

_GRAPHS: Final = f"""
select distinct here.region, from_operation, to_operation
from both_ways
join regions as here on here.cell = from_operation >> {CELL_BITS}
join regions as there on there.cell = to_operation >> {CELL_BITS} and there.region = here.region
order by here.region
"""

_AROUND: Final = f"""
select distinct from_operation from dependencies
where from_operation = to_operation and is_read = 1 and from_offset < to_offset
union
select from_operation from (
    select from_operation, here.base + {bits_below("here.bits", "from_offset")} as from_rank,
        there.base + {bits_below("there.bits", "to_offset")} as to_rank
    from (
        select * from dependencies
        where from_operation = to_operation and is_read = 0 and to_offset - 1 > from_offset
    ) as pairs
    join {WORDS} as here on here.partition = pairs.partition and here.word = from_offset >> {WORD_BITS}
    join {WORDS} as there on there.partition = pairs.partition and there.word = to_offset >> {WORD_BITS}
) as ranked where to_rank - from_rank > 1
"""
"""Transactions that are on a cycle with single sends behind one of their records."""

_PRECOMMITTED: Final = f"""
select partition, value from {STORIES} semi join (
    select distinct from_operation as operation from dependencies
    where from_operation = to_operation and is_read = 1 and from_offset = to_offset
) as own using (operation) where together > 0
"""

_OF_CYCLES: Final = f"""
select partition, value from {STORIES} semi join {_OPERATIONS} using (operation) where together > 0
"""

_RANGES_OF_CYCLES: Final = f"""
select pairs.partition, from_offset, to_offset, here.number, there.number
from (
    select distinct partition, from_offset, to_offset from dependencies
    join {_OPERATIONS} as here on here.operation = from_operation
    join {_OPERATIONS} as there on there.operation = to_operation and there.component = here.component
    where from_offset < to_offset
) as pairs
join {WORDS} as here on here.partition = pairs.partition and here.word = from_offset >> {WORD_BITS}
join {WORDS} as there on there.partition = pairs.partition and there.word = to_offset >> {WORD_BITS}
"""

_IN_RANGES: Final = f"""
select known.partition, known.value from {KNOWN} as known
join {WORDS} as words on words.partition = known.partition and words.word = known.word
join {_RANGES} as ranges on ranges.partition = words.partition and ranges.number = words.number
where known.record_offset >= from_offset and known.record_offset <= to_offset
"""
"""All records between those of a cycle, since they decide which records are next to each other."""


def transaction_suspects(tables: TableEngine) -> list[str]:
    """Return the queries of the suspects of transactions.

    A transaction with one of them has to remain as a whole.
    """
    tables.view("transaction_steps", _STEPS)
    tables.define("carried", _CARRIED)
    tables.define("dependencies", _DEPENDENCIES)
    _define_cycles(tables)
    return [
        _unmatched("completed_at", "invoked_at"),
        _unmatched("invoked_at", "completed_at"),
        _TORN,
        _PRECOMMITTED,
        _OF_CYCLES,
        _IN_RANGES,
        _EXAMPLES,
    ]


def _define_cycles(tables: TableEngine) -> None:
    tables.view("both_ways", _BOTH_WAYS)
    tables.define("cells", _CELLS)
    _load(tables, "numbered_regions", {"number": pa.int64(), "region": pa.int64()}, _regions(tables))
    tables.define("regions", "select cell, region from cells join numbered_regions using (number)")
    operations: dict[int, int] = {}
    for _, edges in groupby(tables.stream(_GRAPHS), itemgetter(0)):
        for component in components(_graph(edges)):
            operations.update(dict.fromkeys(component, len(operations)))
    for (operation,) in tables.stream(_AROUND):
        operations.setdefault(operation, len(operations))
    _load(tables, _OPERATIONS, {"operation": pa.int64(), "component": pa.int64()}, operations.items())
    ranges = {
        "partition": pa.string(),
        "number": pa.int64(),
        "from_offset": pa.int64(),
        "to_offset": pa.int64(),
    }
    _load(tables, _RANGES, ranges, _words_of_ranges(tables))


def _regions(tables: TableEngine) -> Iterator[tuple[int, int]]:
    """Yield the number of each cell in which a dependency goes backward, and its region.

    No cycle goes from one region to another.
    """
    region, end = 0, -1
    for low, high in tables.stream(_BACKWARD):
        region += low > end
        yield from ((number, region) for number in range(max(low, end + 1), high + 1))
        end = max(end, high)


def _graph(edges: Iterable[tuple[Any, ...]]) -> dict[int, list[int]]:
    graph: dict[int, list[int]] = {}
    for number, (_, earlier, later) in enumerate(edges):
        if number == _GRAPH_MAX:
            message = f"more than {_GRAPH_MAX} dependencies of transactions are entangled, which is too many"
            raise TablesError(message)
        graph.setdefault(earlier, []).append(later)
    return graph


def _words_of_ranges(tables: TableEngine) -> Iterator[tuple[str, int, int, int]]:
    """Yield the words between the records of cycles, by their numbers."""
    count = 0
    for partition, begin, end, first, last in tables.stream(_RANGES_OF_CYCLES):
        count += last + 1 - first
        if count > _GRAPH_MAX:
            raise TablesError("cycles of transactions span more records than can be judged together")
        for number in range(first, last + 1):
            yield partition, number, begin, end


def _load(
    tables: TableEngine, name: str, fields: dict[str, pa.DataType], rows: Iterable[tuple[Any, ...]]
) -> None:
    columns = list(zip(*rows, strict=True)) or [()] * len(fields)
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, fields.values(), strict=True)]
    tables.load(name, pa.table(arrays, schema=pa.schema(fields)))
