"""Faults of brokers: they crash, stop, restart, pause or slow down, or lose the network."""

from collections.abc import Iterator
from typing import ClassVar, Final, Literal

from harrow.cluster_model.fields import Broker, Duration, DurationRange, Lasts, described
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.sim.virtual_time import US_PER_MS
from harrow.cluster_model.topology import FIRST_ZOOKEEPER_ID
from harrow.faults.effects import (
    Effects,
    FaultEffect,
    Kill,
    LosePower,
    Pause,
    Resume,
    SlowBroker,
    Start,
    Stop,
)
from harrow.faults.fault import (
    RESTART_TEXT,
    UNTIL_HEALED,
    BrokerProcesses,
    Environment,
    Fault,
    GradualFault,
    LastingFault,
    Link,
    LinkFault,
)

POLL_US: Final = 100 * US_PER_MS
"""How often a rolling restart checks if a broker has stopped, or if all replicas are in the ISR."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerCrash(LastingFault):
    """The broker's process dies, or its machine loses power.

    The broker's ZooKeeper session lives until it times out. If only the process dies, the whole log
    survives, flushed or not, and the connections are closed. After a power loss only what was
    flushed to disk survives, and peers receive nothing, not even a reset.
    """

    name: ClassVar[str] = "broker_crash"

    broker: Broker = described("Which broker.")
    kind: Literal["process", "power_loss"] = described(
        "`process` (kill -9) keeps the page cache, `power_loss` does not.", default="process"
    )
    restart_after: Lasts | None = described(RESTART_TEXT, default=None)

    def applies(self, environment: Environment) -> bool:
        return environment.is_running(self.broker) and (
            self.kind == "process" or environment.may_lose_power(self.broker)
        )

    def effects(self, environment: Environment) -> Effects:
        return [LosePower(self.broker) if self.kind == "power_loss" else Kill(self.broker)]

    def is_in_force(self, processes: BrokerProcesses) -> bool:
        return not processes.is_running(self.broker)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRestart(Fault):
    """A broker that is down starts.

    The broker cannot register while its old session lives. A real broker then exits. A broker of
    the model tries again each second, as if a supervisor restarted it.
    """

    name: ClassVar[str] = "broker_restart"

    broker: Broker = described("Which broker.")

    def applies(self, environment: Environment) -> bool:
        # A broker that has not joined yet is not down. Servers that are not brokers never join.
        has_joined = self.broker >= FIRST_ZOOKEEPER_ID or self.broker in environment.broker_ids()
        return has_joined and not environment.is_running(self.broker)

    def effects(self, environment: Environment) -> Effects:
        return [Start(self.broker)]

    def ends(self, other: Fault) -> bool:
        return isinstance(other, (BrokerCrash, BrokerStop)) and other.broker == self.broker


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerStop(LastingFault):
    """The broker shuts down cleanly (SIGTERM).

    The broker moves its leaderships, flushes its logs and closes its session. If
    `controlled.shutdown.enable` is off, or if there is no controller or no replica that can take
    over, it stops without moving its leaderships, and its partitions get other leaders only after
    its session has ended. No record is lost.
    """

    name: ClassVar[str] = "broker_stop"

    broker: Broker = described("Which broker.")
    restart_after: Lasts | None = described(
        "How long after the signal it is started again. A broker that needs longer to stop is started as soon as "
        "it has stopped. By default it stays down until the cluster is healed.",
        default=None,
    )

    def applies(self, environment: Environment) -> bool:
        return environment.is_running(self.broker) and not environment.is_stopping(self.broker)

    def effects(self, environment: Environment) -> Effects:
        return [Stop(self.broker)]

    def crashes(self, brokers: tuple[int, ...]) -> Iterator[BrokerCrash]:
        yield BrokerCrash(broker=self.broker, restart_after=self.restart_after)

    def is_in_force(self, processes: BrokerProcesses) -> bool:
        return processes.is_stopping(self.broker) or not processes.is_running(self.broker)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerBounce(Fault):
    """The broker restarts (`systemctl restart`).

    The broker shuts down cleanly, and starts again as soon as its process has ended.
    """

    name: ClassVar[str] = "broker_bounce"

    broker: Broker = described("Which broker.")

    def applies(self, environment: Environment) -> bool:
        return environment.is_running(self.broker) and not environment.is_stopping(self.broker)

    def effects(self, environment: Environment) -> Effects:
        return [Stop(self.broker), Start(self.broker)]

    def crashes(self, brokers: tuple[int, ...]) -> Iterator[BrokerCrash]:
        yield BrokerCrash(broker=self.broker, restart_after=(0, 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class RollingRestart(GradualFault):
    """Each broker in turn shuts down cleanly and starts again, as for an upgrade.

    A broker that is down when its turn comes is only started. So is a broker that crashes while it
    stops. If something else starts a broker in the meantime, it is not started again.
    """

    name: ClassVar[str] = "rolling_restart"

    order: Literal["id", "controller_last"] = described(
        "By `id`, or by id with the controller last, so that it moves only once. The controller is looked up "
        "before each restart.",
        default="id",
    )
    down_for: DurationRange = described(
        "How long each broker stays down, for example while its software is replaced.", default=(0, 0)
    )
    pause: DurationRange = described(
        "How long to wait between the start of a broker and the next one's turn.", default=(0, 0)
    )
    wait_for_isr: bool = described(
        "Whether to wait after the pause until no partition is under-replicated.", default=True
    )

    def applies(self, environment: Environment) -> bool:
        return any(
            environment.is_running(broker) and not environment.is_stopping(broker)
            for broker in environment.broker_ids()
        )

    def steps(self, environment: Environment) -> Iterator[FaultEffect | int]:
        remaining = list(environment.broker_ids())
        while remaining:
            while self.wait_for_isr and environment.under_replicated_partitions():
                yield POLL_US
            broker = self._next(remaining, environment.controller())
            remaining.remove(broker)
            yield from self._restart(broker, environment)
            if remaining and self.pause[0]:
                yield self.pause[0]

    def _restart(self, broker: int, environment: Environment) -> Iterator[FaultEffect | int]:
        if environment.is_running(broker):
            yield Stop(broker)
            if not self.down_for[0]:
                yield Start(broker)
            while environment.is_stopping(broker):
                yield POLL_US
            if not environment.is_running(broker) and self.down_for[0]:
                yield self.down_for[0]
        if not environment.is_running(broker):
            yield Start(broker)

    def _next(self, remaining: list[int], controller: int | None) -> int:
        others = [broker for broker in remaining if broker != controller]
        return others[0] if self.order == "controller_last" and others else remaining[0]

    def crashes(self, brokers: tuple[int, ...]) -> Iterator[Fault]:
        """Yield a restart of each broker alone."""
        for broker in brokers:
            yield BrokerBounce(broker=broker)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerPause(LastingFault):
    """The broker's process pauses: a long garbage collection, SIGSTOP, a frozen virtual machine.

    The broker's connections stay open, and messages to it wait. After
    `zookeeper.session.timeout.ms` its session expires. The broker does not notice that until it
    resumes.
    """

    name: ClassVar[str] = "broker_pause"

    broker: Broker = described("Which broker.")
    duration: Lasts | None = described(
        "How long; by default until the cluster is healed or the broker is resumed.", default=None
    )

    def applies(self, environment: Environment) -> bool:
        return environment.is_running(self.broker) and not environment.is_paused(self.broker)

    def effects(self, environment: Environment) -> Effects:
        return [Pause(self.broker)]

    def crashes(self, brokers: tuple[int, ...]) -> Iterator[BrokerCrash]:
        yield BrokerCrash(broker=self.broker, restart_after=self.duration)
        yield BrokerCrash(broker=self.broker)

    def is_in_force(self, processes: BrokerProcesses) -> bool:
        return processes.is_paused(self.broker)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerResume(Fault):
    """A paused broker continues where it stopped."""

    name: ClassVar[str] = "broker_resume"

    broker: Broker = described("Which broker.")

    def applies(self, environment: Environment) -> bool:
        return environment.is_paused(self.broker)

    def effects(self, environment: Environment) -> Effects:
        return [Resume(self.broker)]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSlow(LastingFault):
    """The broker is short of CPU, so each request occupies an I/O thread for longer.

    A slow request also delays the next request on the same connection. Once all `num.io.threads`
    are busy, every other request waits behind them: fetches of followers, and requests of the
    controller unless `control.plane.listener.name` gives those a queue of their own. The broker's
    own requests are not slowed, so it keeps its session, and fetches the partitions that it
    follows. No timeout of the cluster detects this failure, but clients wait. In the model, a
    controller in a process of its own has one thread for each connection.
    """

    name: ClassVar[str] = "broker_slow"

    broker: Broker = described("Which broker.")
    delay: Duration = described("How much longer each request takes.", default=100 * US_PER_MS, minimum=1)
    duration: Lasts | None = described(UNTIL_HEALED, default=None)

    def applies(self, environment: Environment) -> bool:
        return environment.is_running(self.broker)

    def effects(self, environment: Environment) -> Effects:
        return [SlowBroker(self.broker, self.delay)]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerIsolation(LinkFault):
    """A network partition around one broker: the leader, the controller, or any other.

    A reference such as `leader of t-0` is resolved when the fault strikes. Nothing passes in either
    direction. As with TCP, what is sent meanwhile is retransmitted afterwards, unless one end has
    given up the connection. A leader that is cut off only from ZooKeeper keeps serving clients
    until another leader is elected, but it cannot change the ISR.
    """

    name: ClassVar[str] = "broker_isolation"

    broker: Broker = described("Which broker.")
    from_: Literal["zookeeper", "quorum", "brokers", "servers"] = described(
        "What it is cut off from: `zookeeper` (in KRaft `quorum`), the other `brokers`, or both (`servers`).",
        default="servers",
    )
    duration: Lasts | None = described(UNTIL_HEALED, default=None)

    def applies(self, environment: Environment) -> bool:
        # The fault strikes even a single broker, which has no links to other brokers.
        return True

    def links(self, environment: BrokerProcesses) -> list[Link]:
        others: list[int | str] = []
        if self.from_ not in ("zookeeper", "quorum"):
            others += [other for other in environment.broker_ids() if other != self.broker]
        if self.from_ != "brokers":
            others.append("zookeeper")
        return [(self.broker, other) for other in others] + [(other, self.broker) for other in others]
