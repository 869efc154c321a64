"""Reads a campaign file into plans, and reports all of its mistakes at once."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Final

from harrow.campaigns.language import literals
from harrow.campaigns.language import yaml_positions as nodes
from harrow.campaigns.language.overlay import Override, OverrideError, merged, overridden, parse_override
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.problem import CampaignError, Problem
from harrow.campaigns.language.readers.draft import Draft, Report
from harrow.campaigns.language.readers.plan_reader import BASE, read_plan
from harrow.campaigns.language.spelling import listed, printable, quoted

__all__ = ["Campaign", "CampaignError", "Problem", "load_campaign", "load_text"]

# A variant repeats the campaign; this bounds what all of them together can cost.
_NODES_MAX: Final = 500_000

VARIANTS_MAX: Final = 100

OPTION: Final = "--set"

_FOR_EDITORS: Final = "yaml-language-server:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """A campaign file that has been read: its plans are the base, then each variant.

    ``text`` is what was read; the file may have changed since. ``notes`` are about what it says in vain.
    """

    name: str
    description: str
    path: Path
    plans: tuple[Plan, ...]
    text: str = ""
    notes: tuple[Problem, ...] = ()

    def heading(self) -> str:
        """Return the comments above the first key, a line each."""
        lines = takewhile(lambda line: line.startswith("#") or not line.strip(), self.text.splitlines())
        text = (line.removeprefix("#").removeprefix(" ").rstrip() for line in lines)
        # Where an editor finds the schema depends on where the file is.
        return "\n".join(line for line in text if not line.startswith(_FOR_EDITORS)).strip("\n")


def load_campaign(
    path: str | Path, overrides: Sequence[str] = (), variants: Collection[str] = ()
) -> Campaign:
    """Return the campaign in a file, with the options ``--set key=value`` applied (`load_text`).

    Raises:
        CampaignError: the file cannot be read, or has mistakes.

    """
    return load_text(read_file(Path(path)), str(path), overrides, variants)


def load_text(
    text: str, file: str, overrides: Sequence[str] = (), variants: Collection[str] = ()
) -> Campaign:
    """Return the campaign in *text*; *file* is what messages call it.

    Options need not suit every variant: where *variants* are named (``base`` for the campaign itself), others that do not go
    with them are left out. Kafka 0.10.2, say, has no idempotence for a variant that asks for it.

    Raises:
        CampaignError: the text has mistakes.

    """
    report = Report()
    campaign = _load(text, Path(file), overrides, variants if overrides else (), report)
    if campaign is None or report.found:
        raise CampaignError(_problems(text, file, report))
    notes = Report(found={note: [None] for note in report.notes})
    return replace(campaign, notes=tuple(_problems(text, file, notes)))


def read_file(path: Path) -> str:
    """Return a file's text; a file larger than a campaign may be is not read to its end.

    Raises:
        CampaignError: it cannot be read, or is not UTF-8.

    """
    try:
        with path.open("rb") as file:
            content = file.read(nodes.MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CampaignError([Problem(str(path), 0, 0, f"cannot be read: {reason}")]) from None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        if len(content) > nodes.MAX_BYTES:
            return content.decode("utf-8", errors="replace")
        mark = _mark_of_end(content[: error.start].decode("utf-8"))
        message = f"not UTF-8: the byte 0x{content[error.start]:02x}"
        raise CampaignError([Problem(str(path), mark.line, mark.column, message)]) from None


def _mark_of_end(text: str) -> nodes.Mark:
    lines = f"{text}|".splitlines()
    return nodes.Mark(len(lines), len(lines[-1]))


def _load(
    text: str, path: Path, overrides: Sequence[str], only: Collection[str], report: Report
) -> Campaign | None:
    root = _root(text, report)
    if root is None:
        return None
    root, options = _with_overrides(root, overrides, report)
    name = _name(root, path, report)
    variants = _variants(root, report)
    base = nodes.without(root, [("name",), ("variants",)])
    if _is_too_much(base, variants, report):
        return None
    names = _variant_names(root)
    plans: list[Plan] = []
    description = ""
    for variant, over in [(None, None), *variants.items()]:
        is_wanted = not only or (variant or BASE) in only
        found = report if is_wanted else Report()
        tree = base if over is None else _overridden(merged(base, over), options, variant, found)
        plan = read_plan(Draft(tree, variant, found), name, names)
        if variant is None:
            description = plan.description
        if is_wanted or not found.found:
            plans.append(plan)
    return Campaign(name=name, description=description, path=path, plans=tuple(plans), text=text)


def _root(text: str, report: Report) -> nodes.MapNode | None:
    """Return the document's mapping, None when there is nothing to go on with."""
    if len(text) > nodes.MAX_BYTES or len(text.encode("utf-8", errors="replace")) > nodes.MAX_BYTES:
        report.add(nodes.Mark(1, 1), "the file is larger than 1 MiB", None)
        return None
    try:
        document = nodes.compose(text)
    except nodes.YamlError as error:
        _note(error.mistakes, report)
        return None
    _note(document.mistakes, report)
    if not isinstance(document.root, nodes.MapNode):
        message = "a campaign is a mapping (`key: value`); `harrow new NAME` writes one to start from"
        report.add(document.root.mark, message, None)
        return None
    return document.root


def _note(mistakes: Sequence[nodes.Mistake], report: Report) -> None:
    for mistake in mistakes:
        report.add(mistake.mark, mistake.message, None)


def _with_overrides(
    root: nodes.MapNode, overrides: Sequence[str], report: Report
) -> tuple[nodes.MapNode, list[Override]]:
    options: list[Override] = []
    for text in overrides:
        try:
            options.append(parse_override(text))
        except OverrideError as error:
            report.add(*error.mistake, None)
    return _overridden(root, options, None, report), options


def _overridden(
    tree: nodes.MapNode, options: Sequence[Override], variant: str | None, report: Report
) -> nodes.MapNode:
    for option in options:
        if variant is not None and option.parts[0] == "name":
            continue
        try:
            tree = overridden(tree, option)
        except OverrideError as error:
            report.add(*error.mistake, variant)
    return tree


def _name(root: nodes.MapNode, path: Path, report: Report) -> str:
    entry = root.entries.get("name")
    if entry is None:
        stem = "".join(
            char if char.isascii() and (char.isalnum() or char in "._-") else "-" for char in path.stem
        )
        return stem.lstrip("._-")[:100] or "campaign"
    if not isinstance(entry.value, nodes.Scalar) or entry.value.is_null():
        report.add(entry.value.mark, "name: expected text", None)
        return ""
    try:
        return literals.campaign_name(entry.value.text)
    except literals.LiteralError as error:
        report.add(entry.value.mark, f"name: {error}", None)
        return ""


def _variant_names(root: nodes.MapNode) -> tuple[str, ...]:
    entry = root.entries.get("variants")
    return tuple(entry.value.entries) if entry is not None and isinstance(entry.value, nodes.MapNode) else ()


def _variants(root: nodes.MapNode, report: Report) -> dict[str, nodes.MapNode]:
    entry = root.entries.get("variants")
    if entry is None:
        return {}
    if not isinstance(entry.value, nodes.MapNode):
        report.add(entry.value.mark, "variants: expected a mapping of names to what is different", None)
        return {}
    if len(entry.value.entries) > VARIANTS_MAX:
        message = f"{len(entry.value.entries)} variants are too many: at most {VARIANTS_MAX}"
        report.add(entry.key_mark, message, None)
        return {}
    found: dict[str, nodes.MapNode] = {}
    for name, variant in entry.value.entries.items():
        try:
            literals.variant_name(name)
        except literals.LiteralError as error:
            report.add(variant.key_mark, str(error), None)
        if isinstance(variant.value, nodes.MapNode):
            found[name] = variant.value
        else:
            message = f"variant {quoted(name)}: expected a mapping of what is different"
            report.add(variant.value.mark, message, None)
    return found


def _is_too_much(base: nodes.MapNode, variants: Mapping[str, nodes.MapNode], report: Report) -> bool:
    if not variants:
        return False
    total = nodes.size(base) + sum(nodes.size(base) + nodes.size(over) for over in variants.values())
    if total <= _NODES_MAX:
        return False
    report.add(nodes.Mark(1, 1), f"the variants together have more than {_NODES_MAX} keys and values", None)
    return True


def _problems(text: str, file: str, report: Report) -> list[Problem]:
    """Return what was found, options first, then by position."""
    lines = text.removeprefix("\ufeff").splitlines() or [""]
    return sorted(_each_problem(lines, file, report), key=lambda problem: (problem.line, problem.column))


def _each_problem(lines: Sequence[str], file: str, report: Report) -> Iterator[Problem]:
    for (mark, found), variants in report.found.items():
        message = found
        if variants and None not in variants:
            message += f" (in variant {listed([printable(str(name)) for name in variants])})"
        if mark.option is not None:
            yield Problem(OPTION, 0, 0, f"{printable(mark.option)}: {message}")
            continue
        # The end of the file may count as the beginning of a line that is not there.
        line = min(mark.line, len(lines))
        column = min(mark.column, len(lines[line - 1]) + 1) if line == mark.line else len(lines[line - 1]) + 1
        yield Problem(file, line, column, message)
