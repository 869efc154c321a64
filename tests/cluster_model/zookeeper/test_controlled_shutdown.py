"""The attempts of a broker that stops: whom it asks, what it takes for an answer, and when it gives up."""

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

GONE = ControlledShutdownResponse(errors.NONE, ())
LEFT = ControlledShutdownResponse(errors.NONE, ("t-0",))


class ZooKeeperOf(ZooKeeperClient):
    """ZooKeeper as a test wants it: who stands in /controller, who is registered, whether the session lives."""

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
            found: Any = self.controller
        else:
            found = next((broker for broker in self.registered if path == zk.broker_path(broker)), None)
        return zk.ZooKeeperResult(zk.NO_NODE) if found is None else zk.ZooKeeperResult(zk.OK, found)


class Stopping:
    """Broker 0, which stops."""

    def __init__(self, release: str = "2.4", controller: int | None = 2, **settings: int) -> None:
        self.host = FakeHost("broker-0")
        self.zookeeper = ZooKeeperOf(controller)
        self.epoch = 7
        self.ended: list[int] = []
        given = {f"controlled.shutdown.{name.replace('_', '.')}": value for name, value in settings.items()}
        ControlledShutdown(
            0,
            lambda: self.epoch,
            self.host,
            broker_config(release, given),
            RELEASES[release].behaviours.zookeeper,
            self.zookeeper,
            lambda: self.ended.append(self.host.clock.now_us),
        ).start()

    def asked(self) -> list[tuple[str, int]]:
        """Return who is being asked, with which broker epoch."""
        return [(sent.server, sent.body.broker_epoch) for sent in self.host.requests("ControlledShutdown")]

    def answer(self, response: ControlledShutdownResponse) -> None:
        self.host.take("ControlledShutdown").answer(response)

    def attempts(self) -> list[tuple[int, int, str]]:
        """Return the attempts as (controller, number, error)."""
        return [event[1:4] for event in self.host.named("controlled_shutdown_answered")]


@pytest.mark.parametrize(("release", "epoch"), [("0.10.2", -1), ("0.11", -1), ("2.0", -1), ("2.4", 7)])
def test_the_controller_is_asked_with_the_broker_epoch_since_kip_380(release: str, epoch: int) -> None:
    stopping = Stopping(release)
    assert stopping.asked() == [("broker-2", epoch)]
    stopping.answer(GONE)
    assert stopping.ended == [0]
    assert not stopping.host.named("controlled_shutdown_given_up")


def test_each_attempt_has_the_epoch_of_its_moment() -> None:
    stopping = Stopping()
    stopping.answer(LEFT)
    stopping.epoch = 9
    stopping.host.advance(5 * SECOND)
    assert stopping.asked() == [("broker-2", 9)]


@pytest.mark.parametrize("answer", [LEFT, ControlledShutdownResponse(errors.STALE_CONTROLLER_EPOCH)])
def test_three_attempts_and_a_backoff_after_each_the_last_one_too(answer: ControlledShutdownResponse) -> None:
    stopping = Stopping()
    for attempt in range(3):
        assert stopping.host.clock.now_us == attempt * 5 * SECOND
        stopping.answer(answer)
        assert stopping.asked() == []
        assert stopping.ended == []
        stopping.host.advance(5 * SECOND)
    assert stopping.ended == [15 * SECOND]
    assert stopping.host.named("controlled_shutdown_given_up") == [(0, 3)]


def test_what_is_set_counts() -> None:
    stopping = Stopping(max_retries=2, retry_backoff_ms=100)
    for _ in range(2):
        stopping.answer(LEFT)
        stopping.host.advance(SECOND // 10)
    assert stopping.ended == [SECOND // 5]


def test_without_attempts_it_gives_up_at_once() -> None:
    stopping = Stopping(max_retries=0)
    assert (stopping.asked(), stopping.ended) == ([], [0])


def test_a_controller_that_does_not_answer_is_given_up_after_the_sockets_timeout() -> None:
    stopping = Stopping()
    stopping.host.advance(30 * SECOND)
    assert stopping.attempts() == [(2, 1, errors.NETWORK_EXCEPTION)]
    stopping.host.advance(5 * SECOND)
    assert stopping.asked() == [("broker-2", 7)]


def test_a_new_controller_is_asked_over_a_new_connection() -> None:
    stopping = Stopping()
    stopping.answer(LEFT)
    stopping.zookeeper.controller = 1
    stopping.host.advance(5 * SECOND)
    assert stopping.asked() == [("broker-1", 7)]
    assert [connection.server.name for connection in stopping.host.closed] == ["broker-2"]


@pytest.mark.parametrize(("release", "ended"), [("0.10.2", [0]), ("0.11", [0]), ("2.0", []), ("2.4", [])])
def test_without_a_controller_it_waits_for_one_since_1_1(release: str, ended: list[int]) -> None:
    stopping = Stopping(release, controller=None)
    assert stopping.ended == ended
    if not ended:
        assert stopping.attempts() == [(-1, 1, errors.BROKER_NOT_AVAILABLE)]
        stopping.zookeeper.controller = 2
        stopping.host.advance(5 * SECOND)
        stopping.answer(GONE)
        assert stopping.ended == [5 * SECOND]


@pytest.mark.parametrize("release", RELEASES)
def test_a_controller_whose_registration_is_gone_is_looked_for_again(release: str) -> None:
    stopping = Stopping(release)
    stopping.answer(LEFT)
    stopping.zookeeper.registered = {0}
    stopping.host.advance(5 * SECOND)
    # It has a connection to whoever was controller before, and asks over that.
    assert [server for server, _ in stopping.asked()] == ["broker-2"]


def test_a_session_that_has_expired_is_not_waited_for() -> None:
    stopping = Stopping()
    stopping.answer(LEFT)
    stopping.zookeeper.has_expired = True
    stopping.host.advance(5 * SECOND)
    assert stopping.ended == [5 * SECOND]
