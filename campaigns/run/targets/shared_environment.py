"""Defines the part of an environment that the model and real brokers share."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol, cast

from harrow.campaigns.clients.clients import Clients
from harrow.campaigns.run.targets.target import CommittedCopies, RunObserver
from harrow.cluster_model.sim.link_quality import LinkQuality
from harrow.cluster_model.sim.message_rule import MessageRule
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.faults import effects
from harrow.faults.effects import End, FaultEffect
from harrow.faults.handlers import Handlers

HELD_BACK_MAX_US: Final = 60 * US_PER_SECOND
"""How long a broker that lost its records stays down so that it leaves the ISR. It must start then,
because there may be no leader that can remove it from the ISR."""


def copies_of(
    observer: RunObserver,
    partition: str,
    *,
    end_of_log: Callable[[int], int],
    last_known_high_watermark: Callable[[int], int | None],
    min_isr: int,
) -> CommittedCopies:
    """Return which electable brokers have every committed record of a partition.

    A record is committed if any replica counted it as committed, even one whose broker is down: a
    dead leader may have been the only one to know. *end_of_log* returns the end of a replica's
    intact log. *last_known_high_watermark* returns the last one of a process that has ended, None
    if unknown. As long as no high watermark is known, no copy is complete.
    """
    replicas = observer.replicas_of(partition)
    views = {replica: observer.replica(partition, replica) for replica in replicas}
    high_watermarks = (
        last_known_high_watermark(replica) if view is None else view.hw for replica, view in views.items()
    )
    committed = max((offset for offset in high_watermarks if offset is not None), default=None)
    electable = frozenset(observer.electable(partition))
    complete = frozenset(
        replica for replica in electable if committed is not None and end_of_log(replica) >= committed
    )
    return CommittedCopies(complete, electable - complete, min_isr)


class Wires(Protocol):
    """The links between processes, each named as the target names it."""

    def cut(self, sender: Any, receiver: Any, /) -> None:
        """Drop everything from one process to another."""

    def restore(self, sender: Any, receiver: Any, /) -> None:
        """Undo one `cut`."""

    def is_cut_one_way(self, sender: Any, receiver: Any, /) -> bool: ...

    def has_rule(self, name: str, /) -> bool:
        """Return whether a message rule of that name is in force."""


class MalleableWires(Wires, Protocol):
    """Wires that can also delay, reset and filter."""

    def degrade(self, sender: Any, receiver: Any, quality: LinkQuality, /) -> None:
        """Slow the link down."""

    def recover(self, sender: Any, receiver: Any, quality: LinkQuality, /) -> None:
        """Undo one `degrade`."""

    def reset(self, one: Any, other: Any, /) -> None:
        """Break the connections between two processes."""

    def add_rule(self, rule: MessageRule, /) -> None:
        """Put a rule for single messages in force."""

    def remove_rules(self, is_meant: Callable[[MessageRule], bool], /) -> None:
        """End message rules. Messages that they hold are delivered."""


class TargetEnvironment(ABC):
    """A `StruckEnvironment` that looks up *handlers* for effects.

    *wires* must support everything that the handlers do with links.
    """

    strike: int = 0

    def __init__(
        self, handlers: Handlers[Any], clients: Clients, observer: RunObserver, wires: Wires
    ) -> None:
        self.wires = cast("MalleableWires", wires)
        self._handlers = handlers
        self.lack = handlers.lack
        self._observer = observer
        self.client_names = clients.names
        self.client = clients.client
        self.controller = observer.controller

    @abstractmethod
    def broker_ids(self) -> tuple[int, ...]:
        """Return the ids of all brokers."""

    @abstractmethod
    def partition_names(self) -> Sequence[str]:
        """Return the partitions that clients use."""

    @abstractmethod
    def committed_copies(self) -> Mapping[str, CommittedCopies]:
        """Return the brokers that can lead each partition; empty unless the run is survivable."""

    @abstractmethod
    def processes_at(self, end: End) -> tuple[Any, ...]:
        """Return the names of the processes at an end of a link.

        The control plane may have several.
        """

    def perform(self, effect: FaultEffect) -> None:
        self._handlers.perform(self, effect)

    def under_replicated_partitions(self) -> tuple[str, ...]:
        return tuple(
            partition
            for partition in self.partition_names()
            if (state := self._observer.partition_state(partition)) is None
            or len(state[2]) < len(self._observer.replicas_of(partition))
        )

    def may_lose_power(self, broker: int) -> bool:
        """Return whether every committed record keeps enough electable copies without it."""
        return all(
            copies.can_spare(broker)
            for partition, copies in self.committed_copies().items()
            if broker in self._observer.replicas_of(partition)
        )

    def could_lead_incomplete(self, broker: int) -> bool:
        """Return whether a broker could be elected although it lacks a committed record."""
        return any(
            broker in copies.incomplete and copies.complete for copies in self.committed_copies().values()
        )

    def links(self, sender: End, receiver: End) -> Iterator[tuple[Any, Any]]:
        """Yield the links between the processes at two ends."""
        for one in self.processes_at(sender):
            for other in self.processes_at(receiver):
                if one != other:
                    yield one, other

    def is_link_cut(self, sender: End, receiver: End) -> bool:
        links = list(self.links(sender, receiver))
        return bool(links) and all(self.wires.is_cut_one_way(*link) for link in links)

    def has_message_rule(self, name: str) -> bool:
        return self.wires.has_rule(name)

    def slow_links_to(self, effect: effects.SlowBroker) -> list[effects.SlowLink]:
        """Return slow links with the effect of slow request threads: one request at a time."""
        senders: tuple[End, ...] = (*self.broker_ids(), *self.client_names())
        quality = LinkQuality(request_us=effect.request_us)
        return [effects.SlowLink(sender, effect.broker, quality) for sender in senders]


CLIENT_EFFECTS: Final[Handlers[TargetEnvironment]] = Handlers()
CLIENT_EFFECTS.register(effects.StartClient, lambda target, it: target.client(it.client).start_again())
CLIENT_EFFECTS.register(effects.KillClient, lambda target, it: target.client(it.client).crash())
CLIENT_EFFECTS.register(effects.CloseClient, lambda target, it: target.client(it.client).close())
CLIENT_EFFECTS.register(effects.ResumeClient, lambda target, it: target.client(it.client).resume())
CLIENT_EFFECTS.register(effects.PauseClient, lambda target, it: target.client(it.client).pause())
CLIENT_EFFECTS.register(effects.DoubleClient, lambda target, it: target.client(it.client).leave_behind())
CLIENT_EFFECTS.register(
    effects.HoldClient, lambda target, it: target.client(it.client).hold_at(it.step, it.passes)
)
CLIENT_EFFECTS.register(effects.SlowClient, lambda target, it: target.client(it.client).slow_down(it.by_us))


def _on_each_link(
    act: Callable[[MalleableWires, tuple[Any, Any], Any], None],
) -> Callable[[TargetEnvironment, effects.LinkEffect], None]:
    def perform(target: TargetEnvironment, effect: effects.LinkEffect) -> None:
        for link in target.links(effect.sender, effect.receiver):
            act(target.wires, link, effect)

    return perform


def _add_rule(target: TargetEnvironment, effect: effects.RuleMessages) -> None:
    def processes_at(ends: frozenset[str] | None) -> frozenset[str] | None:
        return None if ends is None else frozenset(name for end in ends for name in target.processes_at(end))

    rule = effect.rule
    rule.strike = target.strike
    rule.senders, rule.receivers = processes_at(rule.senders), processes_at(rule.receivers)
    target.wires.add_rule(rule)


LINK_EFFECTS: Final[Handlers[TargetEnvironment]] = Handlers()
LINK_EFFECTS.register(effects.Cut, _on_each_link(lambda wires, link, _: wires.cut(*link)))
LINK_EFFECTS.register(effects.Restore, _on_each_link(lambda wires, link, _: wires.restore(*link)))
LINK_EFFECTS.register(
    effects.SlowLink,
    _on_each_link(lambda wires, link, it: wires.degrade(*link, it.quality)),
    undo=_on_each_link(lambda wires, link, it: wires.recover(*link, it.quality)),
)
LINK_EFFECTS.register(effects.ResetLink, _on_each_link(lambda wires, link, _: wires.reset(*link)))
LINK_EFFECTS.register(
    effects.RuleMessages,
    _add_rule,
    undo=lambda target, _: target.wires.remove_rules(lambda rule: rule.strike == target.strike),
)
LINK_EFFECTS.register(
    effects.ReleaseMessages, lambda target, it: target.wires.remove_rules(lambda rule: rule.name == it.rule)
)
