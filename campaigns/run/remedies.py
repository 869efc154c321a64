"""Proposes remedies for a finding: settings, fields of the campaign, switches, later releases.

Settings (`harrow.cluster_model.settings.Setting`), fields (`harrow.cluster_model.fields.described`)
and switches (`harrow.cluster_model.release.switch.Switch`) declare the kinds of findings that they
guard against. A kind is the name of a cause, of a permission or, for a broken promise, of a rule.
So, for example, fencing of transactions is not tried against a lost disk.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

from harrow.campaigns.language.plan import Plan
from harrow.checks.finding import Finding
from harrow.checks.prevention import FIELD, RELEASE, SETTING, Prevention, Remedy
from harrow.cluster_model.fields import DeclaredField, fields_of
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.settings import PRODUCER, SETTINGS, TRANSACTIONAL_ID, Setting, Value, conflicts
from harrow.cluster_model.topology import TopicSpec

_BOOLS: Final = {True: "true", False: "false"}


def option_text(value: Any) -> str:
    """Return a value as a user types it after ``--set``."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(option_text, value))}]"
    return _BOOLS[value] if isinstance(value, bool) else str(value)


def options_of(remedy: Remedy) -> tuple[str, ...]:
    """Return the options that apply a remedy, each as a user types it after ``--set``."""
    release = () if remedy.release is None else (("kafka", remedy.release),)
    switches = ((f"behaviours.{name}", value) for name, value in remedy.switches)
    pairs = (*release, *switches, *remedy.settings, *remedy.fields)
    return tuple(f"{name}={option_text(value)}" for name, value in pairs)


def kinds_of(rule: str, finding: Finding) -> frozenset[str]:
    """Return the kinds of a finding: the names that ``guards`` use."""
    causes = {cause.kind.name for cause in finding.causes}
    if finding.permitted_by is None:
        return frozenset({rule, *causes})
    # A permission such as ``acks=1`` also counts under the name of its setting.
    return frozenset({finding.permitted_by, finding.permitted_by.partition("=")[0], *causes})


def guarding(
    plan: Plan, kinds: frozenset[str], proposed: Sequence[Prevention], occurred: Collection[str]
) -> Iterator[Prevention]:
    """Yield each setting, then each field, that guards against these kinds, with its safe values.

    Settings that a rule has *proposed* are tried in any case. *occurred* names the events of the
    run. A setting that only prevents another event is not tried.
    """
    proposed_names = {name for prevention in proposed for name, _ in prevention.remedy.settings}
    for setting in _settings():
        is_candidate = (
            setting.name in kinds
            or setting.name in proposed_names
            or (not kinds.isdisjoint(setting.guards) and setting.prevents in {"", *occurred})
        )
        for value in setting.safe if is_candidate else ():
            if setting.name != TRANSACTIONAL_ID or len(plan.producers) == 1:
                yield _with_setting(plan, setting.name, value)
    for name, path, item in _fields(plan):
        for value in item.options.safe if not kinds.isdisjoint(item.options.guards) else ():
            fields = tuple((place, value) for place in path)
            yield Prevention(FIELD, name, value, f"{name}={option_text(value)}", Remedy(fields=fields))
    yield from _more_replicas(plan, kinds)


def _more_replicas(plan: Plan, kinds: frozenset[str]) -> Iterator[Prevention]:
    """Yield safe numbers of replicas for topics whose replicas the campaign assigns to brokers."""
    (factor,) = (item for item in fields_of(TopicSpec) if item.key == "replication_factor")
    if kinds.isdisjoint(factor.options.guards):
        return
    brokers = [broker.id for broker in plan.cluster.initial_brokers()]
    for safe in factor.options.safe:
        fields = []
        for number, topic in enumerate(plan.cluster.topics):
            assignment = tuple(_with_more_replicas(replicas, safe, brokers) for replicas in topic.assignment)
            if assignment != topic.assignment:
                fields.append((f"cluster.topics.{number}.assignment", assignment))
        if fields:
            text = f"replication_factor={safe}"
            yield Prevention(FIELD, factor.key, safe, text, Remedy(fields=tuple(fields)))


def _with_more_replicas(replicas: tuple[int, ...], size: int, brokers: Sequence[int]) -> tuple[int, ...]:
    """Add brokers to the replicas of a partition up to *size*, as long as there are others."""
    others = [broker for broker in brokers if broker not in replicas]
    return (*replicas, *others[: max(0, size - len(replicas))])


def later_releases(plan: Plan) -> Iterator[Prevention]:
    """Yield the releases after the plan's own, oldest first."""
    version = RELEASES[plan.kafka].version
    for release in RELEASES.values():
        if release.version > version:
            text = f"Kafka {release.name}"
            yield Prevention(RELEASE, "kafka", release.name, text, Remedy(release=release.name))


def _settings() -> Iterator[Setting]:
    """Yield each setting that has a safe value; scopes that share its name count only once."""
    by_name = {setting.name: setting for setting in SETTINGS.values() if setting.safe}
    yield from by_name.values()


def _with_setting(plan: Plan, name: str, value: Value) -> Prevention:
    """Return the remedy that sets *name*, with the producer settings that Kafka then requires."""
    chosen: dict[str, Value] = {name: value}
    if (PRODUCER, name) in SETTINGS and SETTINGS[PRODUCER, name].exists_in(plan.kafka):
        for client in plan.producers:
            settings = {**client.settings, **chosen}
            for conflict in list(conflicts(plan.kafka, settings, plan.behaviour_switches())):
                if conflict.remedy is not None and conflict.setting != name:
                    chosen[conflict.setting] = conflict.remedy
    text = " with ".join(f"{key}={option_text(chosen[key])}" for key in chosen)
    return Prevention(SETTING, name, option_text(value), text, Remedy(settings=tuple(chosen.items())))


def _fields(plan: Plan) -> Iterator[tuple[str, tuple[str, ...], DeclaredField]]:
    """Yield the name of each field with a safe value, its paths in the campaign, and the field."""
    parts: tuple[tuple[str, Sequence[object]], ...] = (
        ("cluster", [plan.cluster]),
        ("workload.applications", plan.applications),
        ("cluster.topics", plan.cluster.topics),
    )
    for place, specs in parts:
        for kind in dict.fromkeys(map(type, specs)):
            for item in fields_of(kind):
                if item.options.safe:
                    owners = [
                        place if spec is plan.cluster else f"{place}.{number}"
                        for number, spec in enumerate(specs)
                        if type(spec) is kind
                    ]
                    yield item.key, tuple(f"{owner}.{item.key}" for owner in owners), item
