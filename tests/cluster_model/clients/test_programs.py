"""What applications do, driven by hand: the steps of a program, and what the answers lead to."""

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

TWO = {"in-0": [(0, "a"), (1, "b")]}
REFUSED = "ILLEGAL_GENERATION"


def taken(
    delivery: str, answers: Mapping[type[ProgramStep], Any] | None = None, *, rewinds: bool = True
) -> tuple[list[ProgramStep], str]:
    """Return the steps of a program that polls two records and is to close then, and the error that it returns."""
    known: dict[type[ProgramStep], Any] = {HasProducerFailed: False, **(answers or {})}
    polls = [TWO, None]
    program, answer, steps = APPLICATIONS[delivery](rewinds=rewinds).run(), None, list[ProgramStep]()
    try:
        while True:
            step = program.send(answer)
            steps.append(step)
            answer = polls.pop(0) if isinstance(step, PollRecords) else known.get(type(step), NONE)
    except StopIteration as stopped:
        return steps, stopped.value


def kinds(steps: list[ProgramStep]) -> list[type[ProgramStep]]:
    return [type(step) for step in steps]


@pytest.mark.parametrize("delivery", APPLICATIONS)
def test_a_program_takes_the_named_steps_that_it_declares_and_closes_when_asked(delivery: str) -> None:
    steps, error = taken(delivery)
    assert (kinds(steps)[-2:], error) == ([PollRecords, CloseClients], NONE)
    failing = taken(delivery, {CommitOpenTransaction: REFUSED})[0]
    named = {step.name for step in (*steps, *failing) if step.name}
    assert named == set(APPLICATIONS[delivery].steps)


def test_a_transaction_that_cannot_be_committed_is_aborted_and_read_again() -> None:
    steps, error = taken(EXACTLY_ONCE, {SendOffsets: REFUSED})
    assert CommitOpenTransaction not in kinds(steps)
    assert NoteOffsets(FAIL, REFUSED) in steps
    assert kinds(steps).index(AbortOpenTransaction) < kinds(steps).index(RewindToCommitted)
    assert error == NONE
    assert RewindToCommitted not in kinds(taken(EXACTLY_ONCE, {SendOffsets: REFUSED}, rewinds=False)[0])


def test_a_producer_that_has_failed_for_good_ends_the_program_with_its_error() -> None:
    steps, error = taken(EXACTLY_ONCE, {CommitOpenTransaction: "PRODUCER_FENCED", HasProducerFailed: True})
    assert error == "PRODUCER_FENCED"
    assert AbortOpenTransaction not in kinds(steps)
    assert steps[-1] == NoteOffsets(INFO, "PRODUCER_FENCED")


def test_sessions_before_it_are_fenced_before_it_subscribes() -> None:
    steps, error = taken(EXACTLY_ONCE, {programs.InitTransactions: "INVALID_PRODUCER_EPOCH"})
    assert (len(steps), error) == (1, "INVALID_PRODUCER_EPOCH")
    assert kinds(taken(EXACTLY_ONCE)[0])[:2] == [programs.InitTransactions, SubscribeToSource]
    assert NoteOffsets(OK, NONE) in taken(EXACTLY_ONCE)[0]


@pytest.mark.parametrize("delivery", [AT_LEAST_ONCE, WATERMARK])
def test_what_was_not_acknowledged_is_read_again_and_not_committed(delivery: str) -> None:
    steps, _ = taken(delivery, {FlushResults: programs.SEND_FAILED})
    assert CommitOffsets not in kinds(steps)
    assert RewindToCommitted in kinds(steps)


def test_at_most_once_processes_nothing_that_it_could_not_commit() -> None:
    assert WriteResult not in kinds(taken(AT_MOST_ONCE, {CommitOffsets: REFUSED})[0])
    steps = kinds(taken(AT_MOST_ONCE)[0])
    assert steps.index(CommitOffsets) < steps.index(WriteResult)


def test_a_sink_stores_each_record_with_its_offset() -> None:
    stored = [step.record for step in taken(IDEMPOTENT_SINK)[0] if isinstance(step, StoreResult)]
    assert stored == [("in-0", 0, "a"), ("in-0", 1, "b")]


@pytest.mark.parametrize(("delivery", "first", "second"), [(WATERMARK, 0, 2), (HIGHEST_FINISHED, 2, 2)])
def test_what_workers_have_finished_decides_what_is_committed(delivery: str, first: int, second: int) -> None:
    workers = WorkerRecords(delivery)
    workers.add(TWO)
    held, quick = workers.begin(), workers.begin()
    workers.finish(*quick)
    assert workers.to_commit({"in-0": 2}) == {"in-0": first}
    workers.finish(*held)
    assert workers.to_commit({"in-0": 2}) == {"in-0": second}
    assert workers.is_done()


def test_a_record_whose_partition_was_forgotten_does_not_count() -> None:
    workers = WorkerRecords(HIGHEST_FINISHED)
    workers.add(TWO)
    held = workers.begin()
    workers.forget(["in-0"])
    assert not workers.waiting
    workers.add({"in-0": [(0, "a")]})
    workers.finish(*held)
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
    steps += [type(program.send(None)), type(program.send(None)), type(program.send(TWO))]
    while steps[-1] is not PollRecords:
        steps.append(type(program.send(NONE)))
    assert steps == [SubscribeToSource, PollRecords, *after_poll, PollRecords]


def test_a_consumer_does_not_process_what_it_could_not_commit_before() -> None:
    program = read_for_group(BEFORE)
    assert [type(program.send(answer)) for answer in (None, None, TWO, REFUSED)] == [
        *(SubscribeToSource, PollRecords, CommitOffsets, PollRecords)
    ]


def test_a_consumer_that_is_to_close_closes() -> None:
    program = read_for_group(AUTO)
    assert [type(program.send(None)) for _ in range(3)] == [SubscribeToSource, PollRecords, CloseClients]


def generated(answers: Mapping[type[ProgramStep], list[Any]]) -> list[type[ProgramStep]]:
    """Return the steps of a program that generates transactions, which is answered by these lists; at their ends by their last."""
    left = {kind: list(each) for kind, each in answers.items()}
    program, answer, steps = generate_transactions(2, transactions_to_abort(2)), None, []
    try:
        while True:
            step = program.send(answer)
            steps.append(type(step))
            known = left.get(type(step), [NONE])
            answer = known.pop(0) if len(known) > 1 else known[0]
    except StopIteration:
        return steps


def test_every_second_transaction_is_aborted_and_the_last_one_ended() -> None:
    answers: dict[type[ProgramStep], list[Any]] = {
        WaitForRecord: [True, True, True, True, True, False],
        MustAbort: [False],
        IsTransactionOpen: [False, True, False, True, False, True],
    }
    ends = (AbortOpenTransaction, CommitOpenTransaction, SendNextRecord)
    assert [step for step in generated(answers) if step in ends] == [
        *(SendNextRecord, SendNextRecord, CommitOpenTransaction),
        *(SendNextRecord, SendNextRecord, AbortOpenTransaction),
        *(SendNextRecord, CommitOpenTransaction),
    ]


def test_a_transaction_that_has_failed_is_aborted_and_its_record_left_out() -> None:
    answers: dict[type[ProgramStep], list[Any]] = {
        WaitForRecord: [True, False],
        MustAbort: [True, True, False],
        AbortOpenTransaction: [REFUSED, NONE],
        IsTransactionOpen: [False],
    }
    steps = generated(answers)
    assert steps.count(AbortOpenTransaction) == 2
    assert SendNextRecord not in steps


def test_no_record_is_generated_where_no_transaction_can_be_opened() -> None:
    answers: dict[type[ProgramStep], list[Any]] = {
        WaitForRecord: [True, False],
        MustAbort: [False],
        IsTransactionOpen: [False],
        OpenTransaction: ["PRODUCER_FENCED"],
    }
    assert SendNextRecord not in generated(answers)
