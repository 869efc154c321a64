"""Merges variants and the options ``--set key=value`` into a campaign."""

from collections.abc import Mapping, Sequence
from typing import Final

from harrow.campaigns.language import yaml_positions as nodes
from harrow.campaigns.language.former_names import former_name_hint
from harrow.campaigns.language.kafka_settings import prefix_hint, unmodelled_hint
from harrow.campaigns.language.open_choices import without_choice
from harrow.campaigns.language.plan import CLUSTER
from harrow.campaigns.language.schema import file_section
from harrow.campaigns.language.spelling import CLUSTER_OPTION, option_words, quoted, suggestion
from harrow.campaigns.language.switch_names import BEHAVIOURS, current_switch, with_current_switches
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.settings import (
    BROKER,
    CONSUMER,
    PRODUCER,
    TOPIC,
    qualified_names,
    scopes_of,
    setting_names,
)

_SETTINGS: Final = "settings"
_OWNER_LISTS: Final[Mapping[nodes.Path, Mapping[str, str]]] = {
    ("cluster", "brokers"): {BROKER: _SETTINGS},
    ("cluster", "topics"): {TOPIC: _SETTINGS},
    ("workload", "producers"): {PRODUCER: _SETTINGS},
    ("workload", "consumers"): {CONSUMER: _SETTINGS},
    ("workload", "applications"): {CONSUMER: CONSUMER, PRODUCER: PRODUCER},
}
"""The lists whose items can have settings of their own, and the keys of these settings by scope."""


def merge_variant(base: nodes.MapNode, variant: nodes.MapNode) -> nodes.MapNode:
    """Merge a variant into a campaign. The variant's ``expect`` replaces that of the campaign."""
    expect = variant.entries.get("expect")
    result = _merge(base, variant)
    if expect is not None:
        result.entries["expect"] = expect
    return result


def _merge(base: nodes.MapNode, over: nodes.MapNode) -> nodes.MapNode:
    entries = dict(base.entries)
    for key, entry in over.entries.items():
        below = entries.get(key)
        if (
            below is not None
            and isinstance(below.value, nodes.MapNode)
            and isinstance(entry.value, nodes.MapNode)
        ):
            entries[key] = nodes.MapEntry(entry.key_mark, _merge(below.value, entry.value))
        else:
            entries[key] = entry
    return nodes.MapNode(entries, base.mark)


@dataclass(frozen=True, slots=True)
class Override:
    """One option ``--set key=value``: the path of its key, and the value.

    ``everywhere`` means that the key is only the name of a setting (``acks=all``). Then the setting
    is removed from brokers, topics and clients that have their own value. If the value is a
    mapping, it replaces the mapping in the campaign, except for the keys that it ``keeps``.
    """

    parts: tuple[str, ...]
    value: nodes.Node
    mark: nodes.Mark
    everywhere: bool = False
    keeps: tuple[str, ...] = ()


class OverrideError(Exception):
    """An option cannot be applied."""

    def __init__(self, mark: nodes.Mark, message: str) -> None:
        super().__init__(message)
        self.mistake = nodes.Mistake(mark, message)


def parse_override(option: str) -> Override:
    """Parse an option.

    Raises:
        OverrideError: The option has no value, or its key does not exist.

    """
    mark = nodes.Mark(0, 0, option)
    name, path = option_words(option)
    if name == CLUSTER_OPTION:
        return Override((CLUSTER,), nodes.Scalar(path, mark, plain=False), mark)
    key, equals, text = option.partition("=")
    key = key.strip()
    if not option.isprintable():
        raise OverrideError(mark, "the option has characters that cannot be printed")
    if not equals or not key:
        raise OverrideError(mark, "write key=value, for example acks=all or cluster.brokers=5")
    value = _value(text.strip(), mark)
    if scopes_of(key) or key in qualified_names():
        return Override((_SETTINGS, key), value, mark, everywhere=True)
    parts = _parts(key)
    if len(parts) > nodes.MAX_DEPTH:
        raise OverrideError(mark, f"more than {nodes.MAX_DEPTH} levels deep")
    fields = file_section().keys.keys() - {"variants"}
    if parts[0] == "variants":
        raise OverrideError(mark, "an option applies to all variants; name the key without `variants`")
    if parts[0] not in fields:
        names = fields | set(setting_names()) | qualified_names().keys()
        hint = former_name_hint(key) or prefix_hint(key) or unmodelled_hint(key)
        hint = hint or suggestion(key, names)
        raise OverrideError(mark, f"neither a setting nor a key of a campaign: {quoted(key)}{hint}")
    if parts[0] == BEHAVIOURS:
        return _of_switches(parts, value, mark)
    return Override(parts, value, mark)


def _of_switches(parts: tuple[str, ...], value: nodes.Node, mark: nodes.Mark) -> Override:
    """Return an option that sets switches, with their present names."""
    if len(parts) > 1:
        return Override((parts[0], current_switch(parts[1]), *parts[2:]), value, mark)
    root, mistakes = with_current_switches(nodes.MapNode({BEHAVIOURS: nodes.MapEntry(mark, value)}, mark))
    if mistakes:
        raise OverrideError(*mistakes[0])
    return Override(parts, root.entries[BEHAVIOURS].value, mark)


def _parts(key: str) -> tuple[str, ...]:
    """Split a path into parts. The name of a setting is one part, although it has dots."""
    parts = key.split(".")
    if _SETTINGS in parts[:-1]:
        place = parts.index(_SETTINGS)
        return (*parts[: place + 1], ".".join(parts[place + 1 :]))
    return tuple(parts)


def _value(text: str, mark: nodes.Mark) -> nodes.Node:
    """Parse the value of an option: a YAML scalar, or a list or a mapping in brackets."""
    if not text.startswith(("[", "{", '"', "'")):
        return nodes.Scalar(text, mark)
    try:
        document = nodes.compose(text)
    except nodes.YamlError as error:
        raise OverrideError(mark, error.mistakes[0].message) from None
    if document.mistakes:
        raise OverrideError(mark, document.mistakes[0].message)
    return _with_mark(document.root, mark)


def _with_mark(node: nodes.Node, mark: nodes.Mark) -> nodes.Node:
    if isinstance(node, nodes.MapNode):
        return nodes.MapNode(
            {key: nodes.MapEntry(mark, _with_mark(entry.value, mark)) for key, entry in node.entries.items()},
            mark,
        )
    if isinstance(node, nodes.ListNode):
        return nodes.ListNode(tuple(_with_mark(item, mark) for item in node.items), mark)
    return nodes.Scalar(node.text, mark, node.plain)


def apply_override(root: nodes.MapNode, override: Override) -> nodes.MapNode:
    """Apply an option to a campaign. Its swarm no longer draws what the option decides.

    Raises:
        OverrideError: The option names a place that the campaign does not have.

    """
    if override.everywhere:
        root = _without_setting(root, override.parts[1])
    root = _set_in_mapping(root, override.parts, override)
    return without_choice(root, override.parts, override.value)


def _set_value(node: nodes.Node | None, parts: Sequence[str], override: Override) -> nodes.Node:
    if not parts:
        return _value_with_kept_keys(node, override)
    if isinstance(node, nodes.Scalar) and node.is_null():
        node = None
    if isinstance(node, nodes.ListNode) or (node is None and parts[0] == "0"):
        return _set_in_list(node or nodes.ListNode((), override.mark), parts, override)
    if node is None or isinstance(node, nodes.MapNode):
        return _set_in_mapping(node or nodes.MapNode({}, override.mark), parts, override)
    where = ".".join(override.parts[: len(override.parts) - len(parts)])
    raise OverrideError(override.mark, f"`{where}` is {quoted(node.text)} here, and has no `{parts[0]}`")


def _value_with_kept_keys(node: nodes.Node | None, override: Override) -> nodes.Node:
    value = override.value
    if not isinstance(node, nodes.MapNode) or not isinstance(value, nodes.MapNode):
        return value
    kept = {key: node.entries[key] for key in override.keeps if key in node.entries}
    return nodes.MapNode({**kept, **value.entries}, value.mark)


def _set_in_mapping(node: nodes.MapNode, parts: Sequence[str], override: Override) -> nodes.MapNode:
    below = node.entries.get(parts[0])
    value = _set_value(below.value if below else None, parts[1:], override)
    return nodes.MapNode({**node.entries, parts[0]: nodes.MapEntry(override.mark, value)}, node.mark)


def _set_in_list(node: nodes.ListNode, parts: Sequence[str], override: Override) -> nodes.ListNode:
    length = len(node.items)
    if not (parts[0].isascii() and parts[0].isdigit() and len(parts[0]) < 7 and int(parts[0]) <= length):
        where = ".".join(override.parts[: len(override.parts) - len(parts)])
        raise OverrideError(
            override.mark, f"`{where}` is a list: write a number from 0 to {length}, not {quoted(parts[0])}"
        )
    index = int(parts[0])
    items = list(node.items)
    if index == length:
        items.append(_set_value(None, parts[1:], override))
    else:
        items[index] = _set_value(items[index], parts[1:], override)
    return nodes.ListNode(tuple(items), node.mark)


def _without_setting(root: nodes.MapNode, name: str) -> nodes.MapNode:
    """Remove a setting from the brokers, topics and clients that have their own value of it.

    Also remove it where it is set for producers or for consumers only.
    """
    only, plain = qualified_names().get(name, (None, name))
    paths: list[nodes.Path] = [
        (_SETTINGS, qualified) for qualified, (_, of) in qualified_names().items() if of == name
    ]
    for place, keys in _OWNER_LISTS.items():
        owners = nodes.lookup(root, place)[2]
        if isinstance(owners, nodes.ListNode):
            paths += [
                (*place, index, key, plain)
                for index in range(len(owners.items))
                for scope, key in keys.items()
                if only in (None, scope)
            ]
    return nodes.without(root, paths)
