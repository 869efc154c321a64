"""Faults strike the requests of real clients, by client id, and the program that harrow starts."""

import sys
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Producer

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.run_result import RunResult
from harrow.checks.finding import HELD
from harrow.cluster_model.sim.link_quality import LinkQuality
from harrow.live_cluster.serve.client_links import OTHER_CLIENTS, ClientLinks
from harrow.live_cluster.serve.client_program import ClientProgram
from harrow.live_cluster.serve.served_environment import obstacles
from tests.live_cluster.serve.test_served_run import run_with
from tests.patience import PATIENCE_S

CAMPAIGN: Final = """
name: struck-clients
kafka: "4.3"
cluster: {brokers: 1, topics: [{name: t}]}
workload: {producers: [{name: app}], duration: 60s}
"""


def produce(servers: str, **settings: Any) -> None:
    """Send a record, and wait until it is acknowledged."""
    errors: list[Any] = []
    options = {"bootstrap.servers": servers, "client.id": "app", "retry.backoff.ms": 10, **settings}
    producer = Producer(options)
    producer.produce("t", b"v", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(PATIENCE_S) == 0
    assert errors == [None]


def appended(result: RunResult) -> int:
    """Return how many records are in the log at the end."""
    return next(iter(result.evidence.replicas["t-0"].values())).leo


def ack_loss(**fields: object) -> str:
    words = ", ".join(f"{key}: {value}" for key, value in {"count": 1, **fields}.items())
    return f"{CAMPAIGN}script: [{{at: 0s, do: {{network_ack_loss: {{{words}}}}}}}]\n"


@pytest.mark.parametrize(
    ("fields", "client_id", "count"),
    [
        ({"client": "app"}, "app", 2),
        ({"client": "app"}, "another", 1),
        ({}, "app", 2),
        ({}, "another", 2),
    ],
)
def test_a_lost_acknowledgement_makes_the_named_client_send_again(
    fields: dict[str, object], client_id: str, count: int
) -> None:
    settings = {"client.id": client_id, "enable.idempotence": False}
    result = run_with(ack_loss(**fields), lambda servers: produce(servers, **settings))
    assert appended(result) == count


def test_an_idempotent_client_sends_again_without_a_duplicate() -> None:
    result = run_with(
        ack_loss(client="app"), lambda servers: produce(servers, **{"enable.idempotence": True})
    )
    assert (result.verdict.status, appended(result)) == (HELD, 1)
    kinds = [event[1] for event in result.evidence.trace]
    assert kinds.count("message_rule") == kinds.count("duplicate_batch") == 1


def test_a_client_waits_for_its_request_timeout_if_only_the_response_is_lost() -> None:
    settings = {"request.timeout.ms": 1_000, "socket.timeout.ms": 1_100, "enable.idempotence": False}
    result = run_with(ack_loss(how="timeout"), lambda servers: produce(servers, **settings))
    assert appended(result) == 2


@pytest.mark.parametrize("one_way", ["true", "false"])
def test_no_packet_of_a_client_passes_a_cut_link(one_way: str) -> None:
    cut = f"{{between: clients, and: brokers, one_way: {one_way}, duration: 2s}}"
    text = f"{CAMPAIGN}script: [{{at: 0s, do: {{partition: {cut}}}}}]\n"
    result = run_with(text, produce)
    acked_us = max(each.time_us for each in result.evidence.operations if each.type == "ok")
    assert result.verdict.status == HELD
    assert acked_us >= 2_000_000


class _Network:
    """Notes what happens to the links of a network."""

    def __init__(self) -> None:
        self.cuts: list[tuple[str, str]] = []
        self.slow: list[tuple[str, str]] = []
        self.is_cut_one_way = self.remove_rules = None

    def cut(self, *link: str) -> None:
        self.cuts.append((link[0], link[1]))

    def restore(self, *link: str) -> None:
        self.cuts.remove((link[0], link[1]))

    def degrade(self, sender: str, receiver: str, _: LinkQuality) -> None:
        self.slow.append((sender, receiver))

    def recover(self, sender: str, receiver: str, _: LinkQuality) -> None:
        self.slow.remove((sender, receiver))

    def rules(self) -> tuple[()]:
        return ()


def test_a_fault_of_other_clients_also_strikes_those_that_connect_later_and_then_ends_for_all() -> None:
    network: Any = _Network()
    links = ClientLinks(network)
    quality = LinkQuality(latency_us=1)
    links.join("early")
    links.cut(OTHER_CLIENTS, "broker-0")
    links.degrade("broker-0", OTHER_CLIENTS, quality)
    links.join("late")
    names = {OTHER_CLIENTS, "early", "late"}
    assert {sender for sender, _ in network.cuts} == {receiver for _, receiver in network.slow} == names
    links.restore(OTHER_CLIENTS, "broker-0")
    links.recover("broker-0", OTHER_CLIENTS, quality)
    links.join("last")
    assert network.cuts == network.slow == []


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ("client_pause: {client: app}", "client_pause: harrow can pause and kill only a program"),
        ("client_zombie: {client: app}", "client_zombie: harrow does not control what happens inside"),
        ("clock_skew: {of: app}", "clock_skew: harrow cannot change the clock of a real client"),
        ("send: v", "send: only the campaign's own clients do that"),
    ],
)
def test_what_no_real_client_does_is_refused(action: str, reason: str) -> None:
    (plan,) = load_text(f"{CAMPAIGN}script: [{{do: {{{action}}}}}]\n", "c.yaml").plans
    assert any(obstacle.startswith(reason) for obstacle in obstacles(plan, has_program=False))


@pytest.mark.parametrize("fault", ["client_pause", "client_crash"])
def test_a_program_that_harrow_starts_may_be_paused_and_killed(fault: str) -> None:
    (plan,) = load_text(f"{CAMPAIGN}script: [{{do: {{{fault}: {{client: app}}}}}}]\n", "c.yaml").plans
    assert list(obstacles(plan, has_program=True)) == []


def test_a_killed_program_starts_again_and_its_exit_code_is_that_of_the_last_start(tmp_path: Path) -> None:
    code = "import pathlib, sys, time; pathlib.Path(sys.argv[1]).touch(); time.sleep(600)"
    program = ClientProgram([sys.executable, "-c", code, str(tmp_path / "x")], None, own_group=True)
    program.start()
    assert program.is_running
    program.pause()
    program.resume()
    program.kill()
    assert (program.is_running, program.is_killed, program.code) == (False, True, 0)
    program.command = [sys.executable, "-c", "raise SystemExit(3)"]
    program.start()
    assert program._process is not None
    program._process.wait(PATIENCE_S)
    assert (program.is_running, program.is_killed, program.code) == (False, False, 3)
