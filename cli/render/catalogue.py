"""The catalogues of `harrow list` and `harrow explain`, read from the declarations in the code."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, field
from itertools import chain, count, pairwise
from typing import Any, Final

from harrow.campaigns.clients.clients import CLIENTS
from harrow.campaigns.language.glossary import TERMS, term_of
from harrow.campaigns.language.library_index import fault_model_names, library_names, resolve, shipped_names
from harrow.campaigns.language.literals import LATEST_RELEASE, field_text
from harrow.campaigns.language.tickets import campaigns_about, tickets
from harrow.campaigns.language.units import value_text
from harrow.campaigns.probes.probes import PROBES
from harrow.checks.rule import Rule
from harrow.checks.rules.catalogue import RULE_OF_INVARIANT, RULES
from harrow.cli.extras import advice_on
from harrow.cli.options import Kind
from harrow.cli.render.advised_run import advised_run
from harrow.cluster_model import fields as kinds
from harrow.cluster_model import settings
from harrow.cluster_model.invariants.catalogue import INVARIANTS
from harrow.cluster_model.lazy_dataclass import dataclass, replace
from harrow.cluster_model.release.profiles import (
    MUTANTS,
    NEWEST_RELEASE,
    RELEASES,
    REPAIRS,
    SWITCHES,
    ReleaseProfile,
    swarm_of,
)
from harrow.cluster_model.release.switch import DEFAULT_RELEASE
from harrow.cluster_model.topology import CONSUMER_OFFSETS, CONTROL_PLANES, TRANSACTION_STATE
from harrow.faults.catalogue import ACTIONS, FAULTS
from harrow.faults.condition import FACTS

_EXAMPLES: Final[Mapping[type[Any], str]] = {
    bool: "true",
    int: "1",
    kinds.CountMarker: "1",
    kinds.PartitionMarker: "t-0",
    kinds.ClientMarker: "producer-0",
    kinds.EventMarker: "append",
    kinds.TopicMarker: "t",
    kinds.BandwidthMarker: "1MB/s",
    kinds.ConditionMarker: "{leader: {t-0: 0}}",
}
_LIMITS: Final = {settings.INT_MAX: "2^31 - 1", settings.LONG_MAX: "2^63 - 1"}
_FIRST_RELEASE: Final = "0.10.2"
_FAULT: Final = "fault"
_BEHAVIOUR: Final = "behaviour"
_TICKET: Final = "ticket"
_TERM: Final = "term"
_USERS: Final[Mapping[str, str]] = {CONSUMER_OFFSETS: "groups", TRANSACTION_STATE: "transactions"}
"""What uses each internal topic of Kafka."""
_CAMPAIGN_EXAMPLE: Final = "in a campaign"
TRY: Final = "try"
"""The heading of commands to try."""
Terms = Mapping[str, str]
"""Terms with their meanings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueEntry:
    """A name and its meaning, with ``columns`` for a list and ``sections`` for an explanation.

    ``list_note`` is a second line in a list.
    """

    kind: str
    name: str
    summary: str
    about: str = ""
    list_note: str = ""
    columns: Terms = field(default_factory=dict)
    sections: Mapping[str, Terms] = field(default_factory=dict)

    def as_mapping(self) -> dict[str, Any]:
        about = {"about": self.about} if self.about else {}
        head = {"kind": self.kind, "name": self.name, **self.columns, "doc": self.summary}
        return {**head, **about, **self.sections}


def entries(kind: Kind) -> list[CatalogueEntry]:
    return list(_CATALOGUES[kind]())


def with_targets(catalogue: list[CatalogueEntry]) -> list[CatalogueEntry]:
    """Return the entries. The entries of faults name the targets that can inject the fault.

    Only the modules for real brokers know these targets. So without the libraries of the extra
    `live`, the columns of targets are missing.
    """
    if not any(entry.kind == _FAULT for entry in catalogue):
        return catalogue
    try:
        from harrow.live_cluster.users.fault_reach import targets_of
    except ImportError as error:
        if advice_on(error) is None:
            raise
        return catalogue

    def with_its_targets(entry: CatalogueEntry) -> CatalogueEntry:
        if entry.kind != _FAULT:
            return entry
        reaches = targets_of(FAULTS[entry.name])
        columns = {name: str(reach) for name, reach in reaches.items()}
        targets = {name: "; ".join((str(reach), *reach.obstacles)) for name, reach in reaches.items()}
        return replace(entry, columns=columns, sections={**entry.sections, "targets": targets})

    return [with_its_targets(entry) for entry in catalogue]


def explain(name: str) -> list[CatalogueEntry]:
    """Return every entry with this name, in upper or lower case.

    The name `LATEST_RELEASE` stands for the newest release, and the qualified name of a setting,
    such as ``consumer.request.timeout.ms``, for the setting.
    """
    plain = {qualified: setting for qualified, (_, setting) in settings.qualified_names().items()}
    aliases = {**RULE_OF_INVARIANT, **plain, LATEST_RELEASE: NEWEST_RELEASE}
    wanted = aliases.get(name.lower(), name.lower())
    term = term_of(name)
    matches = with_targets(
        [
            entry
            for entry in _entries_without_files()
            if entry.name.lower() == wanted or (term is not None and entry.name == term.name)
        ]
    )
    extended = {_BEHAVIOUR: _with_advised_run, _TICKET: _with_campaigns}
    matches = [extended[entry.kind](entry) if entry.kind in extended else entry for entry in matches]
    matches.sort(key=lambda entry: entry.kind != _TERM)
    return [*matches, *(_campaign(name) for name in shipped_names() if name.lower() == wanted)]


def _with_advised_run(behaviour: CatalogueEntry) -> CatalogueEntry:
    run = advised_run(behaviour.name)
    text = "no library campaign exercises it; tests and single requests do" if run is None else run.command()
    return replace(behaviour, sections={**behaviour.sections, TRY: {"run": text}})


def all_names() -> list[str]:
    names = [entry.name for entry in _entries_without_files()]
    return list(dict.fromkeys((*names, *INVARIANTS, LATEST_RELEASE, *shipped_names())))


def _entries_without_files() -> Iterator[CatalogueEntry]:
    """Yield the entries of all catalogues that need no campaign file."""
    for kind in _CATALOGUES:
        if kind not in _KINDS_OF_FILES:
            yield from entries(kind)


def _entry(
    kind: str, name: str, doc: str, sections: Mapping[str, Terms], columns: Terms | None = None
) -> CatalogueEntry:
    """Return an entry. Its summary is the first paragraph of *doc*. Paragraphs are unwrapped."""
    text = inspect.cleandoc(doc).replace("``", "`")
    summary, *about = (" ".join(paragraph.split()) for paragraph in text.split("\n\n"))
    return CatalogueEntry(
        kind=kind,
        name=name,
        summary=summary,
        about="\n\n".join(about),
        columns=columns or {},
        sections=sections,
    )


def _try_section(campaign: str, *options: str) -> dict[str, Terms]:
    """Return a section with a command to try. *options* are keys, each followed by its value."""
    settings = (f"--set {key}={value}" for key, value in zip(options[::2], options[1::2], strict=True))
    return {TRY: {"run": f"harrow run {campaign} {' '.join(settings)}"}}


# Faults, actions, conditions and clients


def _faults() -> Iterator[CatalogueEntry]:
    for name, fault in FAULTS.items():
        yield _declared_entry(_FAULT, name, fault, {"do": f"{{{name}: {_shortest_example(fault)}}}"})


def _actions() -> Iterator[CatalogueEntry]:
    for name, action in ACTIONS.items():
        value = f"{{{name}: {_shortest_example(action)}}}" if kinds.fields_of(action) else name
        yield _declared_entry("action", name, action, {"do": value})


def _conditions() -> Iterator[CatalogueEntry]:
    for name, fact in FACTS.items():
        keys = [item for item in kinds.fields_of(fact) if item.attribute in fact.keyed_by]
        rest = [item for item in kinds.fields_of(fact) if item not in keys]
        value = _example(rest[0], count()) if len(rest) == 1 else "{...}"
        for item in reversed(keys):
            value = f"{{{_example(item, count())}: {value}}}"
        yield _declared_entry("condition", name, fact, {"when": f"{{{name}: {value}}}"})


def _clients() -> Iterator[CatalogueEntry]:
    for key, kind in CLIENTS.items():
        example = {"workload": f"{{{key}: [{_shortest_example(kind.spec)}]}}"}
        yield _declared_entry("client", kind.name, kind.spec, example)


def _declared_entry(kind: str, name: str, declared: type[Any], example: Terms) -> CatalogueEntry:
    about = {item.key: _field_description(item) for item in kinds.fields_of(declared)}
    sections = {"fields": about, _CAMPAIGN_EXAMPLE: example} if about else {_CAMPAIGN_EXAMPLE: example}
    return _entry(kind, name, declared.__doc__ or "", sections)


def _shortest_example(declared: type[Any]) -> str:
    # Each example of a broker gets the next id, because the two ends of a link are two brokers.
    ids = count()
    required = [item for item in kinds.fields_of(declared) if item.required or item.options.example]
    if getattr(declared, "sole_field", None):
        return _example(required[0], ids)
    return "{" + ", ".join(f"{item.key}: {_example(item, ids)}" for item in required) + "}"


def _field_description(item: kinds.DeclaredField) -> str:
    words = item.words
    syntax = f"One or a list, each: {words[0].lower()}{words[1:]}" if item.many else words
    sections = [item.doc, f"{syntax}."]
    if item.required:
        sections.append("Required.")
    elif item.default is not None and item.default is not MISSING:
        shown = field_text(item.kind, item.default) or value_text(item.default)
        sections.append(f"Default: `{shown}`.")
    return " ".join(sections)


def _example(item: kinds.DeclaredField, ids: Iterator[int]) -> str:
    if item.choices:
        return item.choices[0]
    one = item.options.example or kinds.by_kind(_EXAMPLES, item.kind)
    if one is None:
        one = str(next(ids)) if issubclass(item.kind, kinds.Marker) else "..."
    return f"[{one}]" if item.many else one


# Rules, probes, campaigns


def _rules() -> Iterator[CatalogueEntry]:
    for rule in RULES.values():
        example = {"expect": f"{{rules: {{{rule.name}: violated}}}}", "demand": f"[{rule.name}]"}
        yield _entry(
            "rule", rule.name, rule.definition, {"promise": _promise(rule), _CAMPAIGN_EXAMPLE: example}
        )


def _promise(rule: Rule) -> dict[str, str]:
    """Return what promises a rule and what permits an anomaly. Several conditions are a list."""
    promise = rule.promise
    facts = {
        "promised by": _listed(promise.promised_by) or "nothing",
        "permitted by": _listed(promise.permitted_by),
        "releases": promise.releases,
        "source": rule.source,
    }
    return {fact: text for fact, text in facts.items() if text}


def _listed(texts: Sequence[str]) -> str:
    return "\n".join(f"- {text}" for text in texts) if len(texts) > 1 else "".join(texts)


def _probes() -> Iterator[CatalogueEntry]:
    for name, probe in PROBES.items():
        planes, topics = probe.control_planes(), probe.topics()
        plane = "".join(CONTROL_PLANES[plane] for plane in CONTROL_PLANES if planes == {plane})
        users = ", ".join(users for topic, users in _USERS.items() if topic in topics)
        needs = {"control plane": plane, "clients": users, "behaviour": probe.switch or ""}
        sections: dict[str, Terms] = {_CAMPAIGN_EXAMPLE: {"expect": f"{{probes: [{name}]}}"}}
        if any(needs.values()):
            sections = {"needs": {need: value for need, value in needs.items() if value}, **sections}
        yield _entry(
            "probe", name, probe.doc, sections, {"only with": ", ".join(filter(None, needs.values()))}
        )


def _campaigns() -> Iterator[CatalogueEntry]:
    return map(_campaign, library_names())


def _fault_models() -> Iterator[CatalogueEntry]:
    return map(_campaign, fault_model_names())


def _campaign(name: str) -> CatalogueEntry:
    """Return the entry of a campaign of the library, or of a fault model."""
    # Only these two catalogues need YAML.
    from harrow.campaigns.language.loader import load_campaign
    from harrow.campaigns.record.report import variant_name

    path = resolve(name)[0]
    campaign = load_campaign(path)
    runs = {variant_name(plan): _expectation(plan) for plan in campaign.plans}
    sections = {"runs": runs, TRY: {"run": f"harrow run {name}", "file": str(path)}}
    if name in fault_model_names():
        return _entry("fault model", name, campaign.description, sections, {"title": campaign.plans[0].title})
    variants = {"variants": ", ".join(runs) if len(runs) > 1 else ""}
    return _entry("campaign", name, campaign.description, sections, variants)


def _expectation(plan: Any) -> str:
    expect = plan.expect
    sections = [expect.verdict] if expect.verdict else []
    if expect.lost:
        sections.append(f"lost {', '.join(expect.lost)}")
    if expect.duplicated:
        sections.append(f"doubled {', '.join(expect.duplicated)}")
    expected = f"; expects: {'; '.join(sections)}" if sections else ""
    return f"Kafka {plan.kafka}{expected}"


# Releases, behaviours, mutants, settings


def _releases() -> Iterator[CatalogueEntry]:
    for earlier, release in pairwise((None, *RELEASES.values())):
        assert release is not None
        default = " The default." if release.name == DEFAULT_RELEASE else ""
        newest = f" `{LATEST_RELEASE}` in a campaign." if release.name == NEWEST_RELEASE else ""
        behaviours, defaults = ({}, {}) if earlier is None else release_changes(earlier, release)
        sections = {
            _CAMPAIGN_EXAMPLE: {"kafka": f'"{release.name}"'},
            **_try_section("unclean-election", "kafka", release.name),
            **({f"behaviours that differ from {earlier.name}": behaviours} if earlier and behaviours else {}),
            **({f"defaults that differ from {earlier.name}": defaults} if earlier and defaults else {}),
            "behaviours": {name: value_text(value) for name, value in release.behaviours.values().items()},
        }
        columns = {"other behaviours": _count(behaviours), "other defaults": _count(defaults)}
        entry = _entry("release", release.name, release.doc + default + newest, sections, columns)
        yield replace(entry, list_note=", ".join(behaviours))


def _count(changes: Terms) -> str:
    return str(len(changes)) if changes else ""


def release_changes(earlier: ReleaseProfile, release: ReleaseProfile) -> tuple[Terms, Terms]:
    """Return the behaviours, and the defaults of settings, that differ from an earlier release."""
    behaviours = {
        name: f"{now}, before {before}" for name, before, now in changed_behaviours(earlier, release)
    }
    defaults = {
        f"{setting.name} ({setting.scope})": _change_of_default(setting, earlier.name, release.name)
        for setting in settings.SETTINGS.values()
        if setting.exists_in(release.name)
        and (
            not setting.exists_in(earlier.name)
            or setting.default(earlier.name) != setting.default(release.name)
        )
    }
    return behaviours, defaults


def changed_behaviours(earlier: ReleaseProfile, release: ReleaseProfile) -> Iterator[tuple[str, str, str]]:
    """Yield the switches in which two releases differ, each with its two values."""
    for name, switch in SWITCHES.items():
        before, now = switch.value_in(earlier.name), switch.value_in(release.name)
        if before != now:
            yield name, value_text(before), value_text(now)


def _change_of_default(setting: settings.Setting, earlier: str, release: str) -> str:
    value = default_text(setting, release)
    if not setting.exists_in(earlier):
        return f"{value}, new"
    return f"{value}, before {default_text(setting, earlier)}"


def default_text(setting: settings.Setting, release: str) -> str:
    return _setting_value(setting.default(release))


def _behaviours() -> Iterator[CatalogueEntry]:
    for name, switch in SWITCHES.items():
        choices = [value_text(choice) for choice in switch.choices]
        by_release = {release: value_text(switch.value_in(release)) for release in RELEASES}
        sections = {
            _CAMPAIGN_EXAMPLE: {"behaviours": f"{{{name}: {choices[0]}}}"},
            "facts": {"about": switch.subject.name, "choices": " | ".join(choices), "source": switch.source},
            "releases": by_release,
        }
        mutants = {mutant.name: value_text(mutant.value) for mutant in switch.mutants}
        if mutants:
            sections["mutants"] = mutants
        yield _entry(_BEHAVIOUR, name, switch.doc, sections, {"values": _changes_of(name)})


def _mutants() -> Iterator[CatalogueEntry]:
    for mutant in MUTANTS.values():
        value = value_text(mutant.value)
        behaviours = {"behaviours": f"{{{mutant.switch}: {value}}}"}
        release_option = () if mutant.kafka == DEFAULT_RELEASE else ("kafka", mutant.kafka)
        noticed = ", ".join(mutant.noticed_by) or "the expectations of a campaign; by no rule alone"
        sections = {
            _CAMPAIGN_EXAMPLE: behaviours,
            **_try_section(swarm_of(mutant), *release_option, f"behaviours.{mutant.switch}", value),
            "facts": {"as of": mutant.kafka, "source": mutant.source, "noticed by": noticed},
        }
        yield _entry("mutant", mutant.name, mutant.doc, sections, behaviours)


def _prerequisite(setting: settings.Setting) -> tuple[str, ...]:
    """Return the option that a setting needs: a behaviour, or a release that has the setting."""
    if setting.needs:
        return f"behaviours.{setting.needs}", "true"
    if setting.exists_in(DEFAULT_RELEASE):
        return ()
    return "kafka", next(release for release in RELEASES if setting.exists_in(release))


def _settings() -> Iterator[CatalogueEntry]:
    for name in settings.setting_names():
        by_scope = [settings.SETTINGS[scope, name] for scope in settings.scopes_of(name)]
        first = by_scope[0]
        others = {other: settings.SETTINGS[first.scope, other] for other in first.beside}
        examples = {key: _setting_example(setting) for key, setting in {name: first, **others}.items()}
        shown = ", ".join(f"{key}: {value}" for key, value in examples.items())
        sections = {
            **{
                # The entry begins with the meaning of the first.
                setting.scope: _facts(setting)
                if setting is first
                else {"meaning": setting.doc, **_facts(setting)}
                for setting in by_scope
            },
            _CAMPAIGN_EXAMPLE: {"settings": f"{{{shown}}}"},
            **_try_section("swarm", *_prerequisite(first), *chain.from_iterable(examples.items())),
        }
        columns = {
            "of": ", ".join(setting.scope for setting in by_scope),
            "default": " / ".join(dict.fromkeys(map(_defaults, by_scope))),
        }
        yield _entry("setting", name, first.doc, sections, columns)


def _facts(setting: settings.Setting) -> dict[str, str]:
    facts = {"default": _defaults(setting), "values": _setting_values(setting)}
    if setting.since != _FIRST_RELEASE:
        facts["since"] = setting.since
    if setting.until:
        facts["until"] = setting.until
    return facts


def _setting_example(setting: settings.Setting) -> str:
    """Return an example of a value, which differs from the latest default if possible."""
    default = setting.defaults[-1][1]
    if setting.kind == "bool":
        return value_text(not default)
    if setting.choices:
        return next((choice for choice in setting.choices if choice != str(default)), str(default))
    if setting.kind == "text":
        return "a"
    if setting.kind == "replicas":
        return settings.ALL_REPLICAS
    return value_text(default)


def _defaults(setting: settings.Setting) -> str:
    return _history((release, _setting_value(value)) for release, value in setting.defaults)


def _setting_values(setting: settings.Setting) -> str:
    if setting.kind == "bool":
        return "true or false"
    if setting.choices:
        return ", ".join(setting.choices)
    if setting.kind == "ratio":
        return "a number from 0 to 1"
    if setting.kind == "text":
        return "a name"
    if setting.kind == "replicas":
        return 'partition:broker, separated by commas, or "*"'
    unit = {"ms": "milliseconds, or a time such as 10s; ", "seconds": "seconds, or a time such as 5m; "}
    return f"{unit.get(setting.kind, '')}{setting.minimum} to {_setting_value(setting.maximum)}"


def _setting_value(value: settings.Value) -> str:
    if value == settings.NO_TEXT:
        return "none"
    return _LIMITS[value] if isinstance(value, int) and value in _LIMITS else value_text(value)


def _history(by_release: Iterable[tuple[str, str]]) -> str:
    """Return a value with its changes from release to release, as in ``false, true since 2.4``."""
    changes: list[str] = []
    last: str | None = None
    for release, value in by_release:
        if value != last:
            changes.append(value if last is None else f"{value} since {release}")
        last = value
    return ", ".join(changes)


# The terms of Kafka and of harrow, and Kafka's tickets


def _terms() -> Iterator[CatalogueEntry]:
    for term in TERMS.values():
        facts = {"also": ", ".join(term.synonyms), "see": ", ".join(term.see)}
        sections: dict[str, Terms] = {"facts": {fact: names for fact, names in facts.items() if names}}
        yield _entry(_TERM, term.name, term.doc, sections if sections["facts"] else {})


def _tickets() -> Iterator[CatalogueEntry]:
    for ticket in tickets().values():
        sections: dict[str, Terms] = {
            "repairs": {
                name: f"since {REPAIRS[name].since}: {REPAIRS[name].text}" for name in ticket.repairs
            },
            "behaviours": {name: _changes_of(name) for name in ticket.switches},
            "mutants": {name: MUTANTS[name].doc for name in ticket.mutants},
            "invariants": {name: INVARIANTS[name].definition for name in ticket.invariants},
            "settings": {
                setting.name: setting.doc
                for setting in settings.SETTINGS.values()
                if setting.name in ticket.settings
            },
            "releases": {name: RELEASES[name].doc for name in ticket.releases},
        }
        nonempty = {heading: part for heading, part in sections.items() if part}
        yield _entry(_TICKET, ticket.name, ticket.summary, nonempty)


def _changes_of(switch: str) -> str:
    return _history((first, value_text(value)) for first, value in SWITCHES[switch].history())


def _with_campaigns(entry: CatalogueEntry) -> CatalogueEntry:
    """Return a ticket with the campaigns that are about it. This reads their files."""
    switches = entry.sections.get("behaviours", {})
    names = campaigns_about(entry.name, switches)
    campaigns: dict[str, Terms] = {"campaigns": {"about it": ", ".join(names)}} if names else {}
    runs = [run.command() for run in map(advised_run, switches) if run is not None]
    if names:
        runs = [f"harrow run {names[0]}", *runs]
    return replace(
        entry, sections={**entry.sections, **campaigns, **({TRY: {"run": runs[0]}} if runs else {})}
    )


_CATALOGUES: Final[Mapping[Kind, Callable[[], Iterable[CatalogueEntry]]]] = {
    "faults": _faults,
    "actions": _actions,
    "conditions": _conditions,
    "clients": _clients,
    "rules": _rules,
    "campaigns": _campaigns,
    "fault-models": _fault_models,
    "probes": _probes,
    "releases": _releases,
    "behaviours": _behaviours,
    "mutants": _mutants,
    "settings": _settings,
    "terms": _terms,
    "tickets": _tickets,
}
_KINDS_OF_FILES: Final[tuple[Kind, ...]] = ("campaigns", "fault-models")
