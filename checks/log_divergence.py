"""log-divergence: after healing, replicas hold different records at a committed offset."""

from collections.abc import Mapping
from typing import Final

from checks.evidence import Evidence, ReplicaLog
from checks.finding import Finding, RuleResult
from checks.index import Index
from checks.promise import FLUSH_INTERVAL, LOG_DIVERGENCE
from checks.resumed_epoch import RESUMED, is_excused
from checks.rule import Rule, rule_result


def judge(evidence: Evidence, index: Index) -> RuleResult:
    """Compare the final logs up to the smallest high watermark and the smallest LEO."""
    findings: list[Finding] = []
    for partition, replicas in evidence.replicas.items():
        if len(replicas) < 2:
            continue
        end = min(min(log.hw, log.leo) for log in replicas.values())
        values = {broker: log[:end] for broker, log in index.logs[partition].items()}
        epochs = {broker: _epochs(log)[:end] for broker, log in replicas.items()}
        if _all_equal(values) and _all_equal(epochs):
            continue
        findings += [
            _finding(evidence, partition, first, last, values, epochs)
            for first, last in _runs(values, epochs)
        ]
    return rule_result(LOG_DIVERGENCE, evidence, findings)


def _epochs(log: ReplicaLog) -> list[int]:
    """Return the leader epoch of each offset."""
    return [batch.leader_epoch for batch in log.batches for _ in batch.values]


def _all_equal(logs: Mapping[int, list[int]] | Mapping[int, list[str]]) -> bool:
    first, *others = logs.values()
    return all(other == first for other in others)


def _runs(values: Mapping[int, list[str]], epochs: Mapping[int, list[int]]) -> list[tuple[int, int]]:
    """Return the runs of differing offsets, as (first, last)."""
    runs: list[tuple[int, int]] = []
    columns = zip(*values.values(), *epochs.values(), strict=False)
    replicas = len(values)
    for offset, column in enumerate(columns):
        if len(set(column[:replicas])) == 1 and len(set(column[replicas:])) == 1:
            continue
        if runs and runs[-1][1] == offset - 1:
            runs[-1] = (runs[-1][0], offset)
        else:
            runs.append((offset, offset))
    return runs


def _finding(
    evidence: Evidence,
    partition: str,
    first: int,
    last: int,
    values: Mapping[int, list[str]],
    epochs: Mapping[int, list[int]],
) -> Finding:
    resumed = is_excused(evidence, partition, first)
    holders: dict[str, list[str]] = {}
    for broker in values:
        record = f"{values[broker][first]} (epoch {epochs[broker][first]})"
        holders.setdefault(record, []).append(f"broker {broker}")
    claims = " and ".join(f"{record} on {', '.join(brokers)}" for record, brokers in holders.items())
    extent = f"; the logs differ up to offset {last}" if last > first else ""
    if resumed:
        extent += f"; {RESUMED}"
    return Finding(
        partition=partition,
        offset=first,
        because=f"offset {first} is {claims}{extent}",
        permitted_by=FLUSH_INTERVAL if resumed else None,
    )


RULE: Final = Rule(
    name=LOG_DIVERGENCE,
    definition=(
        "After the cluster has healed, two replicas of a partition hold a different value or leader epoch at an "
        "offset below both their high watermarks. One finding is reported for each run of differing offsets."
    ),
    source="KIP-101, KIP-279 (log divergence).",
    judge=judge,
)
