"""The program of an application takes steps, and reacts to the answers to them."""

from collections.abc import Mapping
from typing import Any

import pytest

from harrow.cluster_model.clients import programs
from harrow.cluster_model.clients.programs import (
    AFTER,
    APPLICATIONS,
    AUTO,
    BEFORE,
    NEVER,
    AbortOpenTransaction,
    CloseClients,
    CommitOffsets,
    CommitOpenTransaction,
    FlushResults,
    HasProducerFailed,
    IsTransactionOpen,
    MustAbort,
    NoteOffsets,
    OpenTransaction,
    PollRecords,
    ProcessRecords,
    ProgramStep,
    RewindToCommitted,
    SendNextRecord,
    SendOffsets,
    StoreResult,
    SubscribeToSource,
    WaitForRecord,
    WorkerRecords,
    WriteResult,
    generate_transactions,
    read_for_group,
    transactions_to_abort,
)
from harrow.cluster_model.errors import NONE
from harrow.cluster_model.history import FAIL, INFO, OK
from harrow.cluster_model.topology import (
    AT_LEAST_ONCE,
    AT_MOST_ONCE,
    EXACTLY_ONCE,
    HIGHEST_FINISHED,
    IDEMPOTENT_SINK,
    WATERMARK,
)

TWO_RECORDS = {"in-0": [(0, "a"), (1, "b")]}
FAILED_SEND = "ILLEGAL_GENERATION"


def steps_of(
    delivery: str, answers: Mapping[type[ProgramStep], Any] | None = None, *, rewinds: bool = True
) -> tuple[list[ProgramStep], str]:
    """Return the steps and the error of a program that polls two records and then closes."""
    replies: dict[type[ProgramStep], Any] = {HasProducerFailed: False, **(answers or {})}
    polls = [TWO_RECORDS, None]
    program, answer, steps = APPLICATIONS[delivery](rewinds=rewinds).run(), None, list[ProgramStep]()
    try:
        while True:
            step = program.send(answer)
            steps.append(step)
            answer = polls.pop(0) if isinstance(step, PollRecords) else replies.get(type(step), NONE)
    except StopIteration as stopped:
        return steps, stopped.value


def kinds(steps: list[ProgramStep]) -> list[type[ProgramStep]]:
    return [type(step) for step in steps]


@pytest.mark.parametrize("delivery", APPLICATIONS)
def test_a_program_takes_its_declared_steps_and_closes_on_request(delivery: str) -> None:
    steps, error = steps_of(delivery)
    assert (kinds(steps)[-2:], error) == ([PollRecords, CloseClients], NONE)
    failing = steps_of(delivery, {CommitOpenTransaction: FAILED_SEND})[0]
    named = {step.name for step in (*steps, *failing) if step.name}
    assert named == set(APPLICATIONS[delivery].steps)


def test_a_transaction_that_cannot_commit_is_aborted_and_its_records_are_read_again() -> None:
    steps, error = steps_of(EXACTLY_ONCE, {SendOffsets: FAILED_SEND})
    assert CommitOpenTransaction not in kinds(steps)
    assert NoteOffsets(FAIL, FAILED_SEND) in steps
    assert kinds(steps).index(AbortOpenTransaction) < kinds(steps).index(RewindToCommitted)
    assert error == NONE
    assert RewindToCommitted not in kinds(
        steps_of(EXACTLY_ONCE, {SendOffsets: FAILED_SEND}, rewinds=False)[0]
    )


def test_a_fatal_producer_error_ends_the_program() -> None:
    steps, error = steps_of(EXACTLY_ONCE, {CommitOpenTransaction: "PRODUCER_FENCED", HasProducerFailed: True})
    assert error == "PRODUCER_FENCED"
    assert AbortOpenTransaction not in kinds(steps)
    assert steps[-1] == NoteOffsets(INFO, "PRODUCER_FENCED")


def test_a_transactional_application_fences_former_sessions_before_it_subscribes() -> None:
    steps, error = steps_of(EXACTLY_ONCE, {programs.InitTransactions: "INVALID_PRODUCER_EPOCH"})
    assert (len(steps), error) == (1, "INVALID_PRODUCER_EPOCH")
    assert kinds(steps_of(EXACTLY_ONCE)[0])[:2] == [programs.InitTransactions, SubscribeToSource]
    assert NoteOffsets(OK, NONE) in steps_of(EXACTLY_ONCE)[0]


@pytest.mark.parametrize("delivery", [AT_LEAST_ONCE, WATERMARK])
def test_after_a_failed_send_offsets_are_not_committed_and_records_are_read_again(delivery: str) -> None:
    steps, _ = steps_of(delivery, {FlushResults: programs.SEND_FAILED})
    assert CommitOffsets not in kinds(steps)
    assert RewindToCommitted in kinds(steps)


def test_at_most_once_processes_only_committed_records() -> None:
    assert WriteResult not in kinds(steps_of(AT_MOST_ONCE, {CommitOffsets: FAILED_SEND})[0])
    steps = kinds(steps_of(AT_MOST_ONCE)[0])
    assert steps.index(CommitOffsets) < steps.index(WriteResult)


def test_a_sink_stores_each_record_with_its_offset() -> None:
    stored = [step.record for step in steps_of(IDEMPOTENT_SINK)[0] if isinstance(step, StoreResult)]
    assert stored == [("in-0", 0, "a"), ("in-0", 1, "b")]


@pytest.mark.parametrize(("delivery", "first", "second"), [(WATERMARK, 0, 2), (HIGHEST_FINISHED, 2, 2)])
def test_finished_records_decide_which_offsets_are_committed(delivery: str, first: int, second: int) -> None:
    workers = WorkerRecords(delivery)
    workers.add(TWO_RECORDS)
    slow, fast = workers.begin(), workers.begin()
    workers.finish(*fast)
    assert workers.to_commit({"in-0": 2}) == {"in-0": first}
    workers.finish(*slow)
    assert workers.to_commit({"in-0": 2}) == {"in-0": second}
    assert workers.is_done()


def test_a_finished_record_of_a_forgotten_partition_does_not_count() -> None:
    workers = WorkerRecords(HIGHEST_FINISHED)
    workers.add(TWO_RECORDS)
    record = workers.begin()
    workers.forget(["in-0"])
    assert not workers.waiting
    workers.add({"in-0": [(0, "a")]})
    workers.finish(*record)
    assert workers.to_commit({"in-0": 1}) == {}


@pytest.mark.parametrize(
    ("commit", "after_poll"),
    [
        (AFTER, [ProcessRecords, CommitOffsets]),
        (BEFORE, [CommitOffsets, ProcessRecords]),
        (AUTO, [ProcessRecords]),
        (NEVER, [ProcessRecords]),
    ],
)
def test_a_consumer_commits_before_or_after_it_processes(
    commit: str, after_poll: list[type[ProgramStep]]
) -> None:
    program, steps = read_for_group(commit), list[type[ProgramStep]]()
    steps += [type(program.send(None)), type(program.send(None)), type(program.send(TWO_RECORDS))]
    while steps[-1] is not PollRecords:
        steps.append(type(program.send(NONE)))
    assert steps == [SubscribeToSource, PollRecords, *after_poll, PollRecords]


def test_a_consumer_that_commits_before_processing_skips_records_after_a_failed_commit() -> None:
    program = read_for_group(BEFORE)
    assert [type(program.send(answer)) for answer in (None, None, TWO_RECORDS, FAILED_SEND)] == [
        *(SubscribeToSource, PollRecords, CommitOffsets, PollRecords)
    ]


def test_a_consumer_closes_when_a_poll_returns_none() -> None:
    program = read_for_group(AUTO)
    assert [type(program.send(None)) for _ in range(3)] == [SubscribeToSource, PollRecords, CloseClients]


def generated_steps(answers: Mapping[type[ProgramStep], list[Any]]) -> list[type[ProgramStep]]:
    """Return the steps of a program that generates transactions.

    Each list answers its step in order, and its last element answers all later ones.
    """
    remaining = {kind: list(replies) for kind, replies in answers.items()}
    program, answer, steps = generate_transactions(2, transactions_to_abort(2)), None, []
    try:
        while True:
            step = program.send(answer)
            steps.append(type(step))
            replies = remaining.get(type(step), [NONE])
            answer = replies.pop(0) if len(replies) > 1 else replies[0]
    except StopIteration:
        return steps


def test_every_second_generated_transaction_is_aborted_and_the_last_one_is_completed() -> None:
    answers: dict[type[ProgramStep], list[Any]] = {
        WaitForRecord: [True, True, True, True, True, False],
        MustAbort: [False],
        IsTransactionOpen: [False, True, False, True, False, True],
    }
    ends = (AbortOpenTransaction, CommitOpenTransaction, SendNextRecord)
    assert [step for step in generated_steps(answers) if step in ends] == [
        *(SendNextRecord, SendNextRecord, CommitOpenTransaction),
        *(SendNextRecord, SendNextRecord, AbortOpenTransaction),
        *(SendNextRecord, CommitOpenTransaction),
    ]


def test_a_failed_transaction_is_aborted_and_its_record_is_skipped() -> None:
    answers: dict[type[ProgramStep], list[Any]] = {
        WaitForRecord: [True, False],
        MustAbort: [True, True, False],
        AbortOpenTransaction: [FAILED_SEND, NONE],
        IsTransactionOpen: [False],
    }
    steps = generated_steps(answers)
    assert steps.count(AbortOpenTransaction) == 2
    assert SendNextRecord not in steps


def test_no_record_is_sent_while_no_transaction_can_be_opened() -> None:
    answers: dict[type[ProgramStep], list[Any]] = {
        WaitForRecord: [True, False],
        MustAbort: [False],
        IsTransactionOpen: [False],
        OpenTransaction: ["PRODUCER_FENCED"],
    }
    assert SendNextRecord not in generated_steps(answers)
