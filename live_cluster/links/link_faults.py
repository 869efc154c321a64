"""What faults have in force on links: cuts, and rules for single messages."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Final

from harrow.cluster_model.sim.choices import Stream, happens
from harrow.cluster_model.sim.link_quality import LinkQualities, LinkQuality
from harrow.cluster_model.sim.message_rule import HOLD, MessageRule

RuleApplied = Callable[[MessageRule, str, str, str, str], None]
"""Told of a rule that has met a message: the rule, the API, request or response, sender and receiver."""
_MILLION: Final = 1_000_000


class LinkFaults:
    """Cuts and rules. Everything here runs in the loop of the proxies.

    *draw* decides what happens with some probability; *on_applied* is told of each message that a rule has met.
    """

    def __init__(self, draw: Stream, on_applied: RuleApplied) -> None:
        self._draw = draw
        self._on_applied = on_applied
        self._cuts: Counter[tuple[str, str]] = Counter()
        self._qualities = LinkQualities()
        self._rules: list[MessageRule] = []
        self._holding: list[MessageRule] = []
        # With a healed core, the processes outside it: nothing stands against what passes between two others.
        self._outside: frozenset[str] = frozenset()
        self._is_core_healed = False
        self._changed = asyncio.Event()

    def cut(self, sender: str, receiver: str) -> None:
        self._cuts[sender, receiver] += 1

    def restore(self, sender: str, receiver: str) -> None:
        """Undo one `cut`."""
        self._cuts[sender, receiver] -= 1
        self._cuts += Counter()  # Without those that are none any more.
        self._wake()

    def degrade(self, sender: str, receiver: str, quality: LinkQuality) -> None:
        self._qualities.add((sender, receiver), quality)

    def recover(self, sender: str, receiver: str, quality: LinkQuality) -> None:
        """Undo one `degrade`."""
        self._qualities.remove((sender, receiver), quality)

    def delay_us(self, sender: str, receiver: str, now_us: int, size_bytes: int) -> int:
        """Return how much longer what is sent now takes on its way."""
        return self._qualities.delay_us((sender, receiver), now_us, size_bytes, self._draw)

    def request_us(self, sender: str, receiver: str) -> int:
        """Return how much longer the receiver takes for each request."""
        return self._qualities.request_us((sender, receiver))

    def restore_all(self) -> None:
        """Undo every cut, and end every rule: what is held goes on its way."""
        self._is_core_healed = False
        self._cuts.clear()
        self._qualities.clear()
        self._rules.clear()
        self._holding.clear()
        self._wake()

    def restore_all_but(self, outside: frozenset[str]) -> None:
        """Do so, but for what stands against the processes *outside* a core."""
        self._outside, self._is_core_healed = outside, True
        self._qualities.keep(outside)
        self._cuts = Counter({link: cuts for link, cuts in self._cuts.items() if self._is_met(*link)})
        self._rules = [rule for rule in self._rules if rule.stands_against(outside)]
        self._holding = [rule for rule in self._holding if rule.stands_against(outside)]
        self._wake()

    def _is_met(self, sender: str, receiver: str) -> bool:
        """Return whether anything may stand against what passes between two processes."""
        return not self._is_core_healed or not self._outside.isdisjoint((sender, receiver))

    def add(self, rule: MessageRule) -> None:
        self._rules.append(rule)

    def remove(self, rule: MessageRule) -> None:
        """Take a rule out of force; what it holds goes on its way."""
        for rules in (self._rules, self._holding):
            if rule in rules:
                rules.remove(rule)
        self._wake()

    def rules(self) -> tuple[MessageRule, ...]:
        """Return the rules in force, and those that have held all that they may and still hold it."""
        return (*self._rules, *self._holding)

    def is_cut(self, sender: str, receiver: str) -> bool:
        return (sender, receiver) in self._cuts

    def disturbs(self, name: str) -> bool:
        """Return whether a link of a process is cut or slow, or a rule in force names it or names no process at all."""
        return (
            any(name in link for link in self._cuts)
            or self._qualities.disturbs(name)
            or any(rule.stands_against((name,)) for rule in self.rules())
        )

    def rule_for(self, api: str, kind: str, sender: str, receiver: str, listener: str) -> MessageRule | None:
        """Return the first rule that acts on a message, and count it."""
        for rule in self._rules if self._is_met(sender, receiver) else ():
            if not rule.is_about_api(api, kind, sender, receiver, listener):
                continue
            rule.matched += 1
            if rule.matched <= rule.skip or not happens(self._draw, rule.probability_millionths / _MILLION):
                continue
            rule.applied += 1
            if rule.exhausted():
                self._rules.remove(rule)
                if rule.action == HOLD:
                    self._holding.append(rule)
            self._on_applied(rule, api, kind, sender, receiver)
            return rule
        return None

    async def while_held(self, rule: MessageRule, sender: str, receiver: str) -> None:
        """Wait until a rule holds nothing any more between two processes."""
        while rule in self.rules() and self._is_met(sender, receiver):
            await self._change()

    async def while_cut(self, *links: tuple[str, str]) -> None:
        """Wait until none of these links is cut."""
        while any(link in self._cuts for link in links):
            await self._change()

    async def _change(self) -> None:
        await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
