"""Applies faults of links and messages to real clients, also to those that connect later."""

from collections.abc import Callable, Iterator
from typing import Final

from harrow.cluster_model.sim.link_quality import LinkName, LinkQuality
from harrow.cluster_model.sim.message_rule import MessageRule
from harrow.cluster_model.sim.network import Network

OTHER_CLIENTS: Final = "other clients"
"""The end of a link that stands for all clients that the campaign does not name."""


class ClientLinks:
    """The links of a network on which `OTHER_CLIENTS` is an end.

    A fault of that end affects every client that the campaign does not name: those that have
    connected, and those that `join` while the fault is in force.
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self._others: list[str] = []
        self._cuts: list[LinkName] = []
        self._qualities: list[tuple[LinkName, LinkQuality]] = []
        self.is_cut_one_way = network.is_cut_one_way
        self.rules = network.rules
        self.remove_rules = network.remove_rules

    def join(self, name: str) -> None:
        """Let the faults of other clients affect a client that connects for the first time."""
        self._others.append(name)
        for link in self._cuts:
            if OTHER_CLIENTS in link:
                self._network.cut(*_with_end(link, name))
        for link, quality in self._qualities:
            if OTHER_CLIENTS in link:
                self._network.degrade(*_with_end(link, name), quality)
        for rule in self._network.rules():
            rule.senders, rule.receivers = self._expanded(rule.senders), self._expanded(rule.receivers)

    def cut(self, sender: str, receiver: str) -> None:
        self._cuts.append((sender, receiver))
        self._on_each((sender, receiver), self._network.cut)

    def restore(self, sender: str, receiver: str) -> None:
        if (sender, receiver) in self._cuts:
            self._cuts.remove((sender, receiver))
        self._on_each((sender, receiver), self._network.restore)

    def degrade(self, sender: str, receiver: str, quality: LinkQuality) -> None:
        self._qualities.append(((sender, receiver), quality))
        for link in self._links((sender, receiver)):
            self._network.degrade(*link, quality)

    def recover(self, sender: str, receiver: str, quality: LinkQuality) -> None:
        if ((sender, receiver), quality) in self._qualities:
            self._qualities.remove(((sender, receiver), quality))
        for link in self._links((sender, receiver)):
            self._network.recover(*link, quality)

    def reset(self, one: str, other: str) -> None:
        self._on_each((one, other), self._network.reset)

    def add_rule(self, rule: MessageRule) -> None:
        rule.senders, rule.receivers = self._expanded(rule.senders), self._expanded(rule.receivers)
        self._network.add_rule(rule)

    def _on_each(self, link: LinkName, act: Callable[[str, str], None]) -> None:
        for sender, receiver in self._links(link):
            act(sender, receiver)

    def _links(self, link: LinkName) -> Iterator[LinkName]:
        """Yield a link and, if other clients are its end, the link of each of them."""
        yield link
        if OTHER_CLIENTS in link:
            yield from [_with_end(link, name) for name in self._others]

    def _expanded(self, names: frozenset[str] | None) -> frozenset[str] | None:
        return names if names is None or OTHER_CLIENTS not in names else names.union(self._others)


def _with_end(link: LinkName, name: str) -> LinkName:
    sender, receiver = (name if end == OTHER_CLIENTS else end for end in link)
    return sender, receiver
