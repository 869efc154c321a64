"""Clients crash, pause and are replaced, until the fault ends."""

import pytest

from harrow.campaigns.language.loader import CampaignError, load_text
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import HELD
from harrow.faults.clients import ClientCrash, ClientPause, ClientZombie
from harrow.faults.effects import (
    DoubleClient,
    FaultEffect,
    KillClient,
    PauseClient,
    ResumeClient,
    StartClient,
)
from harrow.faults.fault import LastingFault
from tests.faults.test_faults import FakeEnvironment, inject

CAMPAIGN = """
name: clients
cluster: {brokers: 3, topics: [{name: t, replication_factor: 3}]}
settings: {acks: all, enable.idempotence: true, min.insync.replicas: 2}
workload:
  duration: 20s
  producers: [{name: p, rate: 10/s}]
  consumers: [{name: c}]
"""


def run(fault: str, seed: int = 0) -> RunResult:
    (plan,) = load_text(f"{CAMPAIGN}faults: [{{at: 5s, do: {{{fault}}}}}]\n", "c.yaml").plans
    return run_plan(plan, seed)


def sent(result: RunResult) -> dict[int, list[str]]:
    """Return the values that each session of the producer sent."""
    found: dict[int, list[str]] = {}
    for operation in result.evidence.operations:
        if not operation.is_completion:
            for _, _, value in operation.sends():
                found.setdefault(operation.process, []).append(value)
    return found


@pytest.mark.parametrize(
    ("fault", "did", "undone"),
    [
        (ClientCrash(client="producer-0"), KillClient("producer-0"), StartClient("producer-0")),
        (ClientPause(client="consumer-0"), PauseClient("consumer-0"), ResumeClient("consumer-0")),
        (ClientZombie(client="producer-0"), DoubleClient("producer-0"), ResumeClient("producer-0")),
    ],
)
def test_each_client_fault_has_its_effects_and_their_undo(
    fault: LastingFault, did: FaultEffect, undone: FaultEffect
) -> None:
    environment = FakeEnvironment()
    assert inject(fault, environment)
    if isinstance(fault, ClientCrash):
        environment.down.add("producer-0")
    assert environment.did == [did]
    assert fault.end(environment) == [undone]


def test_a_client_fault_does_not_apply_to_a_client_that_is_down_or_paused() -> None:
    environment = FakeEnvironment()
    environment.down.add("consumer-0")
    environment.still.add("producer-0")
    assert not ClientCrash(client="consumer-0").applies(environment)
    assert not ClientPause(client="producer-0").applies(environment)
    assert not ClientZombie(client="producer-0").applies(environment)
    assert not ClientZombie(client="consumer-0").applies(FakeEnvironment())


def test_a_crashed_producer_starts_a_new_session_and_repeats_no_value() -> None:
    result = run("client_crash: {client: p, restart_after: 3s}")
    first, second = sent(result).values()
    assert len(first) < len(second)
    assert len({*first, *second}) == len(first) + len(second)


def test_a_crashed_consumer_reads_on_in_a_new_process() -> None:
    result = run("client_crash: {client: c, restart_after: 3s}")
    readers = {
        operation.process
        for operation in result.evidence.operations
        if result.evidence.process_names[operation.process] == "c"
    }
    assert len(readers) == 2
    assert result.verdict.status == HELD


def test_a_paused_producer_sends_nothing_until_it_resumes() -> None:
    result = run("client_pause: {client: p, duration: 5s}")
    times = [o.time_us for o in result.evidence.operations if not o.is_completion and list(o.sends())]
    assert not [at_us for at_us in times if 5_000_000 < at_us < 10_000_000]
    assert [at_us for at_us in times if at_us > 10_000_000]
    assert result.verdict.status == HELD


def test_a_zombie_works_beside_its_successor() -> None:
    result = run("client_zombie: {client: any, duration: 5s}")
    assert [fault.fault for fault in result.faults] == ["client_zombie"]
    old, new = sent(result)
    last = {operation.process: operation.time_us for operation in result.evidence.operations}
    assert last[old] > 15_000_000
    assert last[new] > 15_000_000
    values = [value for each in sent(result).values() for value in each]
    assert len(values) == len(set(values))
    assert result.verdict.status == HELD


def test_a_fault_of_all_clients_strikes_and_heals_each() -> None:
    result = run("client_pause: {client: all}")
    assert [fault.fault for fault in result.faults] == ["client_pause", "client_pause"]
    assert result.verdict.status == HELD


def test_an_unknown_client_is_an_error() -> None:
    with pytest.raises(CampaignError, match="unknown client `bob`"):
        run("client_crash: {client: bob}")
