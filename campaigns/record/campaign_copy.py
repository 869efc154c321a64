"""``campaign.yaml`` beside a run: the campaign as it was run, so that it can be run again alone.

The author's text is copied as it was read, comments and all, when it says everything. With
a variant or with ``--set`` it is written anew with these merged in. What that would not say,
the plan itself is written for.
"""

import shlex
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import yaml

from harrow.campaigns.language import yaml_positions as nodes
from harrow.campaigns.language.loader import Campaign, CampaignError, load_text
from harrow.campaigns.language.overlay import merged, overridden, parse_override
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.plan_file import campaign_text
from harrow.campaigns.record.report import BASE, variant_name

_NAME: Final = "name"
_VARIANTS: Final = "variants"
_EXPECT: Final = "expect"
_ONLY: Final = "only"
_NOWHERE: Final = nodes.Mark(0, 0)
_STRING: Final = "tag:yaml.org,2002:str"
_WIDTH: Final = 110

_resolve: Final[Any] = yaml.resolver.Resolver().resolve


def campaign_copy(
    campaign: Campaign, plan: Plan, seed: int, overrides: Sequence[str] = (), notes: Sequence[str] = ()
) -> str:
    """Return the text of a campaign file that runs *plan*, a plan of *campaign*, again; *notes* stand above it.

    Raises:
        UnwritablePlanError: no campaign file says this plan.

    """
    body, has_variants = _body(campaign.text, plan.campaign, plan.variant, tuple(overrides))
    # What is copied as it was read says what the campaign has been loaded as.
    is_as_read = body == campaign.text and not overrides and campaign.brokers is None
    known = tuple(each.digest() for each in campaign.plans) if is_as_read else _digests(body)
    if plan.digest() not in known:
        body, has_variants = campaign_text(plan), False
    return _header(plan, seed, overrides, notes, variants=has_variants) + body


@lru_cache(maxsize=64)
def _digests(text: str) -> tuple[str, ...]:
    """Return the digests of the plans in a text: the base, and each variant."""
    try:
        return tuple(plan.digest() for plan in load_text(text, "campaign.yaml").plans)
    except CampaignError:
        return ()


@lru_cache(maxsize=64)  # the runs of a plan with many seeds have the same text
def _body(text: str, name: str, variant: str | None, overrides: tuple[str, ...]) -> tuple[str, bool]:
    text = text.removeprefix("\ufeff")
    root = nodes.compose(text).root
    assert isinstance(root, nodes.MapNode), "only a campaign that has been loaded is run"
    if variant is None and not overrides and _NAME in root.entries:
        return text, _VARIANTS in root.entries
    merged_root = _yaml_node(_effective(root, name, variant, overrides))
    return str(yaml.serialize(merged_root, width=_WIDTH, allow_unicode=True)), False


def expect_line(path: Path, variant: str | None) -> int:
    """Return the line on which a campaign says what it expects of a variant at the end, 0 when it does not."""
    try:
        root = nodes.compose(path.read_text(encoding="utf-8")).root
    except (OSError, UnicodeDecodeError, nodes.YamlError):
        # The file has changed since it was loaded; whatever it says now is not what was run.
        return 0
    for place in ((_VARIANTS, variant or BASE, _EXPECT), (_EXPECT,)):
        found, mark, _ = nodes.lookup(root, place)
        if found == place:
            return mark.line
    return 0


def _header(plan: Plan, seed: int, overrides: Sequence[str], notes: Sequence[str], *, variants: bool) -> str:
    only_base = " --variant base" if variants else ""
    lines = [f"The variant `{variant_name(plan)}` of {plan.campaign}, as it was run with seed {seed}."]
    lines += [f"Merged in: --set {shlex.quote(override)}" for override in overrides]
    lines += [f"Again: harrow run campaign.yaml --seed {seed}{only_base}", *notes]
    return "".join(f"# {_on_one_line(line)}".rstrip() + "\n" for line in lines) + "\n"


def _on_one_line(text: str) -> str:
    """Return a text on one line, indented as it is: an indented command is to be copied whole."""
    indent = len(text) - len(text.lstrip(" "))
    return f"{' ' * indent}{' '.join(text.split())}"


def _effective(
    root: nodes.MapNode, name: str, variant: str | None, overrides: Sequence[str]
) -> nodes.MapNode:
    """Return the campaign with its variant and the options merged in, and without variants."""
    root = _overridden(root, overrides)
    if variant is not None:
        variants = root.entries[_VARIANTS].value
        assert isinstance(variants, nodes.MapNode), "the plan's variant stands there"
        over = variants.entries[variant].value
        # Options outweigh variants, so they are applied on both sides of them, as the loader does.
        root = _overridden(merged(root, over) if isinstance(over, nodes.MapNode) else root, overrides)
    entries = {key: entry for key, entry in root.entries.items() if key not in (_NAME, _VARIANTS)}
    for key in ("script", "faults"):
        if key in entries:
            steps = _steps_of(entries[key].value, BASE if variant is None else variant)
            entries[key] = nodes.MapEntry(entries[key].key_mark, steps)
    return nodes.MapNode({_NAME: nodes.MapEntry(_NOWHERE, nodes.Scalar(name, _NOWHERE)), **entries}, _NOWHERE)


def _overridden(root: nodes.MapNode, overrides: Sequence[str]) -> nodes.MapNode:
    for override in overrides:
        root = overridden(root, parse_override(override))
    return root


def _steps_of(node: nodes.Node, variant: str) -> nodes.Node:
    """Return the steps that a variant has, without saying so."""
    if not isinstance(node, nodes.ListNode):
        return node
    return nodes.ListNode(tuple(_without_only(step) for step in node.items if _has(step, variant)), node.mark)


def _has(step: nodes.Node, variant: str) -> bool:
    if not isinstance(step, nodes.MapNode) or _ONLY not in step.entries:
        return True
    names = step.entries[_ONLY].value
    items = names.items if isinstance(names, nodes.ListNode) else (names,)
    return any(isinstance(item, nodes.Scalar) and item.text == variant for item in items)


def _without_only(step: nodes.Node) -> nodes.Node:
    if not isinstance(step, nodes.MapNode):
        return step
    return nodes.MapNode({key: entry for key, entry in step.entries.items() if key != _ONLY}, step.mark)


def _yaml_node(node: nodes.Node) -> yaml.Node:
    if isinstance(node, nodes.MapNode):
        pairs = [
            (yaml.ScalarNode(_STRING, key), _yaml_node(entry.value)) for key, entry in node.entries.items()
        ]
        return yaml.MappingNode("tag:yaml.org,2002:map", pairs, flow_style=not pairs)
    if isinstance(node, nodes.ListNode):
        # Rows of numbers and names read better on one line.
        flow = not any(isinstance(item, nodes.MapNode) for item in node.items)
        items = [_yaml_node(item) for item in node.items]
        return yaml.SequenceNode("tag:yaml.org,2002:seq", items, flow_style=flow)
    return _scalar_node(node)


def _scalar_node(scalar: nodes.Scalar) -> yaml.ScalarNode:
    """Return text as it was written: what had quotes keeps them, what had none means what it meant."""
    if scalar.plain:
        return yaml.ScalarNode(_resolve(yaml.ScalarNode, scalar.text, (True, False)), scalar.text)
    return yaml.ScalarNode(_STRING, scalar.text, style="|" if "\n" in scalar.text else '"')
