"""A run needs only a target, which can be as small as this one."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from harrow.campaigns.clients.client import Client, Reader, Sender
from harrow.campaigns.clients.clients import CLIENTS, ClientKind, Clients
from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.runner import Run
from harrow.campaigns.run.targets.target import CommittedCopies, Patience
from harrow.checks.evidence import Evidence, FinalLog, PartitionSettings, ProducerSettings
from harrow.cluster_model.history import History
from harrow.cluster_model.settings import BrokerConfig, broker_config
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.topology import ConsumerSpec, ProducerSpec
from harrow.cluster_model.trace import Clock, Trace
from harrow.faults.effects import Kill, Start
from harrow.faults.event_pattern import EventPattern
from tests.faults.test_conditions import StillReplica
from tests.faults.test_faults import FakeEnvironment

SECOND = 1_000_000


class OneLog(Clock):
    """A minimal cluster: a clock, timers, and a log that loses nothing."""

    kind = "one log"
    patience: Patience | None = None
    invariants: Collection[str] = ()

    def __init__(self, producers: tuple[ProducerSpec, ...]) -> None:
        self.now_us = 0
        self.events_handled = 0
        self.trace = Trace(self)
        self.history = History()
        self.log: list[str] = []
        self.timers: list[tuple[int, Callable[[Any], None], Any]] = []
        self.environment = FakeEnvironment()
        self.observer = self
        self.clients = Clients(producers, self.kind, self)

    # Time

    def start(self) -> None:
        pass

    def advance(self, until_us: int) -> None:
        while self.step(until_us):
            pass
        self.now_us = max(self.now_us, until_us)

    def step(self, until_us: int) -> bool:
        due = sorted((timer for timer in self.timers if timer[0] <= until_us), key=lambda timer: timer[0])
        for timer in due[:1]:
            self.timers.remove(timer)
            self.now_us, callback, argument = timer
            callback(argument)
            self.events_handled += 1
        return bool(due)

    def at(self, at_us: int, callback: Callable[[Any], None], argument: Any = None) -> None:
        self.timers.append((at_us, callback, argument))

    def heal(self) -> None:
        self.timers.clear()

    def heal_core(self, brokers: Collection[int]) -> None:
        self.heal()

    def watch_messages(self) -> None:
        pass

    def watch_fetches(self) -> None:
        pass

    def elect_preferred_leaders(self) -> None:
        pass

    def alter_partition_reassignment(self, partition: str, target: tuple[int, ...] | None) -> None:
        pass

    def add_broker(self, broker: int) -> None:
        pass

    def throttle_replication(self, rate: int | None) -> None:
        pass

    def delete_records(self, partition: str, offset: int) -> None:
        pass

    def create_partitions(self, topic: str, total: int) -> None:
        pass

    # Observations

    def committed_copies(self) -> dict[str, CommittedCopies]:
        return {}

    def partition_names(self) -> tuple[str, ...]:
        return ("t-0",)

    def assignment(self, partition: str) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        return ((0, 1, 2), (), ())

    def replica(self, partition: str, broker: int) -> StillReplica:
        end = len(self.log)
        role = "leader" if broker == 0 else "follower"
        return StillReplica(role, end, end, 0, end, {}, ((0, 0),), tuple(self.log))

    def partition_state(self, partition: str) -> tuple[int, int, tuple[int, ...]]:
        return (0, 0, (0, 1, 2))

    def controller(self) -> int:
        return 0

    def quorum(self) -> tuple[int, ...]:
        return ()

    def quorum_leader(self) -> None:
        return None

    def replicas_of(self, partition: str) -> tuple[int, ...]:
        return (0, 1, 2)

    def electable(self, partition: str) -> tuple[int, ...]:
        return (0, 1, 2)

    def recovery_sets(self, partition: str) -> tuple[tuple[int, ...], ...]:
        return ((0, 1, 2),)

    def broker_state(self, broker: int) -> str:
        return "up"

    def is_registered(self, broker: int) -> bool:
        return True

    def is_impaired(self, broker: int) -> bool:
        return False

    def is_stuck(self, partition: str, broker: int) -> bool:
        return False

    def is_acked(self, value: str) -> bool:
        return value in self.log

    def is_failed(self, value: str) -> bool:
        return False

    def is_consumed(self, value: str) -> bool:
        return False

    def first_match(self, pattern: EventPattern) -> int | None:
        return next((n for n, event in enumerate(self.trace.events, 1) if pattern.matches(event)), None)

    def step_taken(self, position: int) -> None:
        pass

    # Evidence

    def broker_config(self, broker: int) -> BrokerConfig:
        return broker_config("2.4", {})

    @property
    def registration_time_max_us(self) -> int:
        return 0

    def partition_settings(self) -> Mapping[str, PartitionSettings]:
        settings = PartitionSettings(
            replicas=(0, 1, 2), min_insync_replicas=1, unclean_leader_election=False, flush_messages=1
        )
        return {"t-0": settings}

    def evidence(self) -> Evidence:
        end = len(self.log)
        log = FinalLog(leo=end, hw=end, flushed=end, epochs=((0, 0),), batches=(), in_sync=True)
        return Evidence(
            release="2.4",
            operations=self.history.operations,
            trace=self.trace.events,
            process_names=self.history.process_names,
            producers=self.clients.producer_settings(),
            partitions=self.partition_settings(),
            replicas={"t-0": dict.fromkeys((0, 1, 2), log)},
            read_back=frozenset(),
        )


class Writer(Sender):
    """A producer whose records are acknowledged at once."""

    def __init__(self, spec: ProducerSpec, target: OneLog) -> None:
        self.restarts = 0
        self._target = target
        self._process = target.history.new_process(spec.name)

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def restart(self) -> None:
        self.restarts += 1

    def send(
        self, value: str, partition: str | None, key: str | None = None, *, tombstone: bool = False
    ) -> None:
        assert partition is None
        self._target.log.append(value)

    def producer_settings(self) -> Mapping[int, ProducerSettings]:
        return {}


class LogReader(Reader):
    """A consumer that has always read everything."""

    def __init__(self, spec: ConsumerSpec, target: OneLog, bootstrap: tuple[int, ...] = ()) -> None:
        self._target = target

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def position(self, partition: str) -> int:
        return len(self._target.log)

    def has_read_to_end(self) -> bool:
        return True


def with_maker(kind: ClientKind, maker: Callable[..., Client]) -> ClientKind:
    return ClientKind(name=kind.name, spec=kind.spec, made_on={**kind.made_on, OneLog.kind: maker})


def test_a_plan_runs_on_a_target_other_than_the_model(monkeypatch: Any) -> None:
    monkeypatch.setitem(CLIENTS, "producers", with_maker(CLIENTS["producers"], Writer))
    monkeypatch.setitem(CLIENTS, "consumers", with_maker(CLIENTS["consumers"], LogReader))
    plan = load_text(
        """
        cluster: {brokers: 3, topics: [{name: t, replication_factor: 3}]}
        workload: {duration: 9s}
        script:
          - do: [{send: m0}, {expect: {acked: m0, leader: {t-0: 0}}}, {expect: {controller: 1}}]
          - when: {event: {fault: {fault: broker_crash}}}
            do: {send: {value: m, count: 2}}
        faults:
          - at: 2s
            do: {broker_crash: {broker: leader of t-0, restart_after: 3s}}
          - at: 4s
            do: {broker_restart: {broker: 1}}
        expect: {final: {acked: [m0, m-0, m-1]}}
        """,
        "plan.yaml",
    ).plans[0]
    target = OneLog(plan.producers)
    result = Run(plan, 0, Choices.from_seed(0), target).result()
    assert target.log == ["m0", "m-0", "m-1"]
    assert target.environment.did == [Kill(0), Start(0)]
    assert [(fault.at_us, fault.fault) for fault in result.faults] == [(2 * SECOND, "broker_crash")]
    assert [event[1] for event in result.evidence.trace] == ["fault", "fault_ended"]
    assert [missed.message for missed in result.missed] == ["controller is 0, expected 1"]
    assert result.evidence.read_back == {"t-0"}
    assert result.evidence.unfinished == ()
