"""Rows as Arrow and Parquet have them: the schema of a sweep's files."""

from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa

from campaigns.sweep.row import Row
from campaigns.sweep.task import WorkDone

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
    "outcome": (pa.string(), "`as-expected`, `unexpected` (the run failed) or `undecided`"),
    "rules": (_RULES, "the rules that did not hold: their status and how many findings"),
    "reasons": (pa.list_(pa.string()), "why the run is inconclusive"),
    "missed": (pa.list_(pa.string()), "expectations of the campaign that were not met"),
    "drawn": (_TEXTS, "what the seed drew, where the campaign leaves something open"),
    "faults": (_COUNTS, "how many faults of each kind struck"),
    "probes": (_PROBES, "the rare states that were reached, and how often"),
    "trace_digest": (pa.string(), "the digest of the run; null with an error"),
    "events": (pa.int64(), "events handled"),
    "simulated_ms": (pa.int64(), "virtual time, in milliseconds"),
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
    "error": (pa.string(), "the traceback when harrow itself failed, or why the run was given up"),
}
"""The columns of a sweep's files, in order, with their types and what they mean."""

PARTITION: Final = "campaign"
WORKER: Final = "worker"

ROW_SCHEMA: Final = pa.schema([(name, kind) for name, (kind, _) in COLUMNS.items()])
TRANSPORT_SCHEMA: Final = ROW_SCHEMA.append(pa.field(WORKER, pa.string()))
"""How rows come back from workers: with the worker that ran them."""
FILE_SCHEMA: Final = pa.schema([field for field in ROW_SCHEMA if field.name != PARTITION])


def as_batch(done: Iterable[WorkDone]) -> pa.RecordBatch:
    """Return rows as they come back from a worker."""
    return pa.RecordBatch.from_pylist(
        [{**_as_mapping(item.row), WORKER: item.worker} for item in done], schema=TRANSPORT_SCHEMA
    )


def _as_mapping(row: Row) -> dict[str, Any]:
    failure = row.failure
    return {
        "campaign": row.campaign,
        "cell": row.cell,
        "variant": row.variant,
        "settings": row.settings,
        "kafka": row.kafka,
        "plan_digest": row.plan_digest,
        "seed": row.seed,
        "version": row.version,
        "verdict": row.verdict,
        "outcome": row.outcome,
        "rules": [{"rule": r.rule, "status": r.status, "count": r.count} for r in row.rules],
        "reasons": list(row.reasons),
        "missed": list(row.missed),
        "drawn": row.drawn,
        "faults": row.faults,
        "probes": [{"probe": probe, "count": count} for probe, count in row.probes],
        "trace_digest": row.trace_digest,
        "events": row.events,
        "simulated_ms": row.simulated_ms,
        "wall_us": row.wall_us,
        "signature": None if failure is None else failure.name,
        "failed_rule": None if failure is None else failure.rule,
        "promise": None if failure is None else failure.promise,
        "chain": None if failure is None else failure.chain,
        "error": row.error,
    }
