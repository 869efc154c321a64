"""`harrow diff`: the replica logs of a recorded run at one moment, as data and as JSON."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from harrow.campaigns.language.literals import LiteralError, time_of_run
from harrow.campaigns.language.spelling import listed, quoted, run_name, suggestion
from harrow.campaigns.record.phrases import actor_text, predicate, sentence
from harrow.campaigns.record.recorded_run import RecordedRun
from harrow.campaigns.record.report import in_short_by
from harrow.campaigns.record.run_events import RunEvents
from harrow.campaigns.story.record_fates import (
    RecordMoment,
    RecordNote,
    lost_values,
    moments_of,
    record_notes,
)
from harrow.campaigns.story.replica_diff import DiffRow, LogCell, RecordFate, partition_rows
from harrow.campaigns.story.run_state import RunState, state_at
from harrow.campaigns.story.stages import Stage, stages_of
from harrow.campaigns.story.trace_story import TraceStory, story_of
from harrow.checks.causes.story import seconds
from harrow.checks.replay.cluster_state import BrokerState
from harrow.checks.replay.coordination_state import GroupState, TransactionalIdState
from harrow.checks.replay.partition_state import PartitionState, ReplicaState
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.topology import CONTROL_PLANES, INTERNAL_TOPICS, is_server, process_name
from harrow.cluster_model.trace import TraceEvent

SCHEMA: Final = "harrow.diff/1"
END: Final = "end"

_SECONDS: Final = re.compile(r"-?[0-9]+\.[0-9]+")
_STARTS_AS_TIME: Final = re.compile(r"-?[0-9]")


class DiffError(ValueError):
    """The run lacks the requested moment or partition. The message says what the run has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffMoment:
    """The requested moment: a time, an event's number (line of ``trace.jsonl``), or the end."""

    at_us: int | None = None
    number: int | None = None

    @property
    def is_end(self) -> bool:
        return self.at_us is None and self.number is None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDiff:
    """The logs of a partition at a moment, and the judge's findings about its records.

    ``notes`` are the findings that had come about by then, and ``to_come`` are the later ones. If
    no note has a moment, `moments` returns ``finding_moments``: those of all findings about the
    partition. ``stages`` are empty unless they were requested.
    """

    partition: PartitionState
    rows: Sequence[DiffRow]
    notes: Sequence[RecordNote]
    to_come: Sequence[RecordNote] = ()
    finding_moments: Sequence[RecordMoment] = ()
    stages: Sequence[Stage] = ()

    def moments(self) -> list[RecordMoment]:
        """Return the moments worth looking at, in order, one for each event."""
        notes = (*self.notes, *self.to_come)
        by_number: dict[int, RecordMoment] = {}
        for moment in [moment for note in notes for moment in note.moments] or self.finding_moments:
            by_number.setdefault(moment.number, moment)
        return [by_number[number] for number in sorted(by_number)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDiff:
    """A run at a moment. ``event`` is the last event of its trace up to then.

    ``hidden`` are the partitions that the diff leaves out because they have no finding. ``lost``
    are, for each partition, the records that had been lost by then.
    """

    recorded: RecordedRun
    run: RunEvents
    at: DiffMoment
    state: RunState
    event: TraceEvent | None
    partitions: Sequence[PartitionDiff]
    hidden: Sequence[str]
    lost: Mapping[str, Sequence[str]]

    @property
    def control_plane(self) -> str:
        """The name of the control plane."""
        return CONTROL_PLANES[self.run.plan.metadata]


def parse_at(text: str) -> DiffMoment:
    """Parse ``12.5s``, ``12.5`` or ``-1s`` (a time), ``143`` (an event number) or ``end``.

    Raises:
        DiffError: The text is none of these.

    """
    if text == END:
        return DiffMoment()
    if text.isascii() and text.isdecimal():
        return DiffMoment(number=int(text))
    try:
        return DiffMoment(at_us=time_of_run(f"{text}s" if _SECONDS.fullmatch(text) else text))
    except LiteralError as error:
        reason = str(error)
        if not _STARTS_AS_TIME.match(text):
            reason = f"{quoted(text)}: expected a time such as 12.5s, an event number such as 143, or end"
        raise DiffError(f"--at {reason}") from None


def diff_run(
    recorded: RecordedRun, at: DiffMoment, partitions: Sequence[str] = (), *, with_stages: bool = False
) -> RunDiff:
    """Return the replica logs of a run at a moment.

    Without *partitions*, return the partitions with a finding. If there are none, return all except
    those of internal topics. *with_stages* adds the earlier moments in which ends of logs moved.

    Raises:
        DiffError: The run has no such moment or partition.
        RecordError: The run cannot be read.

    """
    return diff_story(story_of(recorded), at, partitions, with_stages=with_stages)


def diff_story(
    story: TraceStory, at: DiffMoment, partitions: Sequence[str] = (), *, with_stages: bool = False
) -> RunDiff:
    """Return the replica logs of a run at a moment, from its story.

    Raises:
        DiffError: The run has no such moment or partition.

    """
    run = story.run
    _check_at(at, run)
    names = tuple(run.replicas)
    for name in partitions:
        if name not in names:
            hint = suggestion(name, names) or f"; known: {listed(names)}"
            raise DiffError(f"--partition {quoted(name)}: the run has no such partition{hint}")
    requested = partitions or {finding.finding.partition for finding in story.findings}
    chosen = [name for name in names if name in requested] or [
        name for name in names if name.rpartition("-")[0] not in INTERNAL_TOPICS
    ]
    state = state_at(run, at_us=at.at_us, number=at.number)
    notes = record_notes(story, state)
    lost = lost_values(notes)
    diffs = []
    for name in chosen:
        partition = state.partitions[name]
        findings_at_end = (
            [finding for finding in story.findings if finding.finding.partition == name] if at.is_end else []
        )
        partition_notes = notes.get(name, ())
        diffs.append(
            PartitionDiff(
                partition=partition,
                rows=partition_rows(partition, lost.get(name, ())),
                notes=[note for note in partition_notes if note.has_come_about],
                to_come=[note for note in partition_notes if not note.has_come_about],
                finding_moments=[
                    moment for finding in findings_at_end for moment in moments_of(story, finding)
                ],
                stages=stages_of(run, name, state.event_count) if with_stages else (),
            )
        )
    return RunDiff(
        recorded=story.recorded,
        run=run,
        at=at,
        state=state,
        event=run.trace_event(state.number),
        partitions=diffs,
        hidden=() if partitions else [name for name in names if name not in chosen],
        lost=lost,
    )


def run_title(recorded: RecordedRun, run: RunEvents) -> str:
    """Return the name of a run: ``loss[0.11], seed 3, Kafka 0.11``."""
    return f"{run_name(run.plan.campaign, recorded.variant)}, seed {recorded.seed}, Kafka {run.plan.kafka}"


def _check_at(at: DiffMoment, run: RunEvents) -> None:
    extent = f"the run has the events 1 to {run.last_number} and ends at {seconds(run.end_us)}"
    if at.number is not None and not 1 <= at.number <= run.last_number:
        raise DiffError(f"--at {at.number}: {extent}")
    if at.at_us is not None and run.events and at.at_us < run.events[0][0]:
        raise DiffError(f"--at {seconds(at.at_us)}: the run begins at {seconds(run.events[0][0])}")
    if at.at_us is not None and at.at_us > run.end_us:
        raise DiffError(f"--at {seconds(at.at_us)}: {extent}")


# JSON


def diff_document(diff: RunDiff) -> dict[str, Any]:
    """Return a diff as JSON, with every row and nothing folded."""
    recorded, state = diff.recorded, diff.state
    return {
        "schema": SCHEMA,
        "run": str(recorded.folder),
        **run_mapping(recorded, diff.run),
        "at": {"event": state.number, "at_us": state.at_us, "is_end": diff.at.is_end},
        "controller": None if state.controller < 0 else state.controller,
        "metadata": diff.run.plan.metadata,
        "brokers": {
            str(number): {**_process_mapping(broker), "registered": broker.is_registered}
            for number, broker in sorted(state.brokers.items())
            if not is_server(number)
        },
        "servers": {
            process_name(number): _process_mapping(server)
            for number, server in sorted(state.brokers.items())
            if is_server(number)
        },
        "faults": [
            {"fault": fault.fault, "event": fault.number, "since_us": fault.at_us, **dict(fault.details)}
            for fault in state.faults
        ],
        "transactional_ids": {
            name: _transactional_id_mapping(transaction)
            for name, transaction in state.coordination.transactional_ids.items()
        },
        "groups": {name: _group_mapping(group) for name, group in state.coordination.groups.items()},
        "partitions": [_partition_mapping(diff) for diff in diff.partitions],
        "partitions_without_findings": list(diff.hidden),
    }


def _process_mapping(process: BrokerState) -> dict[str, Any]:
    return {
        "live": process.is_live,
        "paused": process.is_paused,
        "stopped_by": process.stopped_by or None,
        "active_controller": process.is_active_controller,
    }


def _transactional_id_mapping(state: TransactionalIdState) -> dict[str, Any]:
    return {
        "coordinator": state.coordinator,
        "state": state.state,
        "producer_id": state.producer_id,
        "producer_epoch": state.producer_epoch,
        "partitions": list(state.partitions),
        "since_us": state.at_us,
    }


def _group_mapping(group: GroupState) -> dict[str, Any]:
    return {
        "coordinator": None if group.coordinator < 0 else group.coordinator,
        "state": group.state or None,
        "generation": group.generation,
        "members": list(group.members),
        "assignments": {member: list(names) for member, names in group.assignments.items()},
        "committed": dict(group.committed),
        "reading": {client: list(names) for client, names in group.reading.items()},
    }


def run_mapping(recorded: RecordedRun, run: RunEvents) -> dict[str, Any]:
    """Return the identity and the verdict of a run as JSON."""
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
            str(broker): _replica_mapping(replica, partition.remote_leo(broker))
            for broker, replica in sorted(partition.replicas.items())
        },
        "rows": [
            {
                "offset": row.offset,
                "past": row.is_past,
                "again": row.is_second_copy,
                "cells": {str(broker): _cell_mapping(cell) for broker, cell in row.cells.items()},
                "records": [_fate_mapping(fate) for fate in row.fates],
            }
            for row in diff.rows
        ],
        "notes": [_note_mapping(note) for note in diff.notes],
        "notes_to_come": [_note_mapping(note) for note in diff.to_come],
        "moments": [
            {"event": moment.number, "at_us": moment.at_us, "text": moment.text} for moment in diff.moments()
        ],
        **({"stages": [_stage_mapping(stage) for stage in diff.stages]} if diff.stages else {}),
    }


def _note_mapping(note: RecordNote) -> dict[str, Any]:
    return {
        "kind": note.kind,
        "rule": note.finding.rule,
        "permitted_by": note.finding.finding.permitted_by,
        "at_us": note.at_us,
        "offset": note.offset,
        "offsets": list(note.places),
        "values": list(note.values),
        "text": note.head(),
        "lines": [
            {
                "at_us": link.at_us,
                "who": None if link.actor is None else actor_text(link.actor),
                "text": sentence(link) if link.kind.impersonal else predicate(link),
            }
            for link in note.chain
        ],
    }


def _stage_mapping(stage: Stage) -> dict[str, Any]:
    return {
        "event": stage.number,
        "at_us": stage.at_us,
        "texts": list(stage.texts),
        "replicas": {str(broker): asdict(ends) for broker, ends in stage.ends.items()},
    }


def _replica_mapping(replica: ReplicaState, remote_leo: int | None) -> dict[str, Any]:
    is_open = replica.is_open
    return {
        "role": replica.role or None,
        "leader_epoch": replica.leader_epoch,
        "leader": None if replica.leader < 0 else replica.leader,
        "isr": list(replica.isr) if replica.role == "leader" else None,
        "leo": replica.leo,
        "remote_leo": remote_leo,
        "hw": replica.high_watermark if is_open else None,
        "lso": replica.lso if is_open else None,
        "flushed": replica.flushed,
        "checkpointed_hw": replica.checkpointed_high_watermark,
        "transactions": [
            {
                "producer_id": transaction.producer_id,
                "producer_epoch": transaction.producer_epoch,
                "first_offset": transaction.first_offset,
                "marker_offset": transaction.marker_offset,
                "committed": None if transaction.marker_offset is None else transaction.is_committed,
            }
            for transaction in replica.transactions
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
        "held_by": list(fate.holders),
        "lost": fate.is_lost,
    }
