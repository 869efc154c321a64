"""Reads a campaign file into plans, and reports all mistakes at once."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import takewhile
from pathlib import Path
from typing import Final

from harrow.campaigns.language import literals
from harrow.campaigns.language import yaml_positions as nodes
from harrow.campaigns.language.cluster_file import (
    SOURCE_KEYS,
    ClusterFileError,
    ClusterFiles,
    in_long_form,
    is_cluster_file,
    is_file_option,
    is_workload_file,
    names_file,
)
from harrow.campaigns.language.encoding import encoding_mistake
from harrow.campaigns.language.overlay import (
    Override,
    OverrideError,
    apply_override,
    merge_variant,
    parse_override,
)
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.problem import (
    CampaignError,
    ClusterFileGivenError,
    Problem,
    UnsuitedError,
    WorkloadFileGivenError,
)
from harrow.campaigns.language.readers.draft import Draft, Report
from harrow.campaigns.language.readers.plan_reader import BASE, read_plan
from harrow.campaigns.language.regular_file import first_bytes
from harrow.campaigns.language.release_options import (
    BrokerRelease,
    in_words,
    names_release,
    release_mark,
    written_release,
)
from harrow.campaigns.language.spelling import listed, option_words, printable, quoted
from harrow.campaigns.language.switch_names import with_current_switches
from harrow.cluster_model.lazy_dataclass import dataclass, replace

__all__ = ["Campaign", "CampaignError", "Problem", "load_campaign", "load_text"]

# Bounds the cost of all variants together, because each variant repeats the whole campaign.
_NODES_MAX: Final = 500_000

VARIANTS_MAX: Final = 100

READ_MAX: Final = nodes.MAX_BYTES + 1
"""How many bytes of a file to read, to see whether it is too large."""
_TOO_LARGE: Final = "the file is larger than 1 MiB"
_ANY: Final = "name: any\n"

_AIMS: Final[nodes.Path] = ("swarm", "aims")

_EDITOR_LINE: Final = "yaml-language-server:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """A loaded campaign file.

    Its plans are the base, which is the campaign without a variant, and each variant. ``text`` is
    the content of the file when it was read. ``notes`` report keys without effect, and plans that
    were left out because they do not suit the release that an option names.
    """

    name: str
    description: str
    path: Path
    plans: tuple[Plan, ...]
    text: str = ""
    notes: tuple[Problem, ...] = ()
    brokers: BrokerRelease | None = None
    """The release for which plans were read that name no release."""
    cluster_files: Mapping[str, str] = field(default_factory=dict)
    """The texts of the cluster files that the campaign and its options name."""

    def heading(self) -> str:
        """Return the comment lines above the first key."""
        lines = takewhile(lambda line: line.startswith("#") or not line.strip(), self.text.splitlines())
        text = (line.removeprefix("#").removeprefix(" ").rstrip() for line in lines)
        # The line for editors has a path to the schema that is relative to the file, so it is no
        # use anywhere else.
        return "\n".join(line for line in text if not line.startswith(_EDITOR_LINE)).strip("\n")


def load_campaign(
    path: str | Path,
    overrides: Sequence[str] = (),
    variants: Collection[str] = (),
    brokers: BrokerRelease | None = None,
) -> Campaign:
    """Load the campaign in a file, with the options ``--set key=value`` applied (`load_text`).

    Raises:
        CampaignError: The file cannot be read, or has mistakes.

    """
    return load_text(read_file(Path(path)), str(path), overrides, variants, brokers)


def load_text(
    text: str,
    file: str,
    overrides: Sequence[str] = (),
    variants: Collection[str] = (),
    brokers: BrokerRelease | None = None,
    cluster_files: Mapping[str, str] | None = None,
) -> Campaign:
    """Load the campaign in *text*; messages call the file *file*.

    The names of cluster files in the campaign are relative to *file*, or keys of *cluster_files*
    (`Campaign.cluster_files`).

    Options need not suit every variant. If *variants* are named (``base`` is the campaign itself),
    other variants that do not suit the options are left out: for example, a variant that needs
    idempotence does not suit Kafka 0.10.2. If an option names a release, plans that do not suit the
    release are always left out. If only some aims of a swarm do not suit it, only these aims are
    left out. The notes report what was left out.

    A plan that names neither a release nor a control plane suits any release. With *brokers* it is
    read for the release of these brokers. If it needs something that they lack, it is read for the
    default release.

    Raises:
        UnsuitedError: The text is correct, but no plan suits the release that an option names.
        CampaignError: The text has mistakes.

    """
    report = Report()
    files = ClusterFiles(Path(file).parent, cluster_files)
    campaign = _load(text, Path(file), overrides, variants if overrides else (), brokers, report, files)
    if campaign is None or report.mistakes:
        raise CampaignError(problems_in(text, file, report))
    notes = Report(mistakes={note: [None] for note in report.notes})
    return replace(
        campaign, notes=(*campaign.notes, *problems_in(text, file, notes)), cluster_files=files.texts
    )


def plan_without_work(overrides: Sequence[str]) -> Plan:
    """Return the plan of a campaign that suits every cluster, so that only options can be wrong.

    Raises:
        CampaignError: An option has mistakes.

    """
    return load_text(_ANY, "any.yaml", overrides).plans[0]


def check_cluster_file(path: Path) -> None:
    """Check a cluster file by loading a campaign that names it.

    Raises:
        CampaignError: The file cannot be used.

    """
    content = read_file(path)
    if _is_too_large(content):
        raise CampaignError([Problem(str(path), 1, 1, _TOO_LARGE)])
    check_cluster_text(path, content)


def check_workload_file(path: Path) -> None:
    """Check a workload file by loading a campaign that names it.

    Raises:
        CampaignError: The file cannot be used.

    """
    load_text(f"{_ANY}workload: {json.dumps(path.name)}\n", str(path.parent / "any.yaml"))


def check_cluster_text(path: Path, text: str) -> None:
    """Check the text of a cluster file, which messages call *path*.

    Raises:
        CampaignError: The text has mistakes.

    """
    campaign = f"{_ANY}cluster: {json.dumps(path.name)}\n"
    load_text(campaign, str(path.parent / "any.yaml"), cluster_files={path.name: text})


def read_file(path: Path) -> str:
    """Return a file's text, cut off if the file is larger than a campaign may be.

    Raises:
        CampaignError: The file cannot be read, or is not UTF-8.

    """
    return decoded(read_bytes(path), str(path))


def decoded(content: bytes, file: str) -> str:
    """Return the text of a file of which `read_bytes` returned the *content*.

    Raises:
        CampaignError: It is not UTF-8.

    """
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        if len(content) > nodes.MAX_BYTES:
            return content.decode("utf-8", errors="replace")
        mark = _mark_of_end(content[: error.start].decode("utf-8"))
        raise CampaignError([Problem(file, mark.line, mark.column, encoding_mistake(error))]) from None


def read_bytes(path: Path, limit: int = READ_MAX) -> bytes:
    """Return the content of a file, cut off after *limit* bytes.

    Raises:
        CampaignError: it cannot be read.

    """
    try:
        return first_bytes(path, limit)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CampaignError([Problem(str(path), 0, 0, f"cannot be read: {reason}")]) from None


def _mark_of_end(text: str) -> nodes.Mark:
    lines = f"{text}|".splitlines()
    return nodes.Mark(len(lines), len(lines[-1]))


def _load(
    text: str,
    path: Path,
    overrides: Sequence[str],
    selected: Collection[str],
    brokers: BrokerRelease | None,
    report: Report,
    files: ClusterFiles,
) -> Campaign | None:
    written = _root(text, report)
    options = _options(overrides, report, files)
    if written is None:
        return None
    if is_cluster_file(written):
        message = "this is a cluster file: run a campaign on it with --cluster"
        raise ClusterFileGivenError([Problem(str(path), 1, 1, message)])
    if is_workload_file(written):
        message = "this is a workload file: a campaign names it as its `workload`"
        raise WorkloadFileGivenError([Problem(str(path), 1, 1, message)])
    written = _in_current_form(written, report)
    variants = {name: _in_current_form(over, report) for name, over in _variants(written, report).items()}
    try:
        written = files.with_workload(written)
        variants = {name: files.with_workload(over) for name, over in variants.items()}
        complete = files.with_file(written)
        for overlay in variants.values():
            files.with_file(overlay)
    except ClusterFileError as error:
        _note(error.mistakes, report)
        return None
    root = _apply_options(files.for_options(written), options, None, report)
    name = _name(root, path, report)
    base = _without_names(root)
    if _has_too_many_nodes(base, variants, report):
        return None
    plans = _Plans(
        name=name,
        names=_variant_names(root),
        base=base,
        complete=complete,
        written=_without_names(written),
        options=options,
        selected=selected,
        report=report,
        brokers=brokers,
        files=files,
    )
    plans.read_all(variants)
    # A variant that the user asked for is never left out silently.
    if not report.mistakes and (not plans.plans or (selected and plans.unsuited.mistakes)):
        raise UnsuitedError(problems_in(text, str(path), plans.unsuited))
    return Campaign(
        name=name,
        description=plans.description,
        path=path,
        plans=tuple(plans.plans),
        text=text,
        notes=tuple(problems_in(text, str(path), plans.left_out())),
        brokers=brokers,
    )


@dataclass(slots=True, kw_only=True)
class _Plans:
    """Reads the plans of a campaign: the base, then each variant, each with the options applied."""

    name: str
    names: tuple[str, ...]
    """The names of the variants."""
    base: nodes.MapNode
    """The campaign with its cluster file and the options, but without its name and variants."""
    complete: nodes.MapNode
    """The campaign with its cluster file, but without options."""
    written: nodes.MapNode
    """The campaign as written in its file, without options and without its cluster file."""
    options: Sequence[Override]
    selected: Collection[str]
    """The variants that the user asked for; if it is empty, all."""
    report: Report
    brokers: BrokerRelease | None
    files: ClusterFiles
    plans: list[Plan] = field(default_factory=list)
    description: str = ""
    unsuited: Report = field(default_factory=Report)
    """Mistakes of plans that would be correct without the options that name a release."""
    _reasons: dict[nodes.Mistake, list[str]] = field(default_factory=dict)
    """The first mistake of each unsuited plan, with the names of all plans that have it."""
    _aims: dict[nodes.Mistake, str] = field(default_factory=dict)
    """The first mistake of each swarm aim that was left out, with the aim's probe."""
    _of_other_releases: dict[str, nodes.Mark] = field(default_factory=dict)
    """The variants that were left out because they name their own release, and where they name
    it."""

    def read_all(self, variants: Mapping[str, nodes.MapNode]) -> None:
        self._read(None, None)
        others = {
            name: overlay for name, overlay in variants.items() if self._is_of_another_release(name, overlay)
        }
        for name, overlay in variants.items():
            if name not in others:
                self._read(name, overlay)
        if self._is_base_left_out() and not self.report.mistakes and not self.selected:
            # The base does not suit the release that the user asked for. Instead of it, variants
            # that are written for the control plane of that release are read, even if other
            # variants also suit the release.
            for name in [name for name, overlay in others.items() if self._is_counterpart(overlay)]:
                self._read(name, others.pop(name))
        marks = {name: release_mark(overlay) for name, overlay in others.items() if not self.selected}
        self._of_other_releases = {name: mark for name, mark in marks.items() if mark is not None}

    def _is_base_left_out(self) -> bool:
        return any(BASE in names for names in self._reasons.values())

    def left_out(self) -> Report:
        """Return a note for each reason why plans or aims were left out."""
        notes = Report()
        for (mark, message), probe in self._aims.items():
            notes.add(mark, f"the aim {quoted(probe)} is left out: {message}", None)
        for (mark, message), names in self._reasons.items():
            notes.add(mark, f"{listed(names)} {_are_or_is(names)} left out: {message}", None)
        if self._of_other_releases:
            names = list(self._of_other_releases)
            several = len(names) > 1
            own = "name releases of their own" if several else "names a release of its own"
            which, one = ("NAME", "one") if several else (names[0], "it")
            hint = f"`--variant {which} {in_words(self._release_options())}` runs {one} anyway"
            message = f"{listed(names)} {own} and {_are_or_is(names)} left out; {hint}"
            notes.add(next(iter(self._of_other_releases.values())), message, None)
        return notes

    def _read(self, variant: str | None, overlay: nodes.MapNode | None) -> None:
        is_wanted = not self.selected or (variant or BASE) in self.selected
        attempt = self.report.new_attempt()
        tree = (
            self.base
            if overlay is None
            else _apply_options(self._with_variant(overlay), self.options, variant, attempt)
        )
        read = self._read_for_brokers(tree, variant)
        plan, attempt = read or (read_plan(Draft(tree, variant, attempt), self.name, self.names), attempt)
        if variant is None:
            self.description = plan.description
        is_unsuited = is_wanted and bool(attempt.mistakes) and self._is_unsuited(attempt, variant, overlay)
        suited = self._without_aims(attempt, variant, tree) if is_unsuited else None
        if suited is not None:
            plan, attempt = suited
        if not attempt.mistakes:
            self.report.notes |= attempt.notes if is_wanted else {}
            self.plans.append(self._as_written(plan, tree, overlay))
        elif is_unsuited:
            self.unsuited.add_all(attempt)
            first = min(attempt.mistakes, key=lambda mistake: mistake.mark[:2])
            self._reasons.setdefault(first, []).append(variant or BASE)
        elif is_wanted:
            self.report.add_all(attempt)

    def _read_for_brokers(self, tree: nodes.MapNode, variant: str | None) -> tuple[Plan, Report] | None:
        """Read a plan that names no release for the brokers' release; None if this is no use."""
        if self.brokers is None or written_release(tree).is_named:
            return None
        attempt = self.report.new_attempt()
        options = _options(self.brokers.options(), attempt, self.files)
        plan = read_plan(
            Draft(_apply_options(tree, options, variant, attempt), variant, attempt), self.name, self.names
        )
        return None if attempt.mistakes else (plan, attempt)

    def _without_aims(
        self, attempt: Report, variant: str | None, tree: nodes.MapNode
    ) -> tuple[Plan, Report] | None:
        """Read a plan without the aims that do not suit the release; None if mistakes remain."""
        aims = _aims_with(attempt, tree)
        if not aims:
            return None
        second_attempt = self.report.new_attempt()
        plan = read_plan(Draft(_without_aims(tree, aims), variant, second_attempt), self.name, self.names)
        if second_attempt.mistakes:
            return None
        self._aims.update(aims.values())
        return plan, second_attempt

    def _release_options(self) -> list[Override]:
        return [option for option in self.options if names_release(option)]

    def _with_other_options(self, overlay: nodes.MapNode | None) -> nodes.MapNode:
        """Return the campaign or a variant with all options except those that name a release."""
        others = [option for option in self.options if not names_release(option)]
        tree = (
            self.complete if overlay is None else self.files.with_file(merge_variant(self.written, overlay))
        )
        return _without_names(_apply_options(tree, others, None, Report()))

    def _with_variant(self, overlay: nodes.MapNode) -> nodes.MapNode:
        """Merge a variant over the campaign. Its cluster file, if any, replaces the campaign's."""
        if not names_file(overlay):
            return merge_variant(self.base, overlay)
        return self.files.for_options(merge_variant(self.written, overlay))

    def _is_of_another_release(self, name: str, overlay: nodes.MapNode) -> bool:
        if not self._release_options() or name in self.selected or release_mark(overlay) is None:
            return False
        now = _apply_options(self._with_variant(overlay), self.options, name, Report())
        return written_release(self._with_other_options(overlay)).differs_from(written_release(now))

    def _is_counterpart(self, overlay: nodes.MapNode) -> bool:
        """Return whether a variant, unlike the base, is for the control plane of the options."""
        metadata = written_release(self.base).metadata
        return (
            written_release(self._with_other_options(overlay)).metadata
            == metadata
            != written_release(self._with_other_options(None)).metadata
        )

    def _is_unsuited(self, attempt: Report, variant: str | None, overlay: nodes.MapNode | None) -> bool:
        """Return whether a plan would be correct without the options that name a release."""
        if not self._release_options() or any(
            mistake.mark.option is not None for mistake in attempt.mistakes
        ):
            return False
        without = Report()
        read_plan(Draft(self._with_other_options(overlay), variant, without), self.name, self.names)
        return not without.mistakes

    def _as_written(self, plan: Plan, tree: nodes.MapNode, overlay: nodes.MapNode | None) -> Plan:
        """Record the release that a plan was written for, if the options name another release."""
        if not self._release_options():
            return plan
        written, now = written_release(self._with_other_options(overlay)), written_release(tree)
        if not written.is_named or not written.differs_from(now):
            return plan
        return replace(plan, written_for=written.in_words(now), written_release=written.kafka)


def _aims_with(attempt: Report, tree: nodes.MapNode) -> dict[int, tuple[nodes.Mistake, str]]:
    """Return the first mistake of each aim that has mistakes, and its probe, by the aim's index."""
    aims: dict[int, tuple[nodes.Mistake, str]] = {}
    for index, aim in enumerate(_aims_of(tree)):
        marks = set(nodes.marks(aim))
        mistakes = [mistake for mistake in attempt.mistakes if mistake.mark in marks]
        if mistakes:
            probe = nodes.lookup(aim, ("probe",))[2]
            name = probe.text if isinstance(probe, nodes.Scalar) else ""
            aims[index] = min(mistakes, key=lambda mistake: mistake.mark[:2]), name
    return aims


def _without_aims(tree: nodes.MapNode, aims: Collection[int]) -> nodes.MapNode:
    # An empty list of aims would be a mistake, so the whole key is removed then.
    is_all = len(aims) == len(_aims_of(tree))
    return nodes.without(tree, [_AIMS] if is_all else [(*_AIMS, "any_of", index) for index in aims])


def _aims_of(tree: nodes.MapNode) -> tuple[nodes.Node, ...]:
    path, _, node = nodes.lookup(tree, (*_AIMS, "any_of"))
    return node.items if len(path) > len(_AIMS) and isinstance(node, nodes.ListNode) else ()


def _are_or_is(names: Sequence[str]) -> str:
    return "are" if len(names) > 1 else "is"


def _without_names(root: nodes.MapNode) -> nodes.MapNode:
    return nodes.without(root, [("name",), ("variants",)])


def _is_too_large(text: str) -> bool:
    return len(text) > nodes.MAX_BYTES or len(text.encode("utf-8", errors="replace")) > nodes.MAX_BYTES


def _root(text: str, report: Report) -> nodes.MapNode | None:
    """Return the document's mapping; None if the text is not a mapping."""
    if _is_too_large(text):
        report.add(nodes.Mark(1, 1), _TOO_LARGE, None)
        return None
    try:
        document = nodes.compose(text)
    except nodes.YamlError as error:
        _note(error.mistakes, report)
        return None
    _note(document.mistakes, report)
    if not isinstance(document.root, nodes.MapNode):
        message = "a campaign is a mapping (`key: value`); `harrow import` reads Kafka's own files"
        report.add(document.root.mark, message, None)
        return None
    if any(key in document.root.entries for key in SOURCE_KEYS):
        report.add(document.root.mark, "it is no campaign; `harrow import` reads Kafka's own files", None)
        return None
    return document.root


def _note(mistakes: Sequence[nodes.Mistake], report: Report) -> None:
    for mistake in mistakes:
        report.add(mistake.mark, mistake.message, None)


def _options(overrides: Sequence[str], report: Report, files: ClusterFiles) -> list[Override]:
    """Return the options, cluster files first, so that the other options can change them."""
    clusters: list[Override] = []
    options: list[Override] = []
    for text in overrides:
        try:
            option = parse_override(text)
            if is_file_option(option):
                clusters += files.as_options(option)
            else:
                options.append(option)
        except OverrideError as error:
            report.add(*error.mistake, None)
        except ClusterFileError as error:
            _note(error.mistakes, report)
    return [*clusters, *options]


def _apply_options(
    tree: nodes.MapNode, options: Sequence[Override], variant: str | None, report: Report
) -> nodes.MapNode:
    for option in options:
        if variant is not None and option.parts[0] == "name":
            continue
        try:
            tree = apply_override(tree, option)
        except OverrideError as error:
            report.add(*error.mistake, variant)
    return tree


def _in_current_form(root: nodes.MapNode, report: Report) -> nodes.MapNode:
    """Return a campaign or a variant in its long form, with the present names of switches."""
    root, mistakes = with_current_switches(root)
    _note(mistakes, report)
    return in_long_form(root)


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
        report.add(entry.value.mark, "variants: expected a mapping of names to changed keys", None)
        return {}
    if len(entry.value.entries) > VARIANTS_MAX:
        message = f"{len(entry.value.entries)} variants are too many: at most {VARIANTS_MAX}"
        report.add(entry.key_mark, message, None)
        return {}
    overlays: dict[str, nodes.MapNode] = {}
    for name, variant in entry.value.entries.items():
        try:
            literals.variant_name(name)
        except literals.LiteralError as error:
            report.add(variant.key_mark, str(error), None)
        if isinstance(variant.value, nodes.MapNode):
            overlays[name] = variant.value
        else:
            message = f"variant {quoted(name)}: expected a mapping of changed keys"
            report.add(variant.value.mark, message, None)
    return overlays


def _has_too_many_nodes(base: nodes.MapNode, variants: Mapping[str, nodes.MapNode], report: Report) -> bool:
    if not variants:
        return False
    total = nodes.size(base) + sum(nodes.size(base) + nodes.size(overlay) for overlay in variants.values())
    if total <= _NODES_MAX:
        return False
    report.add(nodes.Mark(1, 1), f"the variants together have more than {_NODES_MAX} keys and values", None)
    return True


def problems_in(text: str, file: str, report: Report) -> list[Problem]:
    """Return the problems in a report by position; problems of options come first."""
    lines = text.removeprefix("\ufeff").splitlines() or [""]
    return sorted(_each_problem(lines, file, report), key=lambda problem: (problem.line, problem.column))


def _each_problem(lines: Sequence[str], file: str, report: Report) -> Iterator[Problem]:
    for (mark, text), variants in report.mistakes.items():
        message = text
        if variants and None not in variants:
            message += f" (in variant {listed([printable(str(name)) for name in variants])})"
        if mark.file is not None:
            yield Problem(mark.file, mark.line, mark.column, message)
            continue
        if mark.option is not None:
            name, value = option_words(mark.option)
            yield Problem(name, 0, 0, f"{printable(value)}: {message}")
            continue
        # A mark at the end of the file may point to a line that does not exist.
        line = min(mark.line, len(lines))
        column = min(mark.column, len(lines[line - 1]) + 1) if line == mark.line else len(lines[line - 1]) + 1
        yield Problem(file, line, column, message)
