"""Rules about transactions and commits.

The tests change the evidence of a sound run. Exactly one rule notices each change.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.record.phrases import because
from harrow.campaigns.run.runner import run_plan
from harrow.checks.causes.transactions import coordinator_partition, lost_marker
from harrow.checks.evidence import Evidence
from harrow.checks.finding import VIOLATED, RuleResult
from harrow.checks.index import Index
from harrow.checks.rules.catalogue import RULES
from harrow.cluster_model.coordinators.transactions.transaction_metadata import PREPARE_COMMIT
from harrow.cluster_model.events import (
    BecameLeader,
    GroupOffsetFound,
    OffsetsCommitted,
    OffsetsExpired,
    TransactionBegun,
    TransactionEnding,
    TransactionMarkerWritten,
    TransactionOpened,
    TransactionStateChanged,
    UnflushedLost,
)
from harrow.cluster_model.log.record_batch import ABORT, COMMIT, RecordBatch
from harrow.cluster_model.trace import TraceEvent
from tests.scenarios.library_plans import library_plans
from tests.scenarios.transactional_plan import NOTHING, ORDERS, RESTART, orders

TRANSACTION_RULES = (
    *("torn-transaction", "unasked-commit", "fenced-write", "read-above-lso"),
    *("hanging-transaction", "lso-stands-still", "offset-regression"),
)

GROUP = """
settings: {acks: all, group.id: g, auto.offset.reset: earliest, offsets.topic.num.partitions: 1}
kafka: "3.9"
cluster: {brokers: 3, topics: [{name: t, partitions: 2, replication_factor: 3}]}
workload:
  duration: 20s
  producers: [{rate: 10/s, stop: 15s}]
  consumers: [{name: a, commit: after}, {name: b, commit: after, start: 8s}]
"""

HANGING = """
settings: {acks: all, group.id: g, auto.offset.reset: earliest, isolation.level: read_committed, offsets.topic.num.partitions: 1}
kafka: "3.9"
behaviours: {markers_written_to_all_partitions: false}
limits: {recovery: 30s}
cluster:
  brokers: 3
  topics: [{name: t, partitions: 2, replication_factor: 3}, {name: u, partitions: 1, replication_factor: 3}]
workload:
  producers: [{name: app, settings: {transactional.id: app}}]
  applications: [{name: one, from: t, to: u}]
script:
  - at: 1s
    do: [begin_transaction, {send: {value: a, partition: t-0}}, {send: {value: b, partition: t-1}}, commit_transaction]
  - when: {acked: [a, b]}
"""

LATE = """
settings: {acks: all, group.id: g, auto.offset.reset: earliest, isolation.level: read_committed, offsets.topic.num.partitions: 1}
kafka: "3.9"
limits: {recovery: 5s}
cluster:
  brokers: 3
  topics: [{name: t, partitions: 1, replication_factor: 3}, {name: u, partitions: 1, replication_factor: 3}]
workload:
  producers:
    - {name: app, settings: {transactional.id: app, transaction.timeout.ms: 60s}}
    - {name: plain}
  applications: [{name: one, from: t, to: u, work: 2s}]
script:
  - at: 1s
    do: [{begin_transaction: {producer: app}}, {send: {value: a, producer: app, partition: t-0}}]
  - when: {event: {acknowledged: {values: a}}}
    do: {send: {value: b, producer: plain, partition: t-0}}
  - when: {acked: b}
"""
"""The transaction times out only after the run has stopped waiting for its consumers."""


@cache
def sound() -> Evidence:
    return run_plan(orders(fault=RESTART), 1).evidence


@cache
def sound_group() -> Evidence:
    (plan,) = load_text(GROUP, "group.yaml").plans
    return run_plan(plan, 0).evidence


def rules_with_findings(evidence: Evidence) -> dict[str, RuleResult]:
    """Return the rules with findings, except interleaved writes, which are always permitted."""
    index = Index(evidence)
    results = {name: rule.judge(index) for name, rule in RULES.items()}
    return {
        name: result
        for name, result in results.items()
        if result.findings and result.findings[0].permitted_by != "write interleaving"
    }


def with_batches(
    evidence: Evidence, partition: str, change: Callable[[tuple[RecordBatch, ...]], tuple[RecordBatch, ...]]
) -> Evidence:
    """Return evidence with changed logs on all replicas of a partition."""
    logs = {
        broker: replace(log, batches=change(log.batches))
        for broker, log in evidence.replicas[partition].items()
    }
    return replace(evidence, replicas={**evidence.replicas, partition: logs})


def with_trace(evidence: Evidence, trace: list[TraceEvent]) -> Evidence:
    return replace(evidence, trace=trace)


def changed_batch(batch: RecordBatch, **changes: Any) -> RecordBatch:
    """Return a batch with other fields."""
    fields = (
        *("values", "producer_id", "producer_epoch", "base_sequence", "base_offset", "leader_epoch"),
        *("size_bytes", "is_transactional", "control_type", "max_timestamp_us", "keyed"),
    )
    return RecordBatch(**{name: changes.get(name, getattr(batch, name)) for name in fields})


def test_a_sound_run_has_no_findings() -> None:
    assert rules_with_findings(sound()) == {}
    assert rules_with_findings(sound_group()) == {}


# Torn transactions


def with_marker(kind: str, partition: str = "t-0") -> Evidence:
    """Return evidence in which the first commit marker of a partition has another type."""

    def change(batches: tuple[RecordBatch, ...]) -> tuple[RecordBatch, ...]:
        place = next(place for place, batch in enumerate(batches) if batch.control_type == COMMIT)
        return (*batches[:place], changed_batch(batches[place], control_type=kind), *batches[place + 1 :])

    return with_batches(sound(), partition, change)


def test_a_transaction_that_is_aborted_in_one_of_its_partitions_is_torn() -> None:
    results = rules_with_findings(with_marker(ABORT))
    assert list(results) == ["torn-transaction"]
    (finding, *_) = results["torn-transaction"].findings
    assert results["torn-transaction"].status == VIOLATED
    assert finding.partition == "t-0"
    assert "is committed and" in because(finding)
    assert "although both belong to one transaction" in because(finding)


def test_a_transaction_may_be_torn_if_its_unflushed_decision_is_lost() -> None:
    evidence = with_marker(ABORT)
    at_us = evidence.trace[-1][0]
    lost = [
        (at_us, UnflushedLost.name, 0, name, 1, 2)
        for name in evidence.partitions
        if name.startswith("__transaction_state")
    ]
    results = rules_with_findings(with_trace(evidence, [*evidence.trace, *lost]))
    assert results["torn-transaction"].status == "permitted"
    assert {finding.permitted_by for finding in results["torn-transaction"].findings} == {
        "log.flush.interval.messages"
    }


# Commits without a request


def test_a_commit_before_its_request_is_noticed_by_only_one_rule() -> None:
    plan = library_plans()["delayed-end-txn[commits]"]
    result = run_plan(plan, 0)
    assert [name for name, rule in result.verdict.rules.items() if rule.status == VIOLATED] == [
        "unasked-commit"
    ]
    (finding,) = result.verdict.rules["unasked-commit"].findings
    assert because(finding).endswith(
        "the transaction of app was committed while app had not requested its end"
    )
    assert finding.prevented_by[0].name == "KIP-890"


def test_a_commit_instead_of_a_requested_abort_is_noticed() -> None:
    endings = [
        (*event[:3], False) if event[1] == TransactionEnding.name else event for event in sound().trace
    ]
    results = rules_with_findings(with_trace(sound(), endings))
    assert list(results) == ["unasked-commit"]
    assert "had requested an abort" in because(results["unasked-commit"].findings[0])


@pytest.mark.parametrize("is_succeeded", [False, True])
def test_a_late_commit_of_a_former_coordinator_was_requested_in_time(is_succeeded: bool) -> None:
    trace = list(sound().trace)
    place, prepared = next(
        (place, event)
        for place, event in enumerate(trace)
        if event[1] == TransactionStateChanged.name and event[6] == PREPARE_COMMIT
    )
    begun = next(at for at in range(place, len(trace)) if trace[at][1] == TransactionOpened.name)
    at_us, coordinator = trace[begun][0], prepared[2]
    late = (at_us, *prepared[1:5], trace[begun][4], *prepared[6:])
    succeeded = (
        *(at_us, BecameLeader.name, (coordinator + 1) % 3),
        *(coordinator_partition(Index(sound()), prepared[3]), 99, 0, (0, 1, 2)),
    )
    added = [succeeded, late] if is_succeeded else [late]
    results = rules_with_findings(with_trace(sound(), [*trace[: begun + 1], *added, *trace[begun + 1 :]]))
    assert ("unasked-commit" in results) != is_succeeded


# Fenced producers


def epochs(evidence: Evidence) -> list[int]:
    return sorted({event[5] for event in evidence.trace if event[1] == TransactionStateChanged.name})


def test_a_committed_record_of_an_older_producer_epoch_is_a_fenced_write() -> None:
    first, *_, last = epochs(sound())
    assert first < last, "no producer was fenced in this run"

    def change(batches: tuple[RecordBatch, ...]) -> tuple[RecordBatch, ...]:
        return tuple(
            changed_batch(batch, producer_epoch=first)
            if batch.is_transactional and batch.producer_epoch == last
            else batch
            for batch in batches
        )

    results = rules_with_findings(with_batches(sound(), "t-0", change))
    assert list(results) == ["fenced-write"]
    assert f"after a coordinator had written epoch {first + 1}" in because(
        results["fenced-write"].findings[0]
    )


def test_an_aborted_record_of_a_fenced_producer_is_no_fenced_write() -> None:
    first, *_, last = epochs(sound())

    def change(batches: tuple[RecordBatch, ...]) -> tuple[RecordBatch, ...]:
        return tuple(
            changed_batch(
                batch, producer_epoch=first, control_type=ABORT if batch.control_type == COMMIT else None
            )
            if batch.producer_epoch == last
            else batch
            for batch in batches
        )

    evidence = sound()
    for partition in evidence.replicas:
        evidence = with_batches(evidence, partition, change)
    assert "fenced-write" not in rules_with_findings(evidence)


# The last stable offset


def test_serving_a_record_before_the_end_of_its_transaction_is_noticed_even_if_it_commits_later() -> None:
    text = ORDERS.format(release="4.3", fault=NOTHING, uncommitted="").replace(", abort_every: 3", "")
    (plan,) = load_text(f"{text}behaviours: {{lso_below_open_transactions: false}}\n", "orders.yaml").plans
    results = rules_with_findings(run_plan(plan, 0).evidence)
    assert list(results) == ["read-above-lso"]
    sentences = because(results["read-above-lso"].findings[0])
    assert "served committed up to offset" in sentences
    assert "of an open transaction" in sentences


def test_a_transaction_without_a_marker_hangs() -> None:
    begun = next(event for event in sound().trace if event[1] == TransactionBegun.name and event[3] == "u-0")
    leader = Index(sound()).last_leader("u-0")
    log = sound().replicas["u-0"][leader]
    late = (sound().trace[-1][0], TransactionBegun.name, leader, "u-0", begun[4], begun[5], log.leo)
    results = rules_with_findings(with_trace(sound(), [*sound().trace, late]))
    assert list(results) == ["hanging-transaction"]
    sentences = because(results["hanging-transaction"].findings[0])
    assert sentences.endswith("and no coordinator knows that it is open there")


def test_an_unfinished_run_reports_no_hanging_transactions() -> None:
    trace = [event for event in sound().trace if event[1] != TransactionMarkerWritten.name]
    unfinished = replace(with_trace(sound(), trace), unfinished=("t-0 had no leader at the end",))
    assert "hanging-transaction" not in rules_with_findings(unfinished)


def test_an_application_that_a_hanging_transaction_stops_has_read_everything_readable() -> None:
    (plan,) = load_text(HANGING, "hanging.yaml").plans
    result = run_plan(plan, 0)
    assert result.evidence.held_up == {"t-1": 0}
    assert result.evidence.unfinished == ()
    held_back = ("t-1", "__consumer_offsets-0")
    assert result.probes["lso-held-back"] == len(held_back)


def test_an_application_that_a_late_transaction_stops_has_not_read_everything() -> None:
    (plan,) = load_text(LATE, "late.yaml").plans
    evidence = run_plan(plan, 0).evidence
    assert evidence.held_up == {}
    assert evidence.unfinished == ("group g had not read t-0 to its end",)


def test_a_stuck_read_committed_consumer_is_noticed() -> None:
    leo = next(iter(sound().replicas["t-0"].values())).leo
    results = rules_with_findings(replace(sound(), held_up={"t-0": leo - 1}))
    assert list(results) == ["lso-stands-still"]
    assert "no transaction in the log is open there" in because(results["lso-stands-still"].findings[0])


# Commits of groups


def commits(evidence: Evidence) -> list[TraceEvent]:
    return [event for event in evidence.trace if event[1] == OffsetsCommitted.name]


def test_an_offset_commit_of_an_old_generation_is_noticed() -> None:
    first, *_, last = commits(sound_group())
    late = (last[0], OffsetsCommitted.name, last[2], "g", first[4], first[5], last[6], first[7])
    place = sound_group().trace.index(last) + 1
    trace = [*sound_group().trace[:place], late, *sound_group().trace[place:]]
    results = rules_with_findings(with_trace(sound_group(), trace))
    assert list(results) == ["offset-regression"]
    sentences = because(results["offset-regression"].findings[0])
    assert f"a commit of generation {first[5]} was accepted after one of generation {last[5]}" in sentences


@pytest.mark.parametrize(("expires", "permitted_by"), [(False, None), (True, "offsets.retention.minutes")])
def test_a_lost_offset_commit_is_noticed(expires: bool, permitted_by: str | None) -> None:
    trace = list(sound_group().trace)
    offsets_found = [event for event in trace if event[1] == GroupOffsetFound.name and event[4] > 0]
    place = trace.index(offsets_found[0])
    trace[place] = (*offsets_found[0][:4], -1)
    if expires:
        first = offsets_found[0]
        expired = (first[0], OffsetsExpired.name, 0, "g", ((first[3], first[4]),))
        trace.insert(place, expired)
    results = rules_with_findings(with_trace(sound_group(), trace))
    assert list(results) == ["offset-regression"]
    assert [finding.permitted_by for finding in results["offset-regression"].findings] == [permitted_by]


def test_asynchronous_commits_of_one_member_may_be_reordered() -> None:
    member = next(event[4] for event in commits(sound_group()) if event[5] == 1)
    own = [event for event in commits(sound_group()) if event[4:6] == (member, 1)]
    first, second = own[0], own[1]
    assert first[7] != second[7]
    late = (second[0], *first[1:])
    place = sound_group().trace.index(second) + 1
    trace = [*sound_group().trace[:place], late, *sound_group().trace[place:]]
    results = rules_with_findings(with_trace(sound_group(), trace))
    assert {finding.permitted_by for finding in results["offset-regression"].findings} == {"commitAsync()"}


def without_end(evidence: Evidence, partition: str, offset: int) -> Evidence:
    """Return evidence in which all replicas of a partition lack the records from an offset on."""
    return with_batches(
        evidence, partition, lambda batches: tuple(batch for batch in batches if batch.next_offset <= offset)
    )


def test_a_consumer_may_go_back_over_a_marker_that_was_lost_with_power() -> None:
    line, marker = next(iter(Index(sound()).events(TransactionMarkerWritten)))
    name, offset = marker.partition, marker.offset
    trace = list(sound().trace)
    lost = (trace[-1][0], UnflushedLost.name, marker.broker, name, offset, offset + 1)
    assert line < len(trace)
    index = Index(with_trace(without_end(sound(), name, offset), [*trace, lost]))
    until_us = trace[-1][0] + 1
    cause = lost_marker(index, name, offset - 1, until_us)
    assert cause is not None
    assert cause.permitted_by == "log.flush.interval.messages"
    # A lost marker explains nothing without a power loss, while the marker is still in the log, or
    # for an earlier offset.
    assert lost_marker(Index(without_end(sound(), name, offset)), name, offset - 1, until_us) is None
    assert lost_marker(Index(with_trace(sound(), [*trace, lost])), name, offset - 1, until_us) is None
    assert lost_marker(index, name, offset - 2, until_us) is None
    assert lost_marker(index, name, offset - 1, until_us - 1) is None
