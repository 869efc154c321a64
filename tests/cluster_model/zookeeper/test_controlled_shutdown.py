"""A broker's attempts at a controlled shutdown: the controller, the answers, and when it gives
up."""

from collections.abc import Callable
from typing import Any

import pytest

from harrow.cluster_model import errors
from harrow.cluster_model.protocol import ControlledShutdownResponse
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.settings import broker_config
from harrow.cluster_model.zookeeper.controlled_shutdown import ControlledShutdown
from harrow.cluster_model.zookeeper.service import protocol as zk
from harrow.cluster_model.zookeeper.service.client import ZooKeeperClient
from tests.cluster_model.fakes import SECOND, FakeHost

NONE_LEFT = ControlledShutdownResponse(errors.NONE, ())
ONE_LEFT = ControlledShutdownResponse(errors.NONE, ("t-0",))


class FakeZooKeeper(ZooKeeperClient):
    """ZooKeeper with a controller, registrations and a session that the test decides."""

    def __init__(self, controller: int | None) -> None:
        self.controller = controller
        self.registered = {0, 1, 2}
        self.has_expired = False

    def submit(
        self,
        operations: tuple[zk.ZooKeeperOperation, ...],
        on_response: Callable[[zk.ZooKeeperResponse], None],
        **_: Any,
    ) -> None:
        if self.has_expired:
            on_response(zk.ZooKeeperResponse(zk.SESSION_EXPIRED, ()))
            return
        on_response(
            zk.ZooKeeperResponse(zk.OK, tuple(self._read(operation.path) for operation in operations))
        )

    def _read(self, path: str) -> zk.ZooKeeperResult:
        if path == zk.CONTROLLER:
            data: Any = self.controller
        else:
            data = next((broker for broker in self.registered if path == zk.broker_path(broker)), None)
        return zk.ZooKeeperResult(zk.NO_NODE) if data is None else zk.ZooKeeperResult(zk.OK, data)


class Shutdown:
    """The controlled shutdown of broker 0."""

    def __init__(self, release: str = "2.4", controller: int | None = 2, **settings: int) -> None:
        self.host = FakeHost("broker-0")
        self.zookeeper = FakeZooKeeper(controller)
        self.epoch = 7
        self.ended: list[int] = []
        properties = {
            f"controlled.shutdown.{name.replace('_', '.')}": value for name, value in settings.items()
        }
        ControlledShutdown(
            0,
            lambda: self.epoch,
            self.host,
            broker_config(release, properties),
            RELEASES[release].behaviours.zookeeper,
            self.zookeeper,
            lambda: self.ended.append(self.host.clock.now_us),
        ).start()

    def requests(self) -> list[tuple[str, int]]:
        """Return the pending requests as (broker, broker epoch)."""
        return [(sent.server, sent.body.broker_epoch) for sent in self.host.requests("ControlledShutdown")]

    def answer(self, response: ControlledShutdownResponse) -> None:
        self.host.take("ControlledShutdown").answer(response)

    def attempts(self) -> list[tuple[int, int, str]]:
        """Return the attempts as (controller, number, error)."""
        return [event[1:4] for event in self.host.events_named("controlled_shutdown_answered")]


@pytest.mark.parametrize(("release", "epoch"), [("0.10.2", -1), ("0.11", -1), ("2.0", -1), ("2.4", 7)])
def test_since_kip_380_the_request_has_the_broker_epoch(release: str, epoch: int) -> None:
    shutdown = Shutdown(release)
    assert shutdown.requests() == [("broker-2", epoch)]
    shutdown.answer(NONE_LEFT)
    assert shutdown.ended == [0]
    assert not shutdown.host.events_named("controlled_shutdown_given_up")


def test_each_attempt_has_the_present_broker_epoch() -> None:
    shutdown = Shutdown()
    shutdown.answer(ONE_LEFT)
    shutdown.epoch = 9
    shutdown.host.advance(5 * SECOND)
    assert shutdown.requests() == [("broker-2", 9)]


@pytest.mark.parametrize("answer", [ONE_LEFT, ControlledShutdownResponse(errors.STALE_CONTROLLER_EPOCH)])
def test_three_attempts_are_each_followed_by_a_backoff(answer: ControlledShutdownResponse) -> None:
    shutdown = Shutdown()
    for attempt in range(3):
        assert shutdown.host.clock.now_us == attempt * 5 * SECOND
        shutdown.answer(answer)
        assert shutdown.requests() == []
        assert shutdown.ended == []
        shutdown.host.advance(5 * SECOND)
    assert shutdown.ended == [15 * SECOND]
    assert shutdown.host.events_named("controlled_shutdown_given_up") == [(0, 3)]


def test_the_settings_decide_the_number_of_attempts_and_the_backoff() -> None:
    shutdown = Shutdown(max_retries=2, retry_backoff_ms=100)
    for _ in range(2):
        shutdown.answer(ONE_LEFT)
        shutdown.host.advance(SECOND // 10)
    assert shutdown.ended == [SECOND // 5]


def test_without_retries_the_broker_gives_up_at_once() -> None:
    shutdown = Shutdown(max_retries=0)
    assert (shutdown.requests(), shutdown.ended) == ([], [0])


def test_a_silent_controller_fails_the_attempt_after_the_socket_timeout() -> None:
    shutdown = Shutdown()
    shutdown.host.advance(30 * SECOND)
    assert shutdown.attempts() == [(2, 1, errors.NETWORK_EXCEPTION)]
    shutdown.host.advance(5 * SECOND)
    assert shutdown.requests() == [("broker-2", 7)]


def test_a_new_controller_gets_a_new_connection() -> None:
    shutdown = Shutdown()
    shutdown.answer(ONE_LEFT)
    shutdown.zookeeper.controller = 1
    shutdown.host.advance(5 * SECOND)
    assert shutdown.requests() == [("broker-1", 7)]
    assert [connection.server.name for connection in shutdown.host.closed] == ["broker-2"]


@pytest.mark.parametrize(("release", "ended"), [("0.10.2", [0]), ("0.11", [0]), ("2.0", []), ("2.4", [])])
def test_since_1_1_the_broker_waits_for_a_controller(release: str, ended: list[int]) -> None:
    shutdown = Shutdown(release, controller=None)
    assert shutdown.ended == ended
    if not ended:
        assert shutdown.attempts() == [(-1, 1, errors.BROKER_NOT_AVAILABLE)]
        shutdown.zookeeper.controller = 2
        shutdown.host.advance(5 * SECOND)
        shutdown.answer(NONE_LEFT)
        assert shutdown.ended == [5 * SECOND]


@pytest.mark.parametrize("release", RELEASES)
def test_a_controller_without_a_registration_is_asked_over_the_old_connection(release: str) -> None:
    shutdown = Shutdown(release)
    shutdown.answer(ONE_LEFT)
    shutdown.zookeeper.registered = {0}
    shutdown.host.advance(5 * SECOND)
    # It uses its connection to the former controller.
    assert [server for server, _ in shutdown.requests()] == ["broker-2"]


def test_an_expired_session_ends_the_attempts() -> None:
    shutdown = Shutdown()
    shutdown.answer(ONE_LEFT)
    shutdown.zookeeper.has_expired = True
    shutdown.host.advance(5 * SECOND)
    assert shutdown.ended == [5 * SECOND]
