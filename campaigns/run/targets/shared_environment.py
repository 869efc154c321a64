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
"""How long a broker that lost its records stays down at most, to leave the ISR. After that it has
to start, because there may be no leader that can remove it from the ISR."""


def copies_of(
    observer: RunObserver,
    partition: str,
    *,
    end_of_log: Callable[[int], int],
    last_known_high_watermark: Callable[[int], int | None],
    min_isr: int,
) -> CommittedCopies:
    """Return which electable brokers have every committed record of a partition.

    A record is committed if it is below the high watermark of any replica, even of a replica whose
    broker is down: a dead leader may have been the only one to know. *end_of_log* returns the end
    of a replica's intact log. For a broker that is down, *last_known_high_watermark* returns the
    last high watermark, or None if it is unknown. As long as no high watermark is known, no copy
    is complete.
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


class LinkControl(Protocol):
    """Cuts and restores the links between processes, which have the names that the target uses."""

    def cut(self, sender: Any, receiver: Any, /) -> None:
        """Drop everything that one process sends to another."""

    def restore(self, sender: Any, receiver: Any, /) -> None:
        """Undo one call of `cut`."""

    def is_cut_one_way(self, sender: Any, receiver: Any, /) -> bool: ...

    def rules(self) -> Sequence[MessageRule]:
        """Return the message rules that are in force or still hold messages."""


class FullLinkControl(LinkControl, Protocol):
    """Can also slow down and reset links, and apply rules to single messages."""

    def degrade(self, sender: Any, receiver: Any, quality: LinkQuality, /) -> None:
        """Slow the link down."""

    def recover(self, sender: Any, receiver: Any, quality: LinkQuality, /) -> None:
        """Undo one call of `degrade`."""

    def reset(self, one: Any, other: Any, /) -> None:
        """Break the connections between two processes."""

    def add_rule(self, rule: MessageRule, /) -> None:
        """Apply a rule to single messages from now on."""

    def remove_rules(self, is_meant: Callable[[MessageRule], bool], /) -> None:
        """Remove the rules for which *is_meant* is true. Messages that they hold are delivered."""


class TargetEnvironment(ABC):
    """A `StruckEnvironment` that performs each effect with its handler in *handlers*.

    *link_control* must support everything that the handlers do with links.
    """

    strike: int = 0

    def __init__(
        self, handlers: Handlers[Any], clients: Clients, observer: RunObserver, link_control: LinkControl
    ) -> None:
        self.link_control = cast("FullLinkControl", link_control)
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

        An end is a broker, a client or the control plane, which may have several processes.
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
        """Return whether every committed record has enough electable copies without this broker."""
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
        return bool(links) and all(self.link_control.is_cut_one_way(*link) for link in links)

    def message_rules(self) -> Sequence[MessageRule]:
        return self.link_control.rules()

    def slow_links_to(self, effect: effects.SlowBroker) -> list[effects.SlowLink]:
        """Return effects on links that amount to slow request threads on a broker."""
        senders: tuple[End, ...] = (*self.broker_ids(), *self.client_names())
        quality = LinkQuality(request_us=effect.request_us)
        return [effects.SlowLink(sender, effect.broker, quality) for sender in senders]


CLIENT_EFFECTS: Final[Handlers[TargetEnvironment]] = Handlers()
CLIENT_EFFECTS.register(
    effects.StartClient, lambda target, effect: target.client(effect.client).start_again()
)
CLIENT_EFFECTS.register(effects.KillClient, lambda target, effect: target.client(effect.client).crash())
CLIENT_EFFECTS.register(effects.CloseClient, lambda target, effect: target.client(effect.client).close())
CLIENT_EFFECTS.register(effects.ResumeClient, lambda target, effect: target.client(effect.client).resume())
CLIENT_EFFECTS.register(effects.PauseClient, lambda target, effect: target.client(effect.client).pause())
CLIENT_EFFECTS.register(
    effects.DoubleClient, lambda target, effect: target.client(effect.client).make_zombie()
)
CLIENT_EFFECTS.register(
    effects.HoldClient,
    lambda target, effect: target.client(effect.client).hold_at(effect.step, effect.passes),
)
CLIENT_EFFECTS.register(
    effects.SlowClient, lambda target, effect: target.client(effect.client).slow_down(effect.by_us)
)


def _on_each_link(
    act: Callable[[FullLinkControl, tuple[Any, Any], Any], None],
) -> Callable[[TargetEnvironment, effects.LinkEffect], None]:
    def perform(target: TargetEnvironment, effect: effects.LinkEffect) -> None:
        for link in target.links(effect.sender, effect.receiver):
            act(target.link_control, link, effect)

    return perform


def _add_rule(target: TargetEnvironment, effect: effects.RuleMessages) -> None:
    def processes_at(ends: frozenset[str] | None) -> frozenset[str] | None:
        return None if ends is None else frozenset(name for end in ends for name in target.processes_at(end))

    rule = effect.rule
    rule.strike = target.strike
    rule.senders, rule.receivers = processes_at(rule.senders), processes_at(rule.receivers)
    target.link_control.add_rule(rule)


LINK_EFFECTS: Final[Handlers[TargetEnvironment]] = Handlers()
LINK_EFFECTS.register(effects.Cut, _on_each_link(lambda control, link, _: control.cut(*link)))
LINK_EFFECTS.register(effects.Restore, _on_each_link(lambda control, link, _: control.restore(*link)))
LINK_EFFECTS.register(
    effects.SlowLink,
    _on_each_link(lambda control, link, effect: control.degrade(*link, effect.quality)),
    undo=_on_each_link(lambda control, link, effect: control.recover(*link, effect.quality)),
)
LINK_EFFECTS.register(effects.ResetLink, _on_each_link(lambda control, link, _: control.reset(*link)))
LINK_EFFECTS.register(
    effects.RuleMessages,
    _add_rule,
    undo=lambda target, _: target.link_control.remove_rules(lambda rule: rule.strike == target.strike),
)
LINK_EFFECTS.register(
    effects.ReleaseMessages,
    lambda target, effect: target.link_control.remove_rules(lambda rule: rule.name == effect.rule),
)
