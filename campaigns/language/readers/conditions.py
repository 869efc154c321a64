"""Reads conditions: of steps, of assertions, of faults, and of the end of a run."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from harrow.campaigns.language.catalogue_shapes import is_value, unkeyed_fields
from harrow.campaigns.language.part import Part
from harrow.campaigns.language.readers.draft import Draft
from harrow.campaigns.language.readers.references import References
from harrow.campaigns.language.spelling import listed, quoted
from harrow.cluster_model import fields as kinds
from harrow.cluster_model.apis import APIS
from harrow.cluster_model.events import (
    EVENTS,
    FieldKind,
    FieldTrait,
    MessageRuleApplied,
    event_fields,
    fields_with,
)
from harrow.cluster_model.fields import DeclaredField, by_kind, fields_of
from harrow.cluster_model.release.switch import DEFAULT_RELEASE
from harrow.cluster_model.topology import CONTROL_PLANES, FIRST_ZOOKEEPER_ID, KRAFT, ZOOKEEPER, process_name
from harrow.faults.condition import FACTS, Condition
from harrow.faults.control_plane import where_metadata_is
from harrow.faults.event_pattern import EventPattern
from harrow.faults.facts import Fact, HasHappened

_NO_LEADER = -1
_API = "api"
_RULE = "rule"

Keys = Mapping[str, Any]
"""The keys of the mappings that enclose a fact, as {attribute: value}."""


class ConditionReader:
    """Reads conditions and checks their references."""

    def __init__(self, draft: Draft, references: References) -> None:
        self._draft = draft
        self._references = references
        # These are checked later, because the faults that define message rules may be read later.
        self._awaited_rules: list[tuple[Part, str]] = []

    def check_awaited_rules(self, control_plane_of: Callable[[str], str | None]) -> None:
        """Check, after all faults are read, that awaited message rules can match a message."""
        for part, rule in self._awaited_rules:
            if control_plane_of(rule) not in (None, self._references.metadata):
                self._report_impossible(part, f"message rule {quoted(rule)} never matches")

    def read(self, section: Part) -> Condition:
        if not section.parts and not section.rejected:
            self._draft.problem(section, "the condition is empty")
        facts: list[Fact] = []
        for name, part in section.parts.items():
            facts += self._facts(FACTS[name], part)
        return Condition(tuple(facts))

    def _facts(self, kind: type[Fact], part: Part) -> Iterator[Fact]:
        if not isinstance(part.value, list):
            yield from self._facts_under_keys(kind, kind.keyed_by, part, {})
            return
        if kind.repeats:
            self._check_not_empty(part)
        for item in part:
            yield from self._facts_under_keys(kind, kind.keyed_by, item, {})

    def _facts_under_keys(
        self, kind: type[Fact], attributes: tuple[str, ...], part: Part, keys: Keys
    ) -> Iterator[Fact]:
        """Yield the facts of a nested mapping that has one level for each key attribute."""
        if not attributes:
            yield from self._facts_at(kind, part, keys)
            return
        self._check_not_empty(part)
        item = next(item for item in fields_of(kind) if item.attribute == attributes[0])
        for key, inner in zip(part.value, part, strict=True):
            if self._check(item, key, inner, keys, at_key=True):
                yield from self._facts_under_keys(kind, attributes[1:], inner, {**keys, item.attribute: key})

    def _check_can_happen(self, pattern: EventPattern, part: Part) -> None:
        """Check that an event for which a condition waits can happen with this control plane."""
        metadata = self._references.metadata
        if metadata is None:
            return
        subsystem = EVENTS[pattern.event].subsystem
        if subsystem in CONTROL_PLANES and subsystem != metadata:
            self._report_impossible(part, f"{pattern.event} never happens", at_key=True)
        controllers = fields_with(pattern.event, FieldTrait.NAMES_CONTROLLER)
        for name, value in pattern.fields:
            if name in controllers:
                self._check_controller(value, part / name)
            elif name == _API and APIS.get(value) in CONTROL_PLANES.keys() - {metadata}:
                self._report_impossible(part / name, f"{value} is never sent")
            elif name == _RULE and pattern.event == MessageRuleApplied.name:
                self._awaited_rules.append((part / name, value))

    def _check_controller(self, node: Any, part: Part) -> None:
        """Check that a node can be controller: a voter, or with ZooKeeper any broker."""
        quorum = self._references.quorum
        is_server = isinstance(node, int) and node >= FIRST_ZOOKEEPER_ID
        name = process_name(node) if is_server else f"broker {node}"
        if self._references.metadata == KRAFT and node not in (_NO_LEADER, *quorum):
            voters = listed([process_name(voter) for voter in quorum])
            self._report_impossible(part, f"{name} is never the controller, which is one of {voters}")
        elif self._references.metadata == ZOOKEEPER and is_server:
            self._report_impossible(part, f"{name} is never the controller, which is a broker")

    def _report_impossible(self, part: Part, message: str, *, at_key: bool = False) -> None:
        """Report a condition that can never hold with this control plane."""
        release = self._draft.body.get("kafka") or DEFAULT_RELEASE
        metadata = self._references.metadata
        why = where_metadata_is(release, metadata) if metadata else ""
        self._draft.problem(part, f"{message}: {why}", at_key=at_key)

    def _check_not_empty(self, part: Part) -> None:
        if not part.value and not part.rejected:
            self._draft.problem(part, "this part of the condition is empty")

    def _facts_at(self, kind: type[Fact], part: Part, keys: Keys) -> Iterator[Fact]:
        """Yield the fact in a part; several facts if the part names several events."""
        items = unkeyed_fields(kind)
        if is_value(items):
            for value in self._values(items[0], part, keys):
                if kind is HasHappened:
                    self._check_can_happen(value, part / value.event)
                yield kind(**keys, **{items[0].attribute: value})
            return
        fields = {
            item.attribute: value
            for item in items
            if item.key in part
            for value in self._values(item, part / item.key, keys)
        }
        yield kind(**keys, **fields)

    def _values(self, item: DeclaredField, part: Part, keys: Keys) -> Iterable[Any]:
        """Return the value of a part, or several values if it names several events."""
        readers: dict[type[Any], Callable[[Part, Keys], Iterable[Any]]] = {
            kinds.EventMarker: self._events,
            kinds.OffsetsByBrokerMarker: self._offsets,
            kinds.EpochStartsMarker: self._epochs,
        }
        reader = by_kind(readers, item.kind)
        if reader is not None:
            return reader(part, keys)
        if not item.many:
            self._check(item, part.value, part, keys)
            return (part.value,)
        for inner in part:
            self._check(item, inner.value, inner, keys)
        return (tuple(part.value),)

    def _check(
        self, item: DeclaredField, value: Any, part: Part, keys: Keys, *, at_key: bool = False
    ) -> bool:
        """Check a reference. A broker named together with a partition must have a replica of it."""
        if item.kind is kinds.PartitionMarker:
            return self._references.observed_partition(part, value, at_key=at_key)
        if item.kind is kinds.ControllerIdMarker:
            if self._references.metadata == ZOOKEEPER and value < FIRST_ZOOKEEPER_ID:
                return self._references.broker(part, value)
            self._check_controller(value, part)
            return True
        if item.kind in (kinds.BrokerIdMarker, kinds.BrokerOrNoneMarker):
            if value != _NO_LEADER and "partition" in keys:
                self._references.replica(part, keys["partition"], value, at_key=at_key)
            elif value != _NO_LEADER:
                self._references.broker(part, value, at_key=at_key)
            return True
        return self._references.check(item.kind, value, part)

    def _offsets(self, offsets: Part, keys: Keys) -> Iterable[Any]:
        for broker, part in zip(offsets.value, offsets, strict=True):
            self._references.replica(part, keys["partition"], broker, at_key=True)
        return (tuple(offsets.value.items()),)

    def _epochs(self, pairs: Part, _: Keys) -> Iterable[Any]:
        epochs: list[tuple[int, int]] = []
        for pair in pairs:
            if len(pair.value) == 2:
                epochs.append((pair.value[0], pair.value[1]))
            elif not pair.rejected:
                self._draft.problem(pair, "write a pair [leader epoch, start offset]")
        return (tuple(epochs),)

    def _events(self, section: Part, _: Keys) -> Iterator[EventPattern]:
        if not section.parts and not section.rejected:
            self._draft.problem(section, "name an event")
        for name, fields in section.parts.items():
            yield EventPattern(event=name, fields=self._event_fields(name, fields))

    def _event_fields(self, event: str, fields: Part) -> tuple[tuple[str, Any], ...]:
        declared = event_fields(event)
        for name, part in fields.parts.items():
            value = part.value
            if declared[name] is FieldKind.PARTITION and isinstance(value, str):
                self._references.observed_partition(part, value)
            elif declared[name] is FieldKind.BROKER and isinstance(value, int) and value != _NO_LEADER:
                self._references.broker(part, value)
        return tuple(fields.as_dict().items())
