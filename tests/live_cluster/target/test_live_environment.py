"""The environment of real brokers handles controllers and brokers that stop by themselves, here
with fake processes.
"""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harrow.checks.evidence import PartitionSettings
from harrow.cluster_model.events import KILLED, POWER_LOSS, SHUT_DOWN
from harrow.cluster_model.sim.message_rule import MessageRule
from harrow.cluster_model.topology import process_name
from harrow.cluster_model.trace import Clock, Trace
from harrow.faults.effects import (
    Cut,
    ExpireSession,
    Kill,
    LosePower,
    Pause,
    Restore,
    Resume,
    RuleMessages,
    Start,
    Stop,
)
from harrow.live_cluster.broker_logs.log_lines import RefusalLine
from harrow.live_cluster.local.started_effects import STARTED
from harrow.live_cluster.target.live_environment import LiveEnvironment


class FakeBroker:
    """A broker's process."""

    def __init__(self) -> None:
        self.is_running = True
        self.is_paused = False
        self.starts = 0

    def poll(self) -> None:
        pass

    def start(self) -> None:
        self.is_running = True
        self.starts += 1

    def kill(self) -> None:
        self.is_running = False

    def stop(self) -> None:
        """Return before the process has ended."""

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False


class Cluster:
    """Broker 0, and optionally separate controllers.

    The broker's registration ends with it by default.
    """

    def __init__(
        self,
        *,
        hangs: bool = False,
        keeps_registrations: bool = False,
        controllers: tuple[int, ...] = (),
        settings: Mapping[str, PartitionSettings] | None = None,
    ) -> None:
        clock = Clock()
        clock.now_us = 0
        self.trace = Trace(clock)
        self.broker = FakeBroker()
        self.stopping: set[int] = set()
        self.controllers = {controller: FakeBroker() for controller in controllers}
        self.expired: list[int] = []
        self.cuts: list[tuple[int | str, int | str]] = []
        self.rules: list[MessageRule] = []
        self.outside: list[int] = []
        self.is_registered = True
        self.observed_metadata: Any = None
        self.power_losses = 0
        disk = SimpleNamespace(
            observe=lambda *_: None,
            open=lambda: None,
            leo=lambda _: 5,
            lose_power=lambda _: self._lose_power(),
        )
        observer: Any = SimpleNamespace(
            controller=lambda: None,
            led_by=lambda _: frozenset(),
            partition_state=lambda _: (4, 1, (4,)),
            replicas_of=lambda _: (0, 1),
            replica=lambda *_: self.observed_metadata,
            electable=lambda _: (0, 1),
            is_registered=lambda _: self.is_registered,
        )
        cluster: Any = SimpleNamespace(
            brokers={0: self.broker},
            control=SimpleNamespace(
                keeps_registrations=keeps_registrations,
                controllers=self.controllers,
                process_names=tuple(map(process_name, controllers)) or ("zookeeper",),
                expire_session=self.expired.append,
            ),
            observed_metadata=SimpleNamespace(stopping=self.stopping),
            links=SimpleNamespace(
                restore_all=self.cuts.clear,
                restore_all_but=lambda outside: setattr(self, "outside", outside),
                forget=lambda _: None,
                cut=lambda *link: self.cuts.append(link),
                restore=lambda *link: self.cuts.remove(link),
                is_cut_one_way=lambda *link: link in self.cuts,
                add_rule=self.rules.append,
            ),
            logs={0: disk, 1: disk},
        )
        self.environment = LiveEnvironment(
            cluster,
            STARTED,
            cast("Any", SimpleNamespace(names=(), client=None)),
            observer,
            self.trace,
            {0: cast("Any", SimpleNamespace(forget=lambda: None))},
            lambda: 0,
            lambda: None,
            lambda: settings or {},
            survivable=settings is not None,
            hangs=hangs,
        )
        self.environment.report_start()

    def _lose_power(self) -> None:
        self.power_losses += 1

    def events(self, name: str) -> list[tuple[Any, ...]]:
        return [event[2:] for event in self.trace.events if event[1] == name]


@pytest.mark.parametrize(("leader", "shown"), [(1, 1), (None, 4)])
def test_a_broker_that_refuses_to_truncate_is_stopping(leader: int | None, shown: int) -> None:
    cluster = Cluster(hangs=False)
    cluster.environment.report_truncation_refusal(0, RefusalLine("t-0", leader, 1, 2))
    assert cluster.events("truncation_refused") == [(0, "t-0", shown, 1, 2)]
    assert cluster.events("broker_stopping") == [(0,)]
    assert cluster.environment.is_stopping(0)
    cluster.broker.is_running = False
    cluster.environment.check_nodes()
    assert cluster.events("broker_stopped") == [(0, SHUT_DOWN)]


def test_healing_kills_and_restarts_a_broker_that_hangs_while_it_stops() -> None:
    cluster = Cluster(hangs=True)
    cluster.environment.report_truncation_refusal(0, RefusalLine("t-0", 1, 1, 2))
    cluster.environment.check_nodes()
    assert (cluster.environment.is_stopping(0), cluster.broker.starts) == (True, 0)
    cluster.environment.heal()
    assert cluster.events("broker_stopped") == [(0, KILLED)]
    assert (cluster.environment.is_stopping(0), cluster.broker.starts) == (False, 1)


def test_healing_a_core_leaves_other_brokers_alone() -> None:
    cluster = Cluster(controllers=(3_000,))
    environment = cluster.environment
    environment.perform(Pause(0))
    environment.perform(Kill(3_000))
    environment.heal_core([])
    assert (cluster.outside, environment.is_paused(0), cluster.controllers[3_000].starts) == ([0], True, 1)
    environment.heal_core([0])
    assert (cluster.outside, environment.is_paused(0)) == ([], False)


def test_healing_a_core_does_not_start_a_waiting_broker_outside_it() -> None:
    cluster = Cluster(keeps_registrations=True)
    cluster.environment.perform(Kill(0))
    cluster.environment.perform(Start(0))
    cluster.environment.heal_core([])
    cluster.is_registered = False
    cluster.environment.check_nodes()
    assert cluster.broker.starts == 0
    cluster.environment.heal()
    assert cluster.broker.starts == 1


def waiting() -> Cluster:
    """Return a cluster whose broker waits for the end of its old registration to start."""
    cluster = Cluster(keeps_registrations=True)
    cluster.environment.perform(Kill(0))
    cluster.environment.perform(Start(0))
    assert (cluster.environment.is_running(0), cluster.broker.starts) == (True, 0)
    return cluster


def test_a_broker_stopped_before_it_could_start_stays_down() -> None:
    cluster = waiting()
    cluster.environment.perform(Stop(0))
    cluster.is_registered = False
    cluster.environment.check_nodes()
    assert (cluster.environment.is_running(0), cluster.broker.starts) == (False, 0)
    cluster.environment.perform(Start(0))
    assert (cluster.environment.is_stopping(0), cluster.broker.starts) == (False, 1)


def test_a_power_loss_cancels_the_restart_of_a_stopping_broker() -> None:
    cluster = Cluster()
    environment = cluster.environment
    environment.perform(Stop(0))
    environment.perform(Start(0))
    assert (environment.is_stopping(0), cluster.broker.starts) == (True, 0)
    environment.perform(LosePower(0))
    assert cluster.events("broker_stopped") == [(0, POWER_LOSS)]
    environment.check_nodes()
    assert (environment.is_running(0), cluster.broker.starts, cluster.power_losses) == (False, 0, 1)


def test_a_power_loss_cancels_the_start_of_a_waiting_broker() -> None:
    cluster = waiting()
    cluster.environment.perform(LosePower(0))
    cluster.is_registered = False
    cluster.environment.check_nodes()
    assert (cluster.environment.is_running(0), cluster.broker.starts, cluster.power_losses) == (False, 0, 1)


def test_a_broker_paused_before_it_could_start_starts_when_it_is_resumed() -> None:
    cluster = waiting()
    cluster.environment.perform(Pause(0))
    cluster.is_registered = False
    cluster.environment.check_nodes()
    assert (cluster.environment.is_paused(0), cluster.broker.starts) == (True, 0)
    cluster.environment.perform(Resume(0))
    cluster.environment.check_nodes()
    assert (cluster.environment.is_paused(0), cluster.broker.starts) == (False, 1)


def test_a_broker_that_refuses_several_truncations_stops_once() -> None:
    cluster = Cluster(hangs=False)
    for partition in ("t-0", "t-1"):
        cluster.environment.report_truncation_refusal(0, RefusalLine(partition, 1, 1, 2))
    assert len(cluster.events("truncation_refused")) == 2
    assert cluster.events("broker_stopping") == [(0,)]


def test_a_broker_killed_while_it_stops_closes_no_session() -> None:
    cluster = Cluster(hangs=True)
    cluster.environment.report_truncation_refusal(0, RefusalLine("t-0", 1, 1, 2))
    assert cluster.stopping == {0}
    cluster.environment.perform(Kill(0))
    assert cluster.stopping == set()


def test_healing_waits_for_a_broker_that_is_shutting_down() -> None:
    cluster = Cluster(hangs=False)
    cluster.environment.report_truncation_refusal(0, RefusalLine("t-0", 1, 1, 2))
    cluster.environment.heal()
    assert (cluster.events("broker_stopped"), cluster.broker.starts) == ([], 0)
    cluster.broker.is_running = False
    cluster.environment.check_nodes()
    assert (cluster.events("broker_stopped"), cluster.broker.starts) == ([(0, SHUT_DOWN)], 1)


def test_a_separate_controller_is_killed_and_started_like_a_broker() -> None:
    cluster = Cluster(controllers=(3000,))
    environment, controller = cluster.environment, cluster.controllers[3000]
    assert cluster.events("broker_started") == [(0,), (3000,)]
    # It is not listed among the brokers.
    assert environment.broker_ids() == (0,)
    environment.perform(Kill(3000))
    assert (environment.is_running(3000), cluster.events("broker_stopped")) == (False, [(3000, KILLED)])
    environment.perform(Start(3000))
    assert (environment.is_running(3000), controller.starts) == (True, 1)
    assert cluster.events("broker_started")[2:] == [(3000,)]


def test_healing_starts_a_controller_that_ended_by_itself() -> None:
    cluster = Cluster(controllers=(3000,))
    cluster.controllers[3000].is_running = False
    cluster.environment.check_nodes()
    assert cluster.events("broker_stopped") == [(3000, KILLED)]
    cluster.environment.heal()
    assert cluster.controllers[3000].starts == 1


def test_healing_resumes_a_paused_controller() -> None:
    cluster = Cluster(controllers=(3000,))
    cluster.environment.perform(Pause(3000))
    assert cluster.environment.is_paused(3000)
    cluster.environment.heal()
    assert not cluster.environment.is_paused(3000)


def test_a_controller_without_partitions_survives_a_power_loss() -> None:
    cluster = Cluster(controllers=(3000,))
    cluster.environment.perform(LosePower(3000))
    assert cluster.events("broker_stopped") == [(3000, POWER_LOSS)]


def test_a_survivable_run_allows_no_power_loss_before_a_high_watermark_is_known() -> None:
    settings = PartitionSettings(
        replicas=(0, 1),
        min_insync_replicas=1,
        unclean_leader_election=False,
        flush_messages=1,
        on_broker={0: cast("Any", SimpleNamespace(min_insync_replicas=1))},
    )
    cluster = Cluster(settings={"t-0": settings})
    assert not cluster.environment.may_lose_power(0)
    cluster.observed_metadata = SimpleNamespace(hw=5)
    assert cluster.environment.may_lose_power(0)


def test_the_control_plane_expires_the_session_of_a_controller() -> None:
    cluster = Cluster(controllers=(3000,))
    cluster.environment.perform(ExpireSession(3000))
    assert cluster.expired == [3000]


def test_known_flawskeeper_as_the_end_of_a_link_means_every_controller_in_kraft() -> None:
    cluster = Cluster(controllers=(3000, 3001))
    environment = cluster.environment
    environment.perform(Cut(0, "zookeeper"))
    assert cluster.cuts == [(0, "controller-3000"), (0, "controller-3001")]
    assert environment.is_link_cut(0, "zookeeper")
    environment.perform(Restore(0, "controller-3001"))
    assert not environment.is_link_cut(0, "zookeeper")
    environment.perform(Restore(0, "controller-3000"))
    environment.perform(RuleMessages(MessageRule(name="r", action="drop", senders=frozenset({"zookeeper"}))))
    assert cluster.rules[0].senders == frozenset({"controller-3000", "controller-3001"})
    with_zookeeper = Cluster()
    with_zookeeper.environment.perform(Cut("zookeeper", 0))
    assert with_zookeeper.cuts == [("zookeeper", 0)]
