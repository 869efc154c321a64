"""Faults of clients: crashes, pauses, zombies, slow polls, and groups that churn."""

from collections.abc import Iterator
from typing import ClassVar, Final, Literal, Self, get_args

from harrow.cluster_model.fields import ClientTarget, Count, DurationRange, Lasts, Skip, described
from harrow.cluster_model.lazy_dataclass import dataclass, replace
from harrow.cluster_model.sim.choices import Stream, pick
from harrow.cluster_model.sim.virtual_time import US_PER_MS, US_PER_SECOND
from harrow.faults.effects import (
    CloseClient,
    DoubleClient,
    Effects,
    FaultEffect,
    HoldClient,
    KillClient,
    PauseClient,
    ResumeClient,
    SlowClient,
    StartClient,
)
from harrow.faults.fault import UNTIL_HEALED, Environment, GradualFault, LastingFault

ANY: Final = "any"
ALL: Final = "all"
_RESTART_TEXT: Final = "How long until it is started again; by default it stays down."

STEP_POLL_US: Final = 20 * US_PER_MS
"""How often a `StepFault` checks whether its application has reached the step."""

Step = Literal["poll", "begin", "process", "send", "flush", "send_offsets", "commit", "abort", "store"]
STEPS: Final = get_args(Step)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCrash(LastingFault):
    """The process of a producer or consumer dies (kill -9), and may start again as a new session.

    A producer's unsent records are lost, and the outcome of unanswered records stays unknown. A new
    session has another producer id, so brokers deduplicate nothing across sessions. A consumer
    loses its position, unless it has committed it for its group.
    """

    name: ClassVar[str] = "client_crash"

    client: ClientTarget = described("Which client.")
    restart_after: Lasts | None = described(_RESTART_TEXT, default=None)

    def applies(self, environment: Environment) -> bool:
        return environment.client(self.client).is_running()

    def effects(self, environment: Environment) -> Effects:
        return [KillClient(self.client)]

    def end(self, environment: Environment) -> Effects:
        return [] if environment.client(self.client).is_running() else [StartClient(self.client)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientPause(LastingFault):
    """A client's process pauses: a long garbage collection, SIGSTOP. Its connections stay open.

    Timeouts that passed meanwhile take effect when the client resumes: records expire by
    `delivery.timeout.ms`. Leaders may have moved, too.
    """

    name: ClassVar[str] = "client_pause"

    client: ClientTarget = described("Which client.")
    duration: Lasts | None = described(UNTIL_HEALED, default=None)

    def applies(self, environment: Environment) -> bool:
        client = environment.client(self.client)
        return client.is_running() and not client.is_paused()

    def effects(self, environment: Environment) -> Effects:
        return [PauseClient(self.client)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientZombie(LastingFault):
    """A producer or group member pauses, is replaced by a new process, and then resumes.

    From then on both processes work, as when a scheduler has lost track of an instance and started
    another. Without a `transactional.id` nothing fences the old producer: its buffered records
    arrive behind those of the new one. An old group member processes the records that it had
    fetched, and then finds that it cannot commit them.
    """

    name: ClassVar[str] = "client_zombie"

    client: ClientTarget = described("Which producer or group member.")
    duration: Lasts | None = described(
        "How long the old process is paused; by default until the cluster is healed.", default=None
    )

    def applies(self, environment: Environment) -> bool:
        client = environment.client(self.client)
        return client.can_become_zombie() and client.is_running() and not client.is_paused()

    def effects(self, environment: Environment) -> Effects:
        return [DoubleClient(self.client)]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFault(GradualFault):
    """A fault that strikes an application when it reaches a step of its loop.

    The application is held at that step until the fault strikes.
    """

    client: ClientTarget = described("Which application.", example="application-0")
    step: Step | None = described(
        "Before which step of its loop; by default one chosen at random. Its `delivery` decides which steps it has, and it takes "
        "`abort` only after a failure.",
        default=None,
    )
    after: Skip = described("How many times it passes this step first.", default=0)

    def with_choices(self, draw: Stream) -> Self:
        return replace(self, step=pick(draw, STEPS)) if self.step is None else self

    def applies(self, environment: Environment) -> bool:
        client = environment.client(self.client)
        steps = client.steps()
        return bool(steps) and self.step in (None, *steps) and client.is_running() and not client.is_paused()

    def _until_held(self, environment: Environment) -> Iterator[FaultEffect | int]:
        """Hold the application at the step.

        Yield waits until it is held there, or has died before that.
        """
        client = environment.client(self.client)
        yield HoldClient(self.client, self.step or STEPS[0], self.after)
        while client.is_running() and client.held_at() is None:
            yield STEP_POLL_US


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationCrash(StepFault):
    """An application dies (kill -9) between two calls of its loop, and starts again.

    It starts again on the same machine or another. It loses the records that it had polled but not
    processed, those that it had not sent, and a transaction that it had not asked to commit. Its
    group notices when its session expires.
    """

    name: ClassVar[str] = "application_crash"

    restart_after: Lasts | None = described(_RESTART_TEXT, default=None)

    def steps(self, environment: Environment) -> Iterator[FaultEffect | int]:
        yield from self._until_held(environment)
        client = environment.client(self.client)
        if client.is_running():
            yield KillClient(self.client)
            if self.restart_after is not None:
                yield self.restart_after[0]
                if not client.is_running():
                    yield StartClient(self.client)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationPause(StepFault):
    """An application pauses at a step of its loop (a long garbage collection, SIGSTOP).

    After `session.timeout.ms` the group gives the application's partitions to other members: the
    application has become a zombie without noticing. With `replaced`, another instance with the
    same `transactional.id` starts meanwhile.
    """

    name: ClassVar[str] = "application_pause"

    duration: Lasts = described("How long it is paused.", default=(15 * US_PER_SECOND, 15 * US_PER_SECOND))
    replaced: bool = described("Whether another instance is started meanwhile.", default=False)

    def steps(self, environment: Environment) -> Iterator[FaultEffect | int]:
        yield from self._until_held(environment)
        client = environment.client(self.client)
        if client.is_running() and not client.is_paused():
            yield DoubleClient(self.client) if self.replaced else PauseClient(self.client)
            yield self.duration[0]
        yield ResumeClient(self.client)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowPoll(LastingFault):
    """An application takes much longer to process each poll, as with a slow database.

    The cause may also be an unusual record. If a poll takes longer than `max.poll.interval.ms`, the
    consumer leaves its group while the application still processes the records of the poll.
    """

    name: ClassVar[str] = "slow_poll"

    client: ClientTarget = described("Which application or group member.", example="application-0")
    by: DurationRange = described(
        "How much longer each poll takes.", default=(5 * US_PER_SECOND, 5 * US_PER_SECOND)
    )
    duration: Lasts | None = described(UNTIL_HEALED, default=None)

    def applies(self, environment: Environment) -> bool:
        return environment.client(self.client).can_be_slowed()

    def effects(self, environment: Environment) -> Effects:
        return [SlowClient(self.client, self.by[0])]


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceStorm(GradualFault):
    """Group members close and start again in turn, over and over, as with an unstable autoscaler.

    The group rebalances each time a member leaves, and each time a member comes back.
    """

    name: ClassVar[str] = "rebalance_storm"

    rounds: Count = described("How many times each member is restarted.", default=3)
    every: DurationRange = described(
        "How long between one member and the next.", default=(US_PER_SECOND, US_PER_SECOND)
    )
    down_for: DurationRange = described(
        "How long each member stays away.", default=(500 * US_PER_MS, 500 * US_PER_MS)
    )

    def applies(self, environment: Environment) -> bool:
        return bool(self._members(environment))

    def _members(self, environment: Environment) -> list[str]:
        clients = {name: environment.client(name) for name in environment.client_names()}
        return [name for name, client in clients.items() if client.is_member() and client.is_running()]

    def steps(self, environment: Environment) -> Iterator[FaultEffect | int]:
        for _ in range(self.rounds):
            for name in self._members(environment):
                client = environment.client(name)
                if not client.is_running() or client.is_paused():
                    continue
                yield CloseClient(name)
                yield max(self.down_for[0], 1)
                # A member that is still closing is killed, as its supervisor would do.
                if client.is_running():
                    yield KillClient(name)
                yield StartClient(name)
                yield max(self.every[0], 1)
