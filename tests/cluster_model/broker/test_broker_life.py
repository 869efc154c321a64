"""A broker handles no request before it is registered or after it has closed its logs.

After that it neither answers nor appends.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import pytest

from harrow.cluster_model.broker.broker import Broker
from harrow.cluster_model.broker.client_quota_manager import ClientQuotas
from harrow.cluster_model.controller.control_plane import ControlPlane, LifecycleListener
from harrow.cluster_model.events import KILLED, SHUT_DOWN
from harrow.cluster_model.log.disk import Disk
from harrow.cluster_model.protocol import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    LeaderAndIsr,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    MetadataRequest,
    ProduceRequest,
    UpdateMetadataRequest,
)
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.settings import Value, broker_config
from harrow.cluster_model.sim.connection import Connection, Exchange
from harrow.cluster_model.topic_settings import TopicConfigs
from harrow.cluster_model.topology import QuotaSpec
from tests.cluster_model.fakes import SECOND, FakeEndpoint, FakeHost, batch


class FakeControlPlane:
    """A control plane that registers a broker for a test, and records the broker's requests."""

    def __init__(self, actions: list[str]) -> None:
        self.actions = actions
        self.is_active_controller = False
        self.alter_partition_manager = self
        self.on_altered: Callable[[int | None], None] | None = None
        self.relieved: Callable[[], None] | None = None
        self.closed: Callable[[], None] | None = None

    def join(self, *parts: Any) -> "FakeControlPlane":
        self.listener: LifecycleListener = parts[-1]
        return self

    def start(self) -> None:
        """Start nothing."""

    def submit(
        self, partition: str, state: LeaderAndIsr, epoch: int, on_altered: Callable[..., None], _: object
    ) -> None:
        self.on_altered = on_altered

    def generate_producer_id(self, on_generated: Callable[[InitProducerIdResponse], None]) -> None:
        self.on_generated = on_generated

    def propagate_log_dir_failure(self, partitions: tuple[str, ...]) -> None:
        """Do nothing, because no disk fails here."""

    def request_controlled_shutdown(self, on_ended: Callable[[], None]) -> None:
        self.actions.append("controller asked")
        self.relieved = on_ended

    def close(self, on_closed: Callable[[], None]) -> None:
        self.actions.append("session closed")
        self.closed = on_closed


class BrokerHarness:
    """Broker 1, registered, leader of t-0 with the ISR [1, 2]."""

    def __init__(
        self,
        *,
        registered: bool = True,
        release: str = "2.4",
        quotas: Sequence[QuotaSpec] = (),
        topic: Mapping[str, Value] | None = None,
        rates: Mapping[str, Value] | None = None,
        **settings: bool,
    ) -> None:
        self.host, self.disk, self.actions = FakeHost("broker-1"), Disk(), list[str]()
        self.opened: list[int] = []
        self.office = FakeControlPlane(self.actions)
        options = {f"controlled.shutdown.{name}": value for name, value in settings.items()}
        config = broker_config(release, {**options, **(rates or {})})
        behaviours = RELEASES[release].behaviours
        self.broker = Broker(
            1,
            self.host,
            self.disk,
            config,
            TopicConfigs({"t": topic or {}}, config),
            behaviours,
            cast("ControlPlane", self.office),
            quotas=ClientQuotas.from_specs(
                quotas, self.host.clock, config, behaviours.replication, ("reader",)
            ),
        )
        self.broker.start(lambda: self.opened.append(self.host.clock.now_us))
        if registered:
            self.office.listener.on_registration(5)
            state = LeaderAndIsrPartitionState(1, LeaderAndIsr(1, 0, (1, 2), 0), (1, 2, 3))
            self.send(UpdateMetadataRequest(0, 1, 5, {"t-0": state}, (1, 2, 3)))
            self.send(LeaderAndIsrRequest(0, 1, 5, {"t-0": state}))
        self.host.responses.clear()

    def send(self, body: Any) -> Connection:
        connection = self.host.connect("broker-1", "client", FakeEndpoint(self.host.clock))
        self.broker.receive_request(Exchange(connection, 1, body))
        return connection

    def produce(self, value: str, acks: int = 1) -> Connection:
        return self.send(ProduceRequest(acks, 30 * SECOND, {"t-0": batch(value)}))

    def stop(self) -> None:
        self.broker.stop(lambda: self.actions.append("sockets closed"), self.actions.append)

    def log(self) -> list[str]:
        return [value for stored in self.disk.log_file("t-0").batches for value in stored.values]


def test_up_to_3_4_sockets_open_at_the_start_and_requests_wait_for_the_registration() -> None:
    harness = BrokerHarness(registered=False, release="2.8")
    assert harness.opened == [0]
    harness.send(MetadataRequest())
    assert not harness.host.responses
    harness.office.listener.on_registration(5)
    assert len(harness.host.responses) == 1
    harness.office.listener.on_unfencing()
    assert harness.opened == [0]


def test_since_3_5_sockets_open_when_the_broker_is_unfenced() -> None:
    """KAFKA-14658: an earlier connection is refused, and its client asks another broker."""
    harness = BrokerHarness(registered=False, release="3.6")
    harness.office.listener.on_registration(5)
    assert not harness.opened
    harness.host.advance(SECOND)
    harness.office.listener.on_unfencing()
    harness.office.listener.on_unfencing()
    assert harness.opened == [SECOND]
    harness.send(MetadataRequest())
    assert len(harness.host.responses) == 1


def test_a_broker_that_stops_before_it_is_unfenced_opens_no_sockets() -> None:
    harness = BrokerHarness(registered=False, release="3.6", enable=False)
    harness.office.listener.on_registration(5)
    harness.stop()
    harness.office.listener.on_unfencing()
    assert not harness.opened


def test_a_stopping_broker_serves_until_its_leaderships_have_moved_and_then_closes_its_session() -> None:
    harness = BrokerHarness()
    harness.stop()
    harness.produce("a")
    assert (harness.actions, harness.log(), len(harness.host.responses)) == (["controller asked"], ["a"], 1)
    assert harness.office.relieved is not None
    harness.office.relieved()
    assert harness.actions == ["controller asked", "sockets closed", "session closed"]
    assert harness.disk.log_file("t-0").flushed_offset == 1
    assert harness.disk.clean_shutdown_file
    assert harness.office.closed is not None
    harness.office.closed()
    assert harness.actions[3:] == [SHUT_DOWN]


def test_without_controlled_shutdown_a_broker_asks_no_controller() -> None:
    harness = BrokerHarness(enable=False)
    harness.stop()
    assert harness.actions == ["sockets closed", "session closed"]


def test_a_broker_that_never_registered_halts() -> None:
    harness = BrokerHarness(registered=False)
    harness.stop()
    assert harness.actions == [KILLED]
    assert not harness.disk.clean_shutdown_file


def test_a_stopped_broker_handles_no_requests() -> None:
    harness = BrokerHarness(enable=False)
    harness.stop()
    harness.produce("late")
    assert (harness.log(), harness.host.responses) == ([], [])


def test_a_stopped_broker_neither_answers_a_waiting_produce_nor_handles_later_requests() -> None:
    harness = BrokerHarness(enable=False)
    connection = harness.produce("a", acks=-1)
    harness.broker.receive_request(
        Exchange(connection, 2, ProduceRequest(1, 30 * SECOND, {"t-0": batch("b")}))
    )
    harness.stop()
    harness.host.advance(60 * SECOND)
    assert (harness.log(), harness.host.responses) == (["a"], [])
    assert harness.host.events_named("rejected") == []


def test_an_answer_after_the_stop_is_dropped_and_admits_no_request() -> None:
    harness = BrokerHarness(enable=False)
    connection = harness.send(InitProducerIdRequest())
    harness.broker.receive_request(
        Exchange(connection, 2, ProduceRequest(1, 30 * SECOND, {"t-0": batch("b")}))
    )
    harness.stop()
    harness.office.on_generated(InitProducerIdResponse("NONE", 7, 0))
    assert (harness.log(), harness.host.responses) == ([], [])


@pytest.mark.parametrize("written", [3, None])
def test_a_produce_that_waited_for_an_isr_write_is_not_appended_to_a_closed_log(written: int | None) -> None:
    harness = BrokerHarness(enable=False)
    # Broker 2 leaves the ISR because it has not fetched for too long.
    harness.produce("a")
    harness.host.advance(30 * SECOND)
    assert harness.office.on_altered is not None
    harness.produce("blocked")
    harness.stop()
    harness.office.on_altered(written)
    assert harness.log() == ["a"]
    assert harness.disk.log_file("t-0").flushed_offset == 1


def test_a_stopped_broker_shrinks_no_isr() -> None:
    harness = BrokerHarness(enable=False)
    harness.produce("a")
    harness.stop()
    harness.host.advance(60 * SECOND)
    assert harness.office.on_altered is None
