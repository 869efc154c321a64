"""Each fault has its effects in an environment that only records them."""

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from harrow.cluster_model.fields import draw_duration
from harrow.cluster_model.sim.message_rule import HOLD, MessageRule
from harrow.faults.brokers import (
    BrokerBounce,
    BrokerCrash,
    BrokerIsolation,
    BrokerPause,
    BrokerRestart,
    BrokerResume,
    BrokerStop,
)
from harrow.faults.catalogue import FAULTS
from harrow.faults.clocks import ClockSkew
from harrow.faults.control_plane import ControllerFailover, SessionExpiry
from harrow.faults.disks import (
    BitRot,
    DiskFull,
    DiskLoss,
    DiskSlow,
    LogDirFailure,
    StaleCheckpoint,
    TornWrite,
)
from harrow.faults.effects import (
    Cut,
    DamageBatch,
    DeleteController,
    ExpireSession,
    FailLogDir,
    FaultEffect,
    Kill,
    LoseDisk,
    LosePower,
    Pause,
    ReleaseMessages,
    Restore,
    Resume,
    RevertCheckpoint,
    RuleMessages,
    SlowDisk,
    Start,
    StepClock,
    Stop,
    TearWrite,
    Undo,
)
from harrow.faults.fault import Fault, LastingFault, MessageFault, process_name, process_names
from harrow.faults.links import NetworkAckLoss, NetworkPartition, SlowFollower
from harrow.faults.messages import Message, Release
from tests.recorded_choices import RecordedStream

SECOND = 1_000_000
Did = list[FaultEffect]


class FakeEnvironment:
    """Brokers 0, 1 and 2; 2 is down and 1 is paused."""

    def __init__(self) -> None:
        self.strike = 1
        self.did: Did = []
        self.running = {0, 1}
        self.paused = {1}
        self.stopping: set[int] = set()
        self.under_replicated: tuple[str, ...] = ()
        self.irreplaceable: set[int] = set()
        self.without_logs: set[int] = set()
        self.down: set[str] = set()
        self.still: set[str] = set()

    def broker_ids(self) -> tuple[int, ...]:
        return (0, 1, 2)

    def lack(self, effect: FaultEffect) -> str | None:
        return None

    def perform(self, effect: FaultEffect) -> None:
        self.did.append(effect)
        if isinstance(effect, Kill | LosePower):
            self.running.discard(effect.broker)
        elif isinstance(effect, Stop):
            self.stopping.add(effect.broker)

    def client_names(self) -> tuple[str, ...]:
        return ("producer-0", "consumer-0")

    def client(self, name: str) -> "FakeClient":
        return FakeClient(name, self)

    def may_lose_power(self, broker: int) -> bool:
        return broker not in self.irreplaceable

    def has_logs(self, broker: int) -> bool:
        return broker not in self.without_logs

    def may_lose_disk(self, broker: int) -> bool:
        return self.may_lose_power(broker)

    def log_dirs(self) -> int:
        return 2

    def has_batch(self, broker: int, partition: str, offset: int | None) -> bool:
        return (broker, partition) == (0, "t-0") and offset in (None, 0, 1)

    def is_stopping(self, broker: int) -> bool:
        return broker in self.stopping

    def controller(self) -> int | None:
        return 0

    def under_replicated_partitions(self) -> tuple[str, ...]:
        return self.under_replicated

    def is_running(self, broker: int) -> bool:
        return broker in self.running

    def is_paused(self, broker: int) -> bool:
        return broker in self.paused

    def is_link_cut(self, sender: int | str, receiver: int | str) -> bool:
        return Cut(sender, receiver) in self.did

    def message_rules(self) -> tuple[MessageRule, ...]:
        return (MessageRule(name="known", action=HOLD),)


class FakeClient:
    """A client with a running process, unless it is ``down`` or ``still``."""

    def __init__(self, name: str, environment: FakeEnvironment) -> None:
        self._name = name
        self._environment = environment

    def is_running(self) -> bool:
        return self._name not in self._environment.down

    def is_paused(self) -> bool:
        return self._name in self._environment.still

    def can_become_zombie(self) -> bool:
        return self._name.startswith("producer")

    def steps(self) -> tuple[str, ...]:
        return ()

    def held_at(self) -> str | None:
        return None

    def can_be_slowed(self) -> bool:
        return False

    def is_member(self) -> bool:
        return False


def inject(fault: Fault, environment: FakeEnvironment) -> bool:
    """Inject a fault if it has a target, and return whether it has one."""
    if not fault.applies(environment):
        return False
    record_effects(fault.effects(environment), environment)
    return True


def record_effects(effects: Iterable[FaultEffect], environment: FakeEnvironment) -> None:
    for effect in effects:
        environment.perform(effect)


@pytest.mark.parametrize(
    ("fault", "did", "undone"),
    [
        (BrokerCrash(broker=0), [Kill(0)], []),
        (BrokerCrash(broker=0, kind="power_loss"), [LosePower(0)], []),
        (BrokerCrash(broker=1), [Kill(1)], []),  # a paused process can be killed
        (
            BrokerCrash(broker=0, restart_after=(SECOND, SECOND)),
            [Kill(0)],
            [Start(0)],
        ),
        (BrokerRestart(broker=2), [Start(2)], []),
        (DiskLoss(broker=0), [Kill(0), LoseDisk(0)], []),
        (
            DiskLoss(broker=2, restart_after=(SECOND, SECOND)),
            [LoseDisk(2)],  # it is down already
            [Start(2)],
        ),
        (
            TornWrite(broker=0, after=2, restart_after=(SECOND, SECOND)),
            [TearWrite(0, 2)],
            [Start(0)],
        ),
        (
            LogDirFailure(broker=0, log_dir=1, duration=(SECOND, SECOND)),
            [FailLogDir(0, 1, 0)],
            [Undo(FailLogDir(0, 1, 0)), Stop(0), Start(0)],
        ),
        (
            DiskFull(broker=0, log_dir=1, room=500, duration=(SECOND, SECOND)),
            [FailLogDir(0, 1, 500)],
            [Undo(FailLogDir(0, 1, 500)), Stop(0), Start(0)],
        ),
        (
            DiskSlow(broker=0, delay=7, duration=(SECOND, SECOND)),
            [SlowDisk(0, 7)],
            [Undo(SlowDisk(0, 7))],
        ),
        (
            ClockSkew(of=(0, "producer-0", "zookeeper"), by=5, duration=(SECOND, SECOND)),
            [StepClock(0, 5), StepClock("producer-0", 5)],
            [StepClock(0, -5), StepClock("producer-0", -5)],
        ),
        (
            ClockSkew(of=(0,), by=5, direction="backward", duration=(SECOND, SECOND)),
            [StepClock(0, -5)],
            [StepClock(0, 5)],
        ),
        (BitRot(broker=0, partition="t-0"), [DamageBatch(0, "t-0", None)], []),
        (BitRot(broker=0, partition="t-0", offset=1), [DamageBatch(0, "t-0", 1)], []),
        (
            StaleCheckpoint(broker=0, file="leader-epoch-checkpoint", age=SECOND),
            [Kill(0), RevertCheckpoint(0, "leader-epoch-checkpoint", SECOND)],
            [],
        ),
        (BrokerStop(broker=0), [Stop(0)], []),
        (BrokerStop(broker=0, restart_after=(SECOND, SECOND)), [Stop(0)], [Start(0)]),
        (BrokerStop(broker=1), [Stop(1)], []),  # a paused process gets the signal when it resumes
        (BrokerBounce(broker=0), [Stop(0), Start(0)], []),
        (BrokerPause(broker=0), [Pause(0)], []),
        (BrokerPause(broker=0, duration=(SECOND, SECOND)), [Pause(0)], [Resume(0)]),
        (BrokerResume(broker=1), [Resume(1)], []),
        (ControllerFailover(broker=0), [Kill(0)], []),
        (ControllerFailover(broker=0, restart_after=(SECOND, SECOND)), [Kill(0)], [Start(0)]),
        (ControllerFailover(broker=0, how="session_expiry"), [ExpireSession(0)], []),
        (
            ControllerFailover(broker=0, how="delete_znode", restart_after=(SECOND, SECOND)),
            [DeleteController()],
            [],
        ),
        (SessionExpiry(broker=0), [ExpireSession(0)], []),
        (SessionExpiry(broker=1), [ExpireSession(1)], []),  # a paused process has a session, too
        (
            BrokerIsolation(broker=0, from_="zookeeper", duration=(SECOND, SECOND)),
            [Cut(0, "zookeeper"), Cut("zookeeper", 0)],
            [Restore(0, "zookeeper"), Restore("zookeeper", 0)],
        ),
        (
            BrokerIsolation(broker=0),
            [
                *(Cut(0, 1), Cut(0, 2), Cut(0, "zookeeper")),
                *(Cut(1, 0), Cut(2, 0), Cut("zookeeper", 0)),
            ],
            [],
        ),
        (Release(id="known"), [ReleaseMessages("known")], []),
        (
            NetworkPartition(between=(0,), and_=(1, "zookeeper")),
            [Cut(0, 1), Cut(0, "zookeeper"), Cut(1, 0), Cut("zookeeper", 0)],
            [],
        ),
        (
            NetworkPartition(between=(0, 1), and_=(1, "producer-0"), one_way=True, duration=(SECOND, SECOND)),
            [Cut(0, 1), Cut(0, "producer-0"), Cut(1, "producer-0")],
            [Restore(0, 1), Restore(0, "producer-0"), Restore(1, "producer-0")],
        ),
    ],
)
def test_each_fault_has_its_effects_and_their_undo(fault: Fault, did: Did, undone: Did) -> None:
    environment = FakeEnvironment()
    assert inject(fault, environment)
    assert environment.did == did
    lasts_us = fault.lasts_us() if isinstance(fault, LastingFault) else None
    assert lasts_us == (SECOND if undone else None)
    if isinstance(fault, LastingFault) and undone:
        assert fault.is_in_force(environment) != isinstance(fault, BrokerPause)
        record_effects(fault.end(environment), environment)
    assert environment.did[len(did) :] == undone


@pytest.mark.parametrize(
    "fault",
    [
        BrokerCrash(broker=2),
        BrokerRestart(broker=0),
        BrokerRestart(broker=1),
        TornWrite(broker=2),
        BitRot(broker=0, partition="t-0", offset=2),
        BitRot(broker=1, partition="t-0"),
        LogDirFailure(broker=0, log_dir=2),
        DiskFull(broker=0, log_dir=2),
        DiskSlow(broker=2),
        ClockSkew(of=("zookeeper",)),
        BrokerStop(broker=2),
        BrokerBounce(broker=2),
        BrokerPause(broker=1),
        SessionExpiry(broker=2),
        BrokerPause(broker=2),
        BrokerResume(broker=0),
        BrokerResume(broker=2),
    ],
)
def test_a_fault_without_a_target_does_not_apply(fault: Fault) -> None:
    assert not fault.applies(FakeEnvironment())


@pytest.mark.parametrize("fault", [BrokerStop(broker=0), BrokerBounce(broker=0)])
def test_a_stopping_broker_is_not_stopped_again(fault: Fault) -> None:
    environment = FakeEnvironment()
    assert inject(BrokerStop(broker=0), environment)
    assert not fault.applies(environment)


def test_a_stop_is_in_force_until_the_broker_runs_again() -> None:
    environment, stop = FakeEnvironment(), BrokerStop(broker=0)
    assert not stop.is_in_force(environment)
    record_effects(stop.effects(environment), environment)
    assert stop.is_in_force(environment)
    environment.stopping.clear()
    environment.running.remove(0)
    assert stop.is_in_force(environment)


@pytest.mark.parametrize("how", ["crash", "session_expiry", "delete_znode"])
def test_a_controller_that_is_down_does_not_fail_over(how: Any) -> None:
    assert not ControllerFailover(broker=2, how=how).applies(FakeEnvironment())


def test_only_a_failover_by_crash_lasts() -> None:
    assert ControllerFailover(how="crash").is_lasting()
    assert not ControllerFailover(how="session_expiry").is_lasting()


def test_a_release_without_held_messages_does_not_apply() -> None:
    assert not Release(id="unknown").applies(FakeEnvironment())


@pytest.mark.parametrize(
    ("fault", "started"), [(BrokerCrash(broker=0), 0), (ControllerFailover(broker=0), 0)]
)
def test_a_fault_is_not_in_force_after_its_broker_has_started(fault: LastingFault, started: int) -> None:
    environment = FakeEnvironment()
    record_effects(fault.effects(environment), environment)
    assert fault.is_in_force(environment)
    environment.running.add(started)
    assert not fault.is_in_force(environment)


# Rules for messages


def rule_of(fault: Fault) -> MessageRule:
    environment = FakeEnvironment()
    assert inject(fault, environment)
    (effect,) = environment.did
    assert isinstance(effect, RuleMessages)
    rule = effect.rule
    assert (rule.match_count, rule.applied_count) == (0, 0)
    return rule


def special_fields(rule: MessageRule) -> dict[str, Any]:
    """Return the fields of a rule that differ from a rule for all messages."""
    plain = MessageRule(name="", action="")
    values = {item.name: getattr(rule, item.name) for item in fields(MessageRule)}
    return {name: value for name, value in values.items() if value != getattr(plain, name)}


BROKERS = frozenset({"broker-0", "broker-1", "broker-2"})
CLIENTS = frozenset({"producer-0", "consumer-0"})


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (
            NetworkAckLoss(),
            {
                "name": "network_ack_loss",
                "action": "reset",
                "api": "Produce",
                "kind": "response",
                "senders": BROKERS,
                "receivers": CLIENTS,
            },
        ),
        (
            NetworkAckLoss(
                client="producer-0",
                broker=0,
                api="Fetch",
                count=2,
                skip=1,
                probability=0.25,
                how="timeout",
            ),
            {
                "name": "network_ack_loss",
                "action": "drop",
                "api": "Fetch",
                "kind": "response",
                "senders": frozenset({"broker-0"}),
                "receivers": frozenset({"producer-0"}),
                "count": 2,
                "skip": 1,
                "probability_millionths": 250_000,
            },
        ),
        (
            SlowFollower(broker=1),
            {
                "name": "slow_follower",
                "action": "hold",
                "kind": "request",
                "senders": frozenset({"broker-1"}),
                "listener": "replication",
            },
        ),
        (
            SlowFollower(broker=1, mode="slow", delay=500_000),
            {
                "name": "slow_follower",
                "action": "delay",
                "kind": "response",
                "receivers": frozenset({"broker-1"}),
                "listener": "replication",
                "delay_us": 500_000,
            },
        ),
        (
            Message(action="drop", znode="/controller"),
            {
                "name": "message",
                "action": "drop",
                "is_on_the_way": True,
                "count": 1,
                "delay_us": SECOND,
                "znode": "/controller",
            },
        ),
        (
            Message(action="drop"),
            {"name": "message", "action": "drop", "is_on_the_way": True, "count": 1, "delay_us": SECOND},
        ),
        (
            Message(
                action="delay",
                api="Fetch",
                kind="response",
                from_=0,
                to="producer-0",
                count=3,
                skip=2,
                delay=5,
                id="x",
            ),
            {
                "name": "x",
                "is_on_the_way": True,
                "action": "delay",
                "api": "Fetch",
                "kind": "response",
                "senders": frozenset({"broker-0"}),
                "receivers": frozenset({"producer-0"}),
                "count": 3,
                "skip": 2,
                "delay_us": 5,
            },
        ),
    ],
)
def test_each_message_fault_has_its_rule(fault: Fault, expected: dict[str, Any]) -> None:
    assert special_fields(rule_of(fault)) == expected


@pytest.mark.parametrize(
    ("ends", "is_possible"),
    [
        ({}, True),
        ({"api": "ZooKeeper", "from_": 0, "to": "zookeeper"}, True),
        ({"from_": "zookeeper"}, True),
        ({"to": 1}, True),
        ({"api": "Fetch"}, False),
        ({"from_": 0, "to": 1}, False),
        ({"from_": "producer-0"}, False),
    ],
)
def test_only_brokers_and_zookeeper_exchange_messages_about_znodes(
    ends: dict[str, Any], is_possible: bool
) -> None:
    assert (Message(action="drop", znode="/controller", **ends).problem() is None) == is_possible
    assert Message(action="drop", **ends).problem() is None


@pytest.mark.parametrize("fault", [NetworkAckLoss(), SlowFollower(broker=0), Message(action="drop")])
def test_a_message_rule_ends_with_its_fault(fault: MessageFault) -> None:
    (undo,) = fault.end(FakeEnvironment())
    assert isinstance(undo, Undo)
    assert isinstance(undo.effect, RuleMessages)


# Durations, names, catalogue


@pytest.mark.parametrize(
    ("duration", "drawn", "expected"),
    [
        ((SECOND, SECOND), [5], SECOND),
        ((0, 10_000), [0], 0),
        ((0, 10_000), [10], 10_000),
        ((1_500, 1_500), [1], 1_500),  # single values are not rounded
        ((SECOND, 10 * SECOND), [9000], 10 * SECOND),
    ],
)
def test_durations_are_drawn_in_whole_milliseconds(
    duration: tuple[int, int], drawn: list[int], expected: int
) -> None:
    assert draw_duration(RecordedStream(drawn), duration) == expected


def test_the_ends_of_a_link_are_processes() -> None:
    assert process_name(3) == "broker-3"
    assert process_names((0, "zookeeper", "producer-0")) == {"broker-0", "zookeeper", "producer-0"}


def test_the_catalogue_has_every_fault_under_its_name() -> None:
    assert set(FAULTS) == {
        "broker_crash",
        "broker_restart",
        "broker_stop",
        "broker_bounce",
        "rolling_restart",
        "disk_loss",
        "torn_write",
        "bit_rot",
        "log_dir_failure",
        "disk_full",
        "disk_slow",
        "stale_checkpoint",
        "clock_skew",
        "broker_pause",
        "broker_resume",
        "controller_failover",
        "broker_isolation",
        "session_expiry",
        "network_ack_loss",
        "slow_follower",
        "partition",
        "network_split",
        "broker_slow",
        "link_slow",
        "link_reset",
        "client_crash",
        "client_pause",
        "client_zombie",
        "application_crash",
        "application_pause",
        "slow_poll",
        "rebalance_storm",
        "message",
        "release",
    }
    for name, fault in FAULTS.items():
        assert fault.name == name
        described: Any = fault
        assert is_dataclass(described)
        assert all(item.metadata["doc"] for item in fields(described))


def test_a_power_loss_beyond_the_budget_does_not_apply() -> None:
    environment = FakeEnvironment()
    environment.irreplaceable = {0}
    assert not BrokerCrash(broker=0, kind="power_loss").applies(environment)
    assert BrokerCrash(broker=0).applies(environment)
    assert BrokerCrash(broker=1, kind="power_loss").applies(environment)


@pytest.mark.parametrize(
    "fault",
    [
        DiskLoss(broker=0),
        TornWrite(broker=0),
        BitRot(broker=0, partition="t-0"),
        StaleCheckpoint(broker=0, file="leader-epoch-checkpoint"),
    ],
)
def test_a_disk_fault_beyond_the_budget_does_not_apply(fault: Fault) -> None:
    environment = FakeEnvironment()
    assert fault.applies(environment)
    environment.irreplaceable = {0}
    assert not fault.applies(environment)


@pytest.mark.parametrize(
    "fault",
    [
        *(LogDirFailure(broker=0), DiskFull(broker=0), DiskSlow(broker=0)),
        *(TornWrite(broker=0), StaleCheckpoint(broker=0)),
    ],
)
def test_a_fault_of_logs_does_not_apply_to_a_process_without_logs(fault: Fault) -> None:
    environment = FakeEnvironment()
    assert fault.applies(environment)
    environment.without_logs = {0}
    assert not fault.applies(environment)
    assert DiskLoss(broker=0).applies(environment)


def test_no_process_is_cut_off_from_itself() -> None:
    environment = FakeEnvironment()
    assert not inject(NetworkPartition(between=(0,), and_=(0,), duration=(1, 1)), environment)
    assert inject(NetworkPartition(between=(0,), and_=(0, 1), duration=(1, 1)), environment)
    assert environment.did == [Cut(0, 1), Cut(1, 0)]
