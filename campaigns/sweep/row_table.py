"""The Arrow and Parquet schema of a sweep's files."""

from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from harrow.campaigns.sweep.row import Row

_COUNTS: Final = pa.map_(pa.string(), pa.int32())
_TEXTS: Final = pa.map_(pa.string(), pa.string())
_RULES: Final = pa.list_(pa.struct([("rule", pa.string()), ("status", pa.string()), ("count", pa.int32())]))
_PROBES: Final = pa.list_(pa.struct([("probe", pa.string()), ("count", pa.int32())]))

COLUMNS: Final[dict[str, tuple[pa.DataType, str]]] = {
    "campaign": (
        pa.string(),
        "the campaign's name; it is in the folder's name, `campaign=NAME`, not in the file",
    ),
    "cell": (
        pa.string(),
        "the variant and the settings of `--vary`; campaign, cell and seed are the key of the row",
    ),
    "variant": (pa.string(), "the campaign's variant, or `base`"),
    "settings": (_TEXTS, "the settings of `--vary`, by key"),
    "kafka": (pa.string(), "the release"),
    "plan_digest": (pa.string(), "the digest of the cell's plan"),
    "seed": (pa.int64(), "the seed"),
    "version": (pa.string(), "harrow's version"),
    "verdict": (pa.string(), "`held`, `permitted`, `violated`, `inconclusive` or `error`"),
    "outcome": (
        pa.string(),
        "`as-expected`, `unexpected` (the run failed), `otherwise` (not as expected, but the expectation is for another release) or `undecided`",
    ),
    "rules": (_RULES, "the rules that did not hold, with their status and number of findings"),
    "reasons": (pa.list_(pa.string()), "why the run is inconclusive"),
    "missed": (pa.list_(pa.string()), "the campaign's expectations that were not met"),
    "drawn": (_TEXTS, "the values that the seed drew, where the campaign leaves them open"),
    "faults": (_COUNTS, "the number of faults of each kind that struck"),
    "probes": (_PROBES, "the rare states that the run reached, and how often"),
    "trace_digest": (pa.string(), "the digest of the run's trace; null after an error"),
    "events": (pa.int64(), "events handled"),
    "simulated_ms": (pa.int64(), "virtual time, in milliseconds"),
    "sent": (pa.int64(), "records that applications handed to producers"),
    "acked": (pa.int64(), "how many of these were acked"),
    "failed": (pa.int64(), "how many of these failed, which means that they are in no log"),
    "unknown": (pa.int64(), "how many of these have an outcome that their producers do not know"),
    "outages": (
        pa.int64(),
        "how many times a partition acked nothing for a second or longer although producers sent to it",
    ),
    "outage_us": (
        pa.int64(),
        "the longest such time, in microseconds, even if it is below a second",
    ),
    "ack_p50_us": (pa.int64(), "the median time from a send to its ack, in microseconds"),
    "ack_p99_us": (pa.int64(), "the 99th percentile of this time"),
    "ack_max_us": (pa.int64(), "its maximum"),
    "end_to_end_p50_us": (
        pa.int64(),
        "the median time from a send to the poll that returned its record",
    ),
    "end_to_end_p99_us": (pa.int64(), "the 99th percentile of this time"),
    "end_to_end_max_us": (pa.int64(), "its maximum"),
    "transaction_p50_us": (
        pa.int64(),
        "the median time from a committed transaction's first send to the response to its commit",
    ),
    "transaction_p99_us": (pa.int64(), "the 99th percentile of this time"),
    "transaction_max_us": (pa.int64(), "its maximum"),
    "rebalance_us": (pa.int64(), "the longest rebalance of a group"),
    "unread_us": (
        pa.int64(),
        "the longest time for which no consumer read a partition with unread acked records",
    ),
    "lag": (pa.int64(), "the largest number of acked records that a consumer had yet to read"),
    "wall_us": (
        pa.int64(),
        "how long the run took, in microseconds; the only column that differs between equal sweeps",
    ),
    "signature": (
        pa.string(),
        "a name that failures of the same kind share; null without a failure",
    ),
    "failed_rule": (
        pa.string(),
        "the rule of the signature; `expectation` if one was missed, `error` after an error",
    ),
    "promise": (pa.string(), "the settings because of which that rule applies, such as `acks=all`"),
    "chain": (pa.string(), "the kinds of events that led to the failure, in order"),
    "error": (pa.string(), "the traceback if harrow itself failed"),
}
"""The columns of a sweep's files, in order, with their types and meanings."""

PARTITION: Final = "campaign"

FILE_SCHEMA: Final = pa.schema([(name, kind) for name, (kind, _) in COLUMNS.items() if name != PARTITION])


def as_table(rows: Iterable[Row]) -> pa.Table:
    """Return rows of one campaign as they are in its files."""
    return pa.Table.from_pylist(list(rows), schema=FILE_SCHEMA)
