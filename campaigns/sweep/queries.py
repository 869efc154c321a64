"""Queries of a sweep's rows, in the SQL that Spark and DuckDB share.

``runs`` is the table of rows (`row_table.COLUMNS`). One function has two names: a list becomes rows
with `explode` in Spark and with `unnest` in DuckDB.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

from harrow.campaigns.sweep.part_file import RUNS
from harrow.campaigns.sweep.row_table import FILE_SCHEMA, PARTITION
from harrow.campaigns.sweep.sweep_folder import SweepFolder
from harrow.cluster_model.lazy_dataclass import dataclass

Answer = list[tuple[Any, ...]]
"""The rows of a query result."""


@dataclass(frozen=True, slots=True)
class Sql:
    """A query engine: DuckDB here, Spark SQL in `spark_session`."""

    name: str
    explode: str
    rows: Callable[[str], Iterable[Sequence[Any]]]

    def ask(self, query: str) -> Answer:
        return [tuple(row) for row in self.rows(query.format(explode=self.explode))]


def duck_sql(folder: SweepFolder) -> Sql:
    """Return a DuckDB engine for the files of a sweep that count. There must be at least one.

    Arrow streams the files from wherever they are, so the sweep need not fit into memory.
    """
    connection = duckdb.connect()
    system, top = folder.location.in_arrow()
    campaign = pa.field(PARTITION, pa.string())  # Stays text even if it looks like a number or a date.
    dataset = ds.dataset(
        [f"{top}/{part.path}" for part in folder.parts()],
        filesystem=system,
        format="parquet",
        schema=FILE_SCHEMA.append(campaign),
        partitioning=ds.HivePartitioning(pa.schema([campaign]), segment_encoding="none"),
        partition_base_dir=f"{top}/{RUNS}",
    )
    connection.register("runs", dataset)
    return Sql("DuckDB", "unnest", lambda query: connection.execute(query).fetchall())


IMPOSSIBLE: Final = """
    SELECT campaign, cell, seed FROM runs
    WHERE cell IS NULL OR seed IS NULL OR verdict IS NULL OR outcome IS NULL
        OR verdict NOT IN ('held', 'permitted', 'violated', 'inconclusive', 'error')
        OR least(seed, events, simulated_ms, wall_us, sent, acked, failed, unknown, outages, outage_us) < 0
        OR (signature IS NOT NULL AND (failed_rule IS NULL OR promise IS NULL OR chain IS NULL))
    ORDER BY campaign, cell, seed LIMIT 1
"""
"""Finds a row that no sweep could have written."""

VERDICTS: Final = """
    SELECT campaign, cell, verdict, outcome, count(*) AS runs
    FROM runs GROUP BY campaign, cell, verdict, outcome ORDER BY campaign, cell, verdict, outcome
"""

FAILURES: Final = """
    WITH ranked AS (
        SELECT campaign, cell, seed, events, signature, failed_rule, promise, chain,
            row_number() OVER (PARTITION BY campaign, signature ORDER BY seed, cell) AS by_seed,
            row_number() OVER (PARTITION BY campaign, signature ORDER BY events, seed, cell) AS by_length
        FROM runs WHERE signature IS NOT NULL
    )
    SELECT campaign, signature, failed_rule, promise, chain, count(*) AS failures,
        max(CASE WHEN by_seed = 1 THEN cell END) AS earliest_cell,
        max(CASE WHEN by_seed = 1 THEN seed END) AS earliest_seed,
        max(CASE WHEN by_length = 1 THEN cell END) AS shortest_cell,
        max(CASE WHEN by_length = 1 THEN seed END) AS shortest_seed,
        max(CASE WHEN by_length = 1 THEN events END) AS shortest_events
    FROM ranked GROUP BY campaign, signature, failed_rule, promise, chain
    ORDER BY failures DESC, campaign, signature
"""

FAILURE_CELLS: Final = """
    SELECT campaign, signature, cell, count(*) AS failures
    FROM runs WHERE signature IS NOT NULL
    GROUP BY campaign, signature, cell ORDER BY failures DESC, campaign, signature, cell
"""

RULES: Final = """
    SELECT campaign, cell, item.rule AS rule, item.status AS status, count(*) AS runs
    FROM (SELECT campaign, cell, {explode}(rules) AS item
        FROM runs WHERE verdict NOT IN ('error', 'inconclusive')) AS items
    WHERE item.count > 0
    GROUP BY campaign, cell, item.rule, item.status ORDER BY rule, campaign, cell, status
"""

PROBES: Final = """
    SELECT campaign, cell, item.probe AS probe, count(*) AS runs, sum(item.count) AS times
    FROM (SELECT campaign, cell, {explode}(probes) AS item FROM runs) AS items
    GROUP BY campaign, cell, item.probe ORDER BY probe, campaign, cell
"""

DURATIONS: Final = """
    SELECT campaign, count(*) AS runs, sum(events) AS events, sum(simulated_ms) AS simulated_ms,
        sum(wall_us) AS wall_us, max(wall_us) AS longest_us
    FROM runs GROUP BY campaign ORDER BY campaign
"""

STEPS_PER_E: Final = 100
"""The number of steps from one power of e to the next. Each step is about 1% longer."""

WALL_TIMES: Final = f"""
    SELECT campaign, CAST(floor({STEPS_PER_E} * ln(greatest(wall_us, 1))) AS INT) AS step, count(*) AS runs
    FROM runs GROUP BY campaign, step ORDER BY campaign, step
"""  # noqa: S608 - our own number
"""Counts runs by the logarithm of their time, in small steps.

Quantiles are computed from these steps. Exact quantiles would need the times of all runs in memory.
"""

SERVICE: Final = """
    SELECT campaign, cell, count(*) AS runs, sum(sent) AS sent, sum(acked) AS acked, sum(failed) AS failed,
        sum(unknown) AS unknown, sum(outages) AS outages, max(outage_us) AS outage_us, max(ack_p99_us) AS ack_p99_us
    FROM runs WHERE sent > 0 GROUP BY campaign, cell ORDER BY campaign, cell
"""


def _steps(column: str) -> str:
    return f"""
    SELECT campaign, cell, '{column}' AS measure,
        CAST(floor({STEPS_PER_E} * ln(greatest({column}, 1))) AS INT) AS step, count(*) AS runs
    FROM runs WHERE sent > 0 AND {column} IS NOT NULL GROUP BY campaign, cell, step
"""  # noqa: S608 - our own names


OUTAGE: Final = "outage_us"
ACK_P99: Final = "ack_p99_us"
SERVICE_TIMES: Final = f"{_steps(OUTAGE)} UNION ALL {_steps(ACK_P99)} ORDER BY campaign, cell, measure, step"

REASONS: Final = """
    SELECT campaign, item AS reason, count(*) AS runs
    FROM (SELECT campaign, {explode}(reasons) AS item FROM runs WHERE verdict = 'inconclusive') AS items
    GROUP BY campaign, item ORDER BY runs DESC, campaign, reason LIMIT 20
"""
