"""What happens to applications: they die, stand still or are taken for dead at a step of their loop, poll too slowly, come and go."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal, Self, get_args

from harrow.cluster_model.fields import Count, DurationRange, Lasts, Skip, StruckClient, described
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
from harrow.faults.fault import Environment, GradualFault, LastingFault

LOOK_US: Final = 20 * US_PER_MS
"""How often is looked whether an application has come to the step at which it is to be struck."""

Step = Literal["poll", "begin", "process", "send", "flush", "send_offsets", "commit", "abort", "store"]
STEPS: Final = get_args(Step)
_STEP: Final = (
    "Before which step of its loop; by default one that is drawn. What steps there are depends on its `delivery`, and `abort` is taken "
    "only where something has failed."
)
_PASSES: Final = "How many times it passes there first."


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFault(GradualFault):
    """A fault that strikes an application when it comes to a step of its loop, where it is held until then."""

    client: StruckClient = described("Which application.", example="application-0")
    step: Step | None = described(_STEP, default=None)
    after: Skip = described(_PASSES, default=0)

    def decided(self, draw: Stream) -> Self:
        return replace(self, step=pick(draw, STEPS)) if self.step is None else self

    def applies(self, environment: Environment) -> bool:
        client = environment.client(self.client)
        steps = client.steps()
        return bool(steps) and self.step in (None, *steps) and client.is_running() and not client.is_paused()

    def _reached(self, environment: Environment) -> Iterator[FaultEffect | int]:
        """Yield until the application is held at the step, or is gone before it has come there."""
        client = environment.client(self.client)
        yield HoldClient(self.client, self.step or STEPS[0], self.after)
        while client.is_running() and client.held_at() is None:
            yield LOOK_US


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationCrash(StepFault):
    """An application dies (kill -9) at a step of its loop, between two of its calls, and is started again, here or elsewhere.

    What it had in its hands is gone: records that it had polled, what it had not sent yet, and a transaction that it had not asked to be
    committed. Its group hears of it when its session is over.
    """

    name: ClassVar[str] = "application_crash"

    restart_after: Lasts | None = described(
        "How long until it is started again; by default it stays down.", default=None
    )

    def steps(self, environment: Environment) -> Iterator[FaultEffect | int]:
        """Wait until it is there, kill it, and start it again."""
        yield from self._reached(environment)
        client = environment.client(self.client)
        if client.is_running():
            yield KillClient(self.client)
            if self.restart_after is not None:
                yield self.restart_after[0]
                if not client.is_running():
                    yield StartClient(self.client)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationPause(StepFault):
    """An application stands still at a step of its loop (a long garbage collection, SIGSTOP), and then goes on where it was.

    Longer than `session.timeout.ms`, and its group has given its partitions to others: it is a zombie that does not know it. With `replaced` another instance
    is started meanwhile, with the same `transactional.id`.
    """

    name: ClassVar[str] = "application_pause"

    duration: Lasts = described("How long it stands still.", default=(15 * US_PER_SECOND, 15 * US_PER_SECOND))
    replaced: bool = described("Whether another instance is started meanwhile.", default=False)

    def steps(self, environment: Environment) -> Iterator[FaultEffect | int]:
        """Wait until it is there, stop it, and let it go on."""
        yield from self._reached(environment)
        client = environment.client(self.client)
        if client.is_running() and not client.is_paused():
            yield DoubleClient(self.client) if self.replaced else PauseClient(self.client)
            yield self.duration[0]
        yield ResumeClient(self.client)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowPoll(LastingFault):
    """An application takes much longer for what a poll returns: a database that does not answer, a record like no other.

    Longer than `max.poll.interval.ms`, and its consumer leaves its group while it still works on what it was given.
    """

    name: ClassVar[str] = "slow_poll"

    client: StruckClient = described("Which application, or member of a group.", example="application-0")
    by: DurationRange = described(
        "How much longer it takes for each poll.", default=(5 * US_PER_SECOND, 5 * US_PER_SECOND)
    )
    duration: Lasts | None = described("How long; by default until the cluster is healed.", default=None)

    def applies(self, environment: Environment) -> bool:
        return environment.client(self.client).can_be_slowed()

    def effects(self, environment: Environment) -> Effects:
        return [SlowClient(self.client, self.by[0])]


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceStorm(GradualFault):
    """The members of groups are closed and started again, one after the other and over again: a deployment that does not come to rest, an autoscaler.

    Each time one leaves and each time one comes back its group rebalances.
    """

    name: ClassVar[str] = "rebalance_storm"

    rounds: Count = described("How many times each member is restarted.", default=3)
    every: DurationRange = described(
        "How long between one member and the next.", default=(US_PER_SECOND, US_PER_SECOND)
    )
    down_for: DurationRange = described(
        "How long each stays away.", default=(500 * US_PER_MS, 500 * US_PER_MS)
    )

    def applies(self, environment: Environment) -> bool:
        return bool(self._members(environment))

    def _members(self, environment: Environment) -> list[str]:
        clients = {name: environment.client(name) for name in environment.client_names()}
        return [name for name, client in clients.items() if client.is_member() and client.is_running()]

    def steps(self, environment: Environment) -> Iterator[FaultEffect | int]:
        """Restart one after the other."""
        for _ in range(self.rounds):
            for name in self._members(environment):
                client = environment.client(name)
                if not client.is_running() or client.is_paused():
                    continue
                yield CloseClient(name)
                yield max(self.down_for[0], 1)
                # One that does not come to close itself is killed, as its supervisor would.
                if client.is_running():
                    yield KillClient(name)
                yield StartClient(name)
                yield max(self.every[0], 1)
