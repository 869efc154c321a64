"""Rows as Arrow and Parquet have them: the schema of a sweep's files."""

from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from harrow.campaigns.sweep.row import Row

SCHEMA_VERSION: Final = "harrow.sweep/1"

_COUNTS: Final = pa.map_(pa.string(), pa.int32())
_TEXTS: Final = pa.map_(pa.string(), pa.string())
_RULES: Final = pa.list_(pa.struct([("rule", pa.string()), ("status", pa.string()), ("count", pa.int32())]))
_PROBES: Final = pa.list_(pa.struct([("probe", pa.string()), ("count", pa.int32())]))

COLUMNS: Final[dict[str, tuple[pa.DataType, str]]] = {
    "campaign": (pa.string(), "the campaign's name; the folder `campaign=NAME` has it, not the file"),
    "cell": (
        pa.string(),
        "the variant, then the settings of `--vary`: with campaign and seed the key of the row",
    ),
    "variant": (pa.string(), "the campaign's variant, `base` for none"),
    "settings": (_TEXTS, "what `--vary` set, by key"),
    "kafka": (pa.string(), "the release"),
    "plan_digest": (pa.string(), "the digest of the cell's plan"),
    "seed": (pa.int64(), "the seed"),
    "version": (pa.string(), "harrow's version"),
    "verdict": (pa.string(), "`held`, `permitted`, `violated`, `inconclusive` or `error`"),
    "outcome": (
        pa.string(),
        "`as-expected`, `unexpected` (the run failed), `otherwise` (not as the campaign says of another release) or `undecided`",
    ),
    "rules": (_RULES, "the rules that did not hold: their status and how many findings"),
    "reasons": (pa.list_(pa.string()), "why the run is inconclusive"),
    "missed": (pa.list_(pa.string()), "expectations of the campaign that were not met"),
    "drawn": (_TEXTS, "what the seed drew, where the campaign leaves something open"),
    "faults": (_COUNTS, "how many faults of each kind struck"),
    "probes": (_PROBES, "the rare states that were reached, and how often"),
    "trace_digest": (pa.string(), "the digest of the run; null with an error"),
    "events": (pa.int64(), "events handled"),
    "simulated_ms": (pa.int64(), "virtual time, in milliseconds"),
    "sent": (pa.int64(), "records that producers were handed"),
    "acked": (pa.int64(), "of these, how many were acked"),
    "failed": (pa.int64(), "how many failed: they are in no log"),
    "unknown": (pa.int64(), "of how many producers do not know what became of them"),
    "outages": (pa.int64(), "how often no sender to a partition got an ack for a second or longer"),
    "outage_us": (pa.int64(), "the longest time for which that was so, in microseconds, below a second too"),
    "ack_p50_us": (pa.int64(), "the time to an ack of half of the acked sends, in microseconds"),
    "ack_p99_us": (pa.int64(), "the same of 99 in 100"),
    "ack_max_us": (pa.int64(), "the longest"),
    "end_to_end_p50_us": (
        pa.int64(),
        "the time from a send to the poll that returned its record, of half of all",
    ),
    "end_to_end_p99_us": (pa.int64(), "the same of 99 in 100"),
    "end_to_end_max_us": (pa.int64(), "the longest"),
    "transaction_p50_us": (
        pa.int64(),
        "the time from the first send of a transaction to the answer that it is committed, of half of those that are",
    ),
    "transaction_p99_us": (pa.int64(), "the same of 99 in 100"),
    "transaction_max_us": (pa.int64(), "the longest"),
    "rebalance_us": (pa.int64(), "the longest rebalance of a group"),
    "unread_us": (
        pa.int64(),
        "the longest time for which no consumer read a partition that had unread acked records",
    ),
    "lag": (pa.int64(), "acked records that a consumer had not read yet, at the worst"),
    "wall_us": (
        pa.int64(),
        "how long the run took, in microseconds; the only column that no two sweeps share",
    ),
    "signature": (
        pa.string(),
        "what failures of the same kind have in common, as a name; null without a failure",
    ),
    "failed_rule": (
        pa.string(),
        "the signature's rule; `expectation` when one was missed, `error` with an error",
    ),
    "promise": (pa.string(), "what that rule promised, in settings"),
    "chain": (pa.string(), "the kinds of events that led to the failure, in order"),
    "error": (pa.string(), "the traceback when harrow itself failed"),
}
"""The columns of a sweep's files, in order, with their types and what they mean."""

PARTITION: Final = "campaign"
WORKER: Final = "worker"

ROW_SCHEMA: Final = pa.schema([(name, kind) for name, (kind, _) in COLUMNS.items()])
TRANSPORT_SCHEMA: Final = ROW_SCHEMA.append(pa.field(WORKER, pa.string()))
"""How rows come back from workers: with the worker that ran them."""
FILE_SCHEMA: Final = pa.schema([field for field in ROW_SCHEMA if field.name != PARTITION])


def as_batch(rows: Iterable[Row]) -> pa.RecordBatch:
    """Return rows as they come back from a worker."""
    return pa.RecordBatch.from_pylist(list(rows), schema=TRANSPORT_SCHEMA)
