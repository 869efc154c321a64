"""Replaying the events of a run gives its final state, for every library campaign."""

from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path

import pytest

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.record.recorded_run import read_run
from harrow.campaigns.record.report import run_as_mapping
from harrow.campaigns.record.results_folder import write_run
from harrow.campaigns.record.run_events import RunEvents, events_of_recorded, events_of_result
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.story.run_state import RunState, state_at
from harrow.checks.index import Index
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.cluster_model.topology import is_internal
from tests.campaigns.run.eventful_plan import eventful_plan
from tests.library_swarm import library_swarm
from tests.scenarios.library_plans import each_plan, library_run

SWARM_SEEDS = range(12)


def check_final_state(result: RunResult) -> None:
    """Compare the replayed final state of a run with its evidence."""
    state = state_at(events_of_result(result))
    replicas = result.evidence.replicas
    assert {name: partition.assigned for name, partition in state.partitions.items()} == {
        name: settings.replicas for name, settings in result.evidence.partitions.items()
    }
    # A broker that was down when its replica was removed still has the log, but is not a replica.
    # The logs of coordinators are not client logs.
    assert {
        name: partition.replicas.keys() & set(partition.assigned)
        for name, partition in state.partitions.items()
        if not is_internal(name)
    } == {name: set(logs) for name, logs in replicas.items()}
    for name, logs in replicas.items():
        partition = state.partitions[name]
        for broker, log in logs.items():
            replica = partition.replicas[broker]
            stored = [
                (offset, value, batch.leader_epoch, batch.producer_id, batch.base_sequence)
                for batch in log.batches
                for offset, value in batch.records()
                if offset >= log.log_start
            ]
            replayed = [
                (
                    e.offset,
                    e.value,
                    e.leader_epoch,
                    e.producer_id,
                    first_sequence(e.offset, log.batches, e.sequence),
                )
                for e in replica.log
            ]
            assert replayed == stored, (name, broker)
            high_watermark = replica.high_watermark if replica.is_open else 0
            assert (replica.leo, high_watermark, replica.flushed) == (log.leo, log.hw, log.flushed), (
                name,
                broker,
            )
            assert (broker in partition.isr) == log.in_sync, (name, broker)
    index = Index(result.evidence)
    for name, partition in state.partitions.items():
        acked = {value for value, sends in partition.sends.items() if any(s.status == "acked" for s in sends)}
        assert acked == {send.value for send in index.acked.get(name, ())}
        assert partition.reads.keys() == set(index.polled.get(name, ()))


def first_sequence(offset: int, batches: Iterable[RecordBatch], sequence: int) -> int:
    """Return the sequence of the first record in a record's batch."""
    for batch in batches:
        if any(offset == stored for stored, _ in batch.records()):
            return sequence if sequence < 0 else sequence - (offset - batch.base_offset)
    raise AssertionError(offset)


@each_plan()
def test_replay_gives_the_final_state_of_a_library_campaign(name: str) -> None:
    check_final_state(library_run(name))


@pytest.mark.parametrize("seed", SWARM_SEEDS)
def test_replay_gives_the_final_state_of_a_swarm_run(seed: int) -> None:
    check_final_state(run_plan(library_swarm(), seed))


@pytest.mark.parametrize("release", ["0.10.2", "2.4"])
def test_replay_gives_the_final_state_of_an_eventful_run(release: str) -> None:
    check_final_state(run_plan(eventful_plan(release), 3))


def recorded(result: RunResult, folder: Path, text: str) -> RunEvents:
    return events_of_recorded(read_run(write_run(folder, result, run_as_mapping(result, ""), text)))


def snapshot(state: RunState) -> object:
    """Return a state as plain data."""
    return (
        state.at_us,
        state.number,
        state.controller,
        {broker: str(broker_state) for broker, broker_state in state.brokers.items()},
        state.faults,
        {
            name: (
                *(partition.leader, partition.leader_epoch, partition.isr, partition.acks, partition.reads),
                partition.sends,
                {
                    broker: [getattr(replica, field.name) for field in fields(replica)]
                    for broker, replica in partition.replicas.items()
                },
            )
            for name, partition in state.partitions.items()
        },
    )


def test_a_run_on_disk_gives_the_same_states_as_in_memory(tmp_path: Path) -> None:
    text = Path("campaigns/library/swarm.yaml").read_text(encoding="utf-8")
    result = run_plan(library_swarm(), 4)
    on_disk, in_memory = recorded(result, tmp_path, text), events_of_result(result)
    assert (on_disk.events, on_disk.numbers) == (in_memory.events, in_memory.numbers)
    for number in (0, 1, in_memory.last_number // 3, in_memory.last_number):
        assert snapshot(state_at(on_disk, number=number)) == snapshot(state_at(in_memory, number=number))


def test_advancing_event_by_event_gives_the_state_of_each_moment() -> None:
    plan: Plan = eventful_plan("2.4")
    run = events_of_result(run_plan(plan, 1))
    state = RunState(run.replicas, (broker.id for broker in plan.cluster.brokers))
    for position, (event, number) in enumerate(zip(run.events, run.numbers, strict=True)):
        state.advance(event, number)
        is_last_of_number = position + 1 == len(run.numbers) or run.numbers[position + 1] > number
        if number % 997 == 0 and is_last_of_number:
            assert snapshot(state) == snapshot(state_at(run, number=number))


def test_a_clients_answer_comes_before_the_scripts_reaction() -> None:
    run = events_of_result(library_run("loss-by-hw-truncation[base]"))
    acked = next(p for p, event in enumerate(run.events) if event[1] == "client_ended" and event[4] == "m1")
    answer, reaction = run.events[acked], run.events[acked + 1]
    assert (reaction[0], reaction[1]) == (answer[0], "fault")
    number = run.numbers[acked]
    assert run.numbers[acked + 1] == number + 1
    assert run.trace_event(number + 1) == reaction
    assert run.trace_event(0) is None
    assert run.trace_event(run.last_number + 1) is None
