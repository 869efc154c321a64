"""log-divergence: after healing, replicas hold different records at a committed offset."""

from collections.abc import Mapping
from typing import Final

from checks.evidence import Evidence, ReplicaLog
from checks.finding import Finding, RuleResult
from checks.index import Index
from checks.lives import tell_place
from checks.prevention import FLUSHING, by_replication
from checks.promise import FLUSH_INTERVAL, LOG_DIVERGENCE
from checks.resumed_epoch import RESUMED, is_excused
from checks.rule import Rule, rule_result
from checks.story import Story, brokers


def judge(evidence: Evidence, index: Index) -> RuleResult:
    """Compare the final logs up to the smallest high watermark and the smallest LEO."""
    findings: list[Finding] = []
    for partition, found in evidence.replicas.items():
        # A replica outside the ISR has not healed yet; that is why the run cannot tell.
        replicas = {broker: log for broker, log in found.items() if log.in_sync}
        if len(replicas) < 2:
            continue
        end = min(min(log.hw, log.leo) for log in replicas.values())
        values = {broker: index.logs[partition][broker][:end] for broker in replicas}
        epochs = {broker: _epochs(log)[:end] for broker, log in replicas.items()}
        if _all_equal(values) and _all_equal(epochs):
            continue
        findings += [
            _finding(evidence, index, partition, extent, values, epochs) for extent in _runs(values, epochs)
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
    index: Index,
    partition: str,
    extent: tuple[int, int],
    values: Mapping[int, list[str]],
    epochs: Mapping[int, list[int]],
) -> Finding:
    first, last = extent
    resumed = is_excused(evidence, partition, first)
    holders: dict[str, list[int]] = {}
    story = Story(evidence, index.copies(partition), partition)
    for broker in values:
        record = f"{values[broker][first]} (epoch {epochs[broker][first]})"
        holders.setdefault(record, []).append(broker)
    for value, epoch in dict.fromkeys((log[first], epochs[broker][first]) for broker, log in values.items()):
        tell_place(story, first, value, epoch)
    claims = " and ".join(f"{record} on {brokers(having)}" for record, having in holders.items())
    up_to = f", and the logs differ up to offset {last}" if last > first else ""
    conclusions = [f"offset {first} is {claims}{up_to}", *([RESUMED] if resumed else [])]
    return Finding(
        partition=partition,
        offset=first,
        chain=story.chain(*conclusions),
        permitted_by=FLUSH_INTERVAL if resumed else None,
        prevented_by=(FLUSHING,) if resumed else by_replication(evidence, LOG_DIVERGENCE),
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
