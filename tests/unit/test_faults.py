"""Each fault against surroundings that only keep what was done to them."""

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from cluster_model.choices import RecordedStream, Stream
from cluster_model.message_rule import MessageRule
from faults.broker_crash import BrokerCrash, BrokerRestart
from faults.broker_isolation import BrokerIsolation
from faults.broker_pause import BrokerPause, BrokerResume
from faults.catalogue import FAULTS
from faults.controller_failover import ControllerFailover
from faults.endpoints import process_name, process_names
from faults.fault import Fault
from faults.fields import draw_duration
from faults.message import Message, Release
from faults.network_ack_loss import NetworkAckLoss
from faults.partition import NetworkPartition
from faults.session_expiry import SessionExpiry
from faults.slow_follower import SlowFollower

SECOND = 1_000_000
Did = list[tuple[Any, ...]]


class FakeSurroundings:
    """Brokers 0, 1 and 2, of which 2 is down and 1 is paused; 0 is the controller and leads t-0."""

    def __init__(self, *drawn: int) -> None:
        self.draw: Stream = RecordedStream(drawn)
        self.did: Did = []
        self.later: list[tuple[int, Callable[[Any], None], Any]] = []
        self.rules: list[MessageRule] = []
        self.running = {0, 1}
        self.paused = {1}
        self.irreplaceable: set[int] = set()
        self.resolved: dict[int | str, int | None] = {"controller": 0, "leader of t-0": 0, "nobody": None}

    @property
    def now_us(self) -> int:
        return 0

    def after(self, delay_us: int, callback: Callable[[Any], None], argument: Any = None) -> None:
        self.later.append((delay_us, callback, argument))

    def resolve_broker(self, reference: int | str) -> int | None:
        return reference if isinstance(reference, int) else self.resolved[reference]

    def broker_ids(self) -> tuple[int, ...]:
        return (0, 1, 2)

    def client_names(self) -> tuple[str, ...]:
        return ("producer-0", "consumer-0")

    def may_lose_power(self, broker: int) -> bool:
        return broker not in self.irreplaceable

    def crash_broker(self, broker: int, *, power_loss: bool) -> None:
        self.did.append(("crash", broker, power_loss))
        self.running.discard(broker)

    def start_broker(self, broker: int) -> None:
        self.did.append(("start", broker))

    def pause_broker(self, broker: int) -> None:
        self.did.append(("pause", broker))

    def resume_broker(self, broker: int) -> None:
        self.did.append(("resume", broker))

    def is_running(self, broker: int) -> bool:
        return broker in self.running

    def is_paused(self, broker: int) -> bool:
        return broker in self.paused

    def expire_session(self, broker: int) -> None:
        self.did.append(("expire", broker))

    def delete_controller_znode(self) -> None:
        self.did.append(("delete /controller",))

    def cut_link(self, sender: int | str, receiver: int | str) -> None:
        self.did.append(("cut", sender, receiver))

    def restore_link(self, sender: int | str, receiver: int | str) -> None:
        self.did.append(("restore", sender, receiver))

    def add_message_rule(self, rule: MessageRule) -> None:
        self.rules.append(rule)

    def remove_message_rule(self, rule: MessageRule) -> None:
        self.rules.remove(rule)

    def release_messages(self, name: str) -> bool:
        self.did.append(("release", name))
        return name == "known"

    def run_later(self) -> list[int]:
        """Let the time pass; return the delays after which something happened."""
        later, self.later = self.later, []
        for _, callback, argument in later:
            callback(argument)
        return [delay_us for delay_us, _, _ in later]


@pytest.mark.parametrize(
    ("fault", "did", "undone"),
    [
        (BrokerCrash(broker=0), [("crash", 0, False)], []),
        (BrokerCrash(broker=0, kind="power_loss"), [("crash", 0, True)], []),
        (BrokerCrash(broker=1), [("crash", 1, False)], []),  # a paused process can be killed
        (
            BrokerCrash(broker="leader of t-0", restart_after=(SECOND, SECOND)),
            [("crash", 0, False)],
            [("start", 0)],
        ),
        (BrokerRestart(broker=2), [("start", 2)], []),
        (BrokerPause(broker=0), [("pause", 0)], []),
        (BrokerPause(broker=0, duration=(SECOND, SECOND)), [("pause", 0)], [("resume", 0)]),
        (BrokerResume(broker=1), [("resume", 1)], []),
        (ControllerFailover(), [("crash", 0, False)], []),
        (ControllerFailover(restart_after=(SECOND, SECOND)), [("crash", 0, False)], [("start", 0)]),
        (ControllerFailover(how="session_expiry"), [("expire", 0)], []),
        (
            ControllerFailover(how="delete_znode", restart_after=(SECOND, SECOND)),
            [("delete /controller",)],
            [],
        ),
        (SessionExpiry(broker=0), [("expire", 0)], []),
        (SessionExpiry(broker=1), [("expire", 1)], []),  # a paused process has a session, too
        (
            BrokerIsolation(broker="leader of t-0", from_="zookeeper", duration=(SECOND, SECOND)),
            [("cut", 0, "zookeeper"), ("cut", "zookeeper", 0)],
            [("restore", 0, "zookeeper"), ("restore", "zookeeper", 0)],
        ),
        (
            BrokerIsolation(broker=0),
            [
                *(("cut", 0, 1), ("cut", 0, 2), ("cut", 0, "zookeeper")),
                *(("cut", 1, 0), ("cut", 2, 0), ("cut", "zookeeper", 0)),
            ],
            [],
        ),
        (Release(id="known"), [("release", "known")], []),
        (
            NetworkPartition(between=(0,), and_=(1, "zookeeper")),
            [("cut", 0, 1), ("cut", 0, "zookeeper"), ("cut", 1, 0), ("cut", "zookeeper", 0)],
            [],
        ),
        (
            NetworkPartition(between=(0, 1), and_=(1, "producer-0"), one_way=True, duration=(SECOND, SECOND)),
            [("cut", 0, 1), ("cut", 0, "producer-0"), ("cut", 1, "producer-0")],
            [("restore", 0, 1), ("restore", 0, "producer-0"), ("restore", 1, "producer-0")],
        ),
    ],
)
def test_what_a_fault_does_and_how_it_ends(fault: Fault, did: Did, undone: Did) -> None:
    surroundings = FakeSurroundings()
    assert fault.inject(surroundings)
    assert surroundings.did == did
    assert surroundings.run_later() == ([SECOND] if undone else [])
    assert surroundings.did[len(did) :] == undone


@pytest.mark.parametrize(
    "fault",
    [
        BrokerCrash(broker=2),
        BrokerCrash(broker="nobody"),
        BrokerRestart(broker=0),
        BrokerRestart(broker=1),
        BrokerRestart(broker="nobody"),
        BrokerPause(broker=1),
        SessionExpiry(broker=2),
        SessionExpiry(broker="nobody"),
        BrokerIsolation(broker="nobody"),
        BrokerPause(broker=2),
        BrokerPause(broker="nobody"),
        BrokerResume(broker=0),
        BrokerResume(broker=2),
        BrokerResume(broker="nobody"),
        SlowFollower(broker="nobody"),
        NetworkAckLoss(broker="nobody"),
    ],
)
def test_a_fault_that_finds_nothing_to_act_on_says_so_and_does_nothing(fault: Fault) -> None:
    surroundings = FakeSurroundings()
    assert not fault.inject(surroundings)
    assert (surroundings.did, surroundings.later, surroundings.rules) == ([], [], [])


@pytest.mark.parametrize("how", ["crash", "session_expiry", "delete_znode"])
@pytest.mark.parametrize("controller", [None, 2])
def test_no_failover_without_a_controller_that_runs(how: Any, controller: int | None) -> None:
    surroundings = FakeSurroundings()
    surroundings.resolved["controller"] = controller
    assert not ControllerFailover(how=how).inject(surroundings)
    assert surroundings.did == []


def test_releasing_what_nobody_holds_finds_nothing() -> None:
    assert not Release(id="unknown").inject(FakeSurroundings())


# Rules for messages


def rule_of(fault: Fault, *drawn: int) -> tuple[MessageRule, FakeSurroundings]:
    surroundings = FakeSurroundings(*drawn)
    assert fault.inject(surroundings)
    (rule,) = surroundings.rules
    assert (rule.matched, rule.applied) == (0, 0)
    return rule, surroundings


def shown(rule: MessageRule) -> dict[str, Any]:
    """Return the fields of a rule that differ from a rule about everything."""
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
                broker="leader of t-0",
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
        (Message(action="drop"), {"name": "message", "action": "drop", "count": 1, "delay_us": SECOND}),
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
def test_the_rule_that_a_fault_puts_in_force(fault: Fault, expected: dict[str, Any]) -> None:
    rule, surroundings = rule_of(fault)
    assert shown(rule) == expected
    assert surroundings.later == []


@pytest.mark.parametrize(
    "fault",
    [NetworkAckLoss(duration=(SECOND, 3 * SECOND)), SlowFollower(broker=0, duration=(SECOND, 3 * SECOND))],
)
def test_a_rule_that_lasts_for_a_while_is_taken_out_of_force(fault: Fault) -> None:
    _, surroundings = rule_of(fault, 1234)
    assert surroundings.run_later() == [SECOND + 1_234_000]
    assert surroundings.rules == []


# Durations, names, catalogue


@pytest.mark.parametrize(
    ("duration", "drawn", "expected"),
    [
        ((SECOND, SECOND), [5], SECOND),
        ((0, 10_000), [0], 0),
        ((0, 10_000), [10], 10_000),
        ((1_500, 1_500), [1], 1_500),  # what is no range is not rounded
        ((SECOND, 10 * SECOND), [9000], 10 * SECOND),
    ],
)
def test_durations_are_drawn_in_whole_milliseconds(
    duration: tuple[int, int], drawn: list[int], expected: int
) -> None:
    assert draw_duration(RecordedStream(drawn), duration) == expected


@pytest.mark.parametrize(
    "fault",
    [
        BrokerCrash(broker=0, restart_after=(SECOND, 3 * SECOND)),
        BrokerPause(broker=0, duration=(SECOND, 3 * SECOND)),
        ControllerFailover(restart_after=(SECOND, 3 * SECOND)),
        NetworkPartition(between=(0,), and_=(1,), duration=(SECOND, 3 * SECOND)),
        BrokerIsolation(broker=0, duration=(SECOND, 3 * SECOND)),
    ],
)
def test_how_long_a_fault_lasts_is_drawn(fault: Fault) -> None:
    surroundings = FakeSurroundings(700)
    assert fault.inject(surroundings)
    assert surroundings.run_later() == [1_700_000]


def test_the_ends_of_a_link_are_processes() -> None:
    assert process_name(3) == "broker-3"
    assert process_names((0, "zookeeper", "producer-0")) == {"broker-0", "zookeeper", "producer-0"}


def test_the_catalogue_has_every_fault_under_its_name() -> None:
    assert set(FAULTS) == {
        "broker_crash",
        "broker_restart",
        "broker_pause",
        "broker_resume",
        "controller_failover",
        "broker_isolation",
        "session_expiry",
        "network_ack_loss",
        "slow_follower",
        "partition",
        "message",
        "release",
    }
    for name, fault in FAULTS.items():
        assert fault.name == name
        described: Any = fault
        assert is_dataclass(described)
        assert all(item.metadata["doc"] for item in fields(described))


def test_power_is_not_lost_where_the_budget_does_not_allow_it() -> None:
    surroundings = FakeSurroundings()
    surroundings.irreplaceable = {0}
    assert not BrokerCrash(broker=0, kind="power_loss").inject(surroundings)
    assert surroundings.did == []
    assert BrokerCrash(broker=0).inject(surroundings)
    assert BrokerCrash(broker=1, kind="power_loss").inject(surroundings)


def test_nobody_is_parted_from_itself() -> None:
    surroundings = FakeSurroundings(0)
    assert not NetworkPartition(between=(0,), and_=(0,), duration=(1, 1)).inject(surroundings)
    assert (surroundings.did, surroundings.later) == ([], [])
    assert NetworkPartition(between=(0,), and_=(0, 1), duration=(1, 1)).inject(surroundings)
    assert {place for _, *links in surroundings.did for place in links} == {0, 1}
