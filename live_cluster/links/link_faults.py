"""The faults in force on links: cuts, slow links, and rules for single messages."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Final

from harrow.cluster_model.sim.choices import Stream, happens
from harrow.cluster_model.sim.link_quality import LinkQualities, LinkQuality
from harrow.cluster_model.sim.message_rule import HOLD, MessageRule

RuleApplied = Callable[[MessageRule, str, str, str, str], None]
"""Called when a rule acts: with the rule, the API, request or response, sender and receiver."""
_MILLION: Final = 1_000_000


class LinkFaults:
    """Cuts, slow links and rules. Everything here runs in the event loop of the proxies.

    *draw* decides about probabilities; *on_applied* is called for each message on which a rule
    acts.
    """

    def __init__(self, draw: Stream, on_applied: RuleApplied) -> None:
        self._draw = draw
        self._on_applied = on_applied
        self._cuts: Counter[tuple[str, str]] = Counter()
        self._qualities = LinkQualities()
        self._rules: list[MessageRule] = []
        self._holding: list[MessageRule] = []
        # If a core of processes is healed, the processes outside of it. No fault affects messages
        # between two processes of the core.
        self._outside: frozenset[str] = frozenset()
        self._is_core_healed = False
        self._changed = asyncio.Event()

    def cut(self, sender: str, receiver: str) -> None:
        self._cuts[sender, receiver] += 1

    def restore(self, sender: str, receiver: str) -> None:
        """Undo one `cut`."""
        self._cuts[sender, receiver] -= 1
        self._cuts += Counter()  # Removes counts of 0.
        self._wake()

    def degrade(self, sender: str, receiver: str, quality: LinkQuality) -> None:
        self._qualities.add((sender, receiver), quality)

    def recover(self, sender: str, receiver: str, quality: LinkQuality) -> None:
        """Undo one `degrade`."""
        self._qualities.remove((sender, receiver), quality)

    def delay_us(self, sender: str, receiver: str, now_us: int, size_bytes: int) -> int:
        """Return the additional delay of a message that is sent now."""
        return self._qualities.delay_us((sender, receiver), now_us, size_bytes, self._draw)

    def request_us(self, sender: str, receiver: str) -> int:
        """Return the additional time that the receiver takes for each request."""
        return self._qualities.request_us((sender, receiver))

    def restore_all(self) -> None:
        """Undo every cut, and end every rule; messages that are held are delivered."""
        self._is_core_healed = False
        self._cuts.clear()
        self._qualities.clear()
        self._rules.clear()
        self._holding.clear()
        self._wake()

    def restore_all_but(self, outside: frozenset[str]) -> None:
        """Restore all links but those of processes *outside* a core."""
        self._outside, self._is_core_healed = outside, True
        self._qualities.keep_links_of(outside)
        self._cuts = Counter({link: cuts for link, cuts in self._cuts.items() if self._faults_apply(*link)})
        self._rules = [rule for rule in self._rules if rule.may_affect(outside)]
        self._holding = [rule for rule in self._holding if rule.may_affect(outside)]
        self._wake()

    def _faults_apply(self, sender: str, receiver: str) -> bool:
        """Return whether faults may affect messages between two processes."""
        return not self._is_core_healed or not self._outside.isdisjoint((sender, receiver))

    def add(self, rule: MessageRule) -> None:
        self._rules.append(rule)

    def remove(self, rule: MessageRule) -> None:
        """End a rule, and deliver the messages that it holds."""
        for rules in (self._rules, self._holding):
            if rule in rules:
                rules.remove(rule)
        self._wake()

    def rules(self) -> tuple[MessageRule, ...]:
        """Return the rules in force, and exhausted ones that still hold messages."""
        return (*self._rules, *self._holding)

    def is_cut(self, sender: str, receiver: str) -> bool:
        return (sender, receiver) in self._cuts

    def disturbs(self, name: str) -> bool:
        """Return whether a cut, a slow link or a rule affects a process."""
        return (
            any(name in link for link in self._cuts)
            or self._qualities.disturbs(name)
            or any(rule.may_affect((name,)) for rule in self.rules())
        )

    def rule_for(self, api: str, kind: str, sender: str, receiver: str, listener: str) -> MessageRule | None:
        """Return the first rule that acts on a message, and count the message."""
        for rule in self._rules if self._faults_apply(sender, receiver) else ():
            if not rule.is_about_api(api, kind, sender, receiver, listener):
                continue
            rule.match_count += 1
            if rule.match_count <= rule.skip or not happens(
                self._draw, rule.probability_millionths / _MILLION
            ):
                continue
            rule.applied_count += 1
            if rule.is_exhausted():
                self._rules.remove(rule)
                if rule.action == HOLD:
                    self._holding.append(rule)
            self._on_applied(rule, api, kind, sender, receiver)
            return rule
        return None

    async def while_held(self, rule: MessageRule, sender: str, receiver: str) -> None:
        """Wait until a rule stops holding messages between two processes."""
        while rule in self.rules() and self._faults_apply(sender, receiver):
            await self._wait_for_change()

    async def while_cut(self, *links: tuple[str, str]) -> None:
        """Wait until none of these links is cut."""
        while any(link in self._cuts for link in links):
            await self._wait_for_change()

    async def _wait_for_change(self) -> None:
        await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
