"""`harrow diff`: the replica logs of a recorded run at a moment, and the same as JSON has it."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

from harrow.campaigns.language.literals import LiteralError, time_of_run
from harrow.campaigns.language.spelling import listed, quoted, run_name, suggestion
from harrow.campaigns.record.phrases import sentence
from harrow.campaigns.record.recorded_run import RecordedRun
from harrow.campaigns.record.report import in_short_by
from harrow.campaigns.record.run_events import RunEvents, events_of_recorded
from harrow.campaigns.story.record_fates import RecordMoment, RecordNote, record_notes
from harrow.campaigns.story.replica_diff import DiffRow, LogCell, RecordFate, partition_rows
from harrow.campaigns.story.run_state import RunState, state_at
from harrow.checks.causes.story import seconds
from harrow.checks.finding import Finding
from harrow.checks.replay.coordination_state import GroupState, TransactionalIdState
from harrow.checks.replay.partition_state import PartitionState, ReplicaState
from harrow.cluster_model.release import HIGH_WATERMARK
from harrow.cluster_model.topology import INTERNAL_TOPICS
from harrow.cluster_model.trace import TraceEvent

SCHEMA: Final = "harrow.diff/1"
END: Final = "end"


class DiffError(ValueError):
    """What was asked for is not in the run; the message says what there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffMoment:
    """The moment that was asked for: a time in virtual microseconds, an event's number, or the end."""

    at_us: int | None = None
    number: int | None = None

    @property
    def is_end(self) -> bool:
        return self.at_us is None and self.number is None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDiff:
    """The logs of a partition at a moment. ``finding_moments`` are used where the notes have none."""

    partition: PartitionState
    rows: Sequence[DiffRow]
    notes: Sequence[RecordNote]
    finding_moments: Sequence[RecordMoment] = ()

    def moments(self) -> list[RecordMoment]:
        """Return the moments worth looking at, in order, one for each event."""
        found: dict[int, RecordMoment] = {}
        for moment in [moment for note in self.notes for moment in note.moments] or self.finding_moments:
            found.setdefault(moment.number, moment)
        return [found[number] for number in sorted(found)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDiff:
    """A run at a moment, after ``event``. ``hidden`` are partitions without a finding, left out by default."""

    recorded: RecordedRun
    run: RunEvents
    at: DiffMoment
    state: RunState
    event: TraceEvent | None
    partitions: Sequence[PartitionDiff]
    hidden: Sequence[str]


def parse_at(text: str) -> DiffMoment:
    """Return the moment of ``12.5s`` or ``-1s``, of ``143`` (an event of trace.jsonl) or of ``end``.

    Raises:
        DiffError: it is none of these.

    """
    if text == END:
        return DiffMoment()
    if text.isascii() and text.isdecimal():
        return DiffMoment(number=int(text))
    try:
        return DiffMoment(at_us=time_of_run(text))
    except LiteralError:
        message = (
            f"--at {quoted(text)}: a time such as 12.5s, an event's number such as 143, or end is wanted"
        )
        raise DiffError(message) from None


def diff_run(recorded: RecordedRun, at: DiffMoment, partitions: Sequence[str] = ()) -> RunDiff:
    """Return the replica logs of a run at a moment: of these partitions, else of those with a finding, else all but internal ones.

    Raises:
        DiffError: the run has no such moment, or no such partition.
        RecordError: the run cannot be read.

    """
    run = events_of_recorded(recorded)
    _check_at(at, run)
    known = tuple(run.replicas)
    for name in partitions:
        if name not in known:
            raise DiffError(
                f"--partition {quoted(name)}: the run has {listed(known)}{suggestion(name, known)}"
            )
    findings = [finding for judged in recorded.rules.values() for finding in judged.findings]
    wanted = partitions or {finding.partition for finding in findings}
    chosen = [name for name in known if name in wanted] or [
        name for name in known if name.rpartition("-")[0] not in INTERNAL_TOPICS
    ]
    state = state_at(run, at_us=at.at_us, number=at.number)
    by_hw = run.plan.behaviour_switches().follower_truncation == HIGH_WATERMARK
    diffs = []
    for name in chosen:
        partition = state.partitions[name]
        rows = partition_rows(partition)
        moments = _moments([f for f in findings if f.partition == name], run) if at.is_end else ()
        notes = record_notes(partition, rows, truncates_to_hw=by_hw)
        diffs.append(PartitionDiff(partition=partition, rows=rows, notes=notes, finding_moments=moments))
    return RunDiff(
        recorded=recorded,
        run=run,
        at=at,
        state=state,
        event=run.trace_event(state.number),
        partitions=diffs,
        hidden=() if partitions else [name for name in known if name not in chosen],
    )


def _moments(findings: Sequence[Finding], run: RunEvents) -> list[RecordMoment]:
    """Return the moments of the links of findings: each right after the last event of its time."""
    moments = []
    for link in (link for finding in findings for link in finding.chain):
        position = 0 if link.at_us is None else bisect_right(run.events, link.at_us, key=itemgetter(0))
        if link.at_us is not None and position:
            number = run.numbers[position - 1]
            moments.append(RecordMoment(number=number, at_us=link.at_us, text=sentence(link)))
    return moments


def run_title(recorded: RecordedRun, run: RunEvents) -> str:
    """Return which run it is, as in ``loss[0.11], seed 3, Kafka 0.11``."""
    return f"{run_name(run.plan.campaign, recorded.variant)}, seed {recorded.seed}, Kafka {run.plan.kafka}"


def _check_at(at: DiffMoment, run: RunEvents) -> None:
    ends = f"the run has the events 1 to {run.last_number} and ends at {seconds(run.end_us)}"
    if at.number is not None and not 1 <= at.number <= run.last_number:
        raise DiffError(f"--at {at.number}: {ends}")
    if at.at_us is not None and run.events and at.at_us < run.events[0][0]:
        raise DiffError(f"--at {seconds(at.at_us)}: the run begins at {seconds(run.events[0][0])}")
    if at.at_us is not None and at.at_us > run.end_us:
        raise DiffError(f"--at {seconds(at.at_us)}: {ends}")


# JSON


def diff_document(found: RunDiff) -> dict[str, Any]:
    """Return a diff as JSON has it: every row, nothing folded."""
    recorded, state = found.recorded, found.state
    return {
        "schema": SCHEMA,
        "run": str(recorded.folder),
        **run_mapping(recorded, found.run),
        "at": {"event": state.number, "at_us": state.at_us, "is_end": found.at.is_end},
        "controller": None if state.controller < 0 else state.controller,
        "brokers": {
            str(number): {
                "live": broker.is_live,
                "paused": broker.is_paused,
                "registered": broker.is_registered,
                "stopped_by": broker.stopped_by or None,
                "active_controller": broker.is_active_controller,
            }
            for number, broker in sorted(state.brokers.items())
        },
        "faults": [
            {"fault": fault.fault, "event": fault.number, "since_us": fault.at_us, **dict(fault.details)}
            for fault in state.faults
        ],
        "transactional_ids": {
            name: _transactional_id_mapping(known)
            for name, known in state.coordination.transactional_ids.items()
        },
        "groups": {name: _group_mapping(known) for name, known in state.coordination.groups.items()},
        "partitions": [_partition_mapping(diff) for diff in found.partitions],
        "partitions_without_findings": list(found.hidden),
    }


def _transactional_id_mapping(known: TransactionalIdState) -> dict[str, Any]:
    return {
        "coordinator": known.coordinator,
        "state": known.state,
        "producer_id": known.producer_id,
        "producer_epoch": known.producer_epoch,
        "partitions": list(known.partitions),
        "since_us": known.at_us,
    }


def _group_mapping(known: GroupState) -> dict[str, Any]:
    return {
        "coordinator": None if known.coordinator < 0 else known.coordinator,
        "state": known.state or None,
        "generation": known.generation,
        "members": list(known.members),
        "assignments": {member: list(names) for member, names in known.assignments.items()},
        "committed": dict(known.committed),
        "reading": {client: list(names) for client, names in known.reading.items()},
    }


def run_mapping(recorded: RecordedRun, run: RunEvents) -> dict[str, Any]:
    """Return which run it is and what was found, as JSON has it."""
    return {
        "campaign": run.plan.campaign,
        "variant": recorded.variant,
        "seed": recorded.seed,
        "kafka": run.plan.kafka,
        "verdict": recorded.verdict,
        "in_short": in_short_by(recorded.rules),
    }


def _partition_mapping(diff: PartitionDiff) -> dict[str, Any]:
    partition = diff.partition
    return {
        "partition": partition.name,
        "leader": None if partition.leader < 0 else partition.leader,
        "leader_epoch": partition.leader_epoch,
        "isr": list(partition.isr),
        "replicas": {
            str(broker): _replica_mapping(replica) for broker, replica in sorted(partition.replicas.items())
        },
        "rows": [
            {
                "offset": row.offset,
                "past": row.is_past,
                "again": row.is_again,
                "cells": {str(broker): _cell_mapping(cell) for broker, cell in row.cells.items()},
                "records": [_fate_mapping(fate) for fate in row.fates],
            }
            for row in diff.rows
        ],
        "notes": [
            {
                "kind": note.kind,
                "offset": note.offset,
                "offsets": list(note.places),
                "values": list(note.values),
                "text": note.head,
                "lines": [{"who": who, "text": what} for who, what in note.lines],
            }
            for note in diff.notes
        ],
        "moments": [
            {"event": moment.number, "at_us": moment.at_us, "text": moment.text} for moment in diff.moments()
        ],
    }


def _replica_mapping(replica: ReplicaState) -> dict[str, Any]:
    is_open = replica.is_open
    return {
        "role": replica.role or None,
        "leader_epoch": replica.leader_epoch,
        "leader": None if replica.leader < 0 else replica.leader,
        "isr": list(replica.isr) if replica.role == "leader" else None,
        "leo": replica.leo,
        "hw": replica.high_watermark if is_open else None,
        "lso": replica.lso if is_open else None,
        "flushed": replica.flushed,
        "checkpointed_hw": replica.checkpointed_high_watermark,
        "transactions": [
            {
                "producer_id": known.producer_id,
                "producer_epoch": known.producer_epoch,
                "first_offset": known.first_offset,
                "marker_offset": known.marker_offset,
                "committed": None if known.marker_offset is None else known.is_committed,
            }
            for known in replica.transactions
        ],
    }


def _cell_mapping(cell: LogCell) -> dict[str, Any]:
    mapping: dict[str, Any] = {"state": cell.state}
    if cell.entry is not None:
        has_producer = cell.entry.producer_id >= 0
        mapping |= {
            "value": cell.entry.value,
            "leader_epoch": cell.entry.leader_epoch,
            "producer_id": cell.entry.producer_id if has_producer else None,
            "sequence": cell.entry.sequence if has_producer else None,
            "committed": cell.committed,
            "flushed": cell.flushed,
        }
    if cell.removed is not None:
        mapping["removed"] = {
            "event": cell.removed.number,
            "at_us": cell.removed.at_us,
            "cause": cell.removed.cause,
            "reason": cell.removed.reason,
            "to_offset": cell.removed.to_offset,
        }
    return mapping


def _fate_mapping(fate: RecordFate) -> dict[str, Any]:
    return {
        "value": fate.entry.value,
        "status": fate.status,
        "acks": fate.acks,
        "acked_at_us": fate.acked_us,
        "acked_offset": fate.acked_offset,
        "error": fate.error,
        "read_by": list(fate.readers),
        "held_by": list(fate.held_by),
        "lost": fate.is_lost,
    }
