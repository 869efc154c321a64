"""What to try against a finding: settings, fields of the campaign, switches and later releases.

Settings (`harrow.cluster_model.settings.Setting`), fields (`harrow.cluster_model.fields.described`) and switches
(`harrow.cluster_model.release.switch.Switch`) declare the kinds of findings that they guard against. A kind is the name of a cause, of
what permits the finding, or, for a broken promise, of the rule. The fencing of transactions, for one, is not tried against a lost
disk.
"""

from collections.abc import Iterator, Sequence
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
    """Return a value as it is typed after ``--set``."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(option_text, value))}]"
    return _BOOLS[value] if isinstance(value, bool) else str(value)


def options_of(remedy: Remedy) -> tuple[str, ...]:
    """Return the options that apply a remedy, each to be typed after ``--set``."""
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


def guarding(plan: Plan, kinds: frozenset[str], proposed: Sequence[Prevention]) -> Iterator[Prevention]:
    """Yield the settings and then the fields that guard against these kinds of findings, each with its safe values.

    A setting that a rule has *proposed* is also tried, whatever it guards against.
    """
    named = {name for way in proposed for name, _ in way.remedy.settings}
    for setting in _settings():
        is_meant = setting.name in kinds or setting.name in named or not kinds.isdisjoint(setting.guards)
        for value in setting.safe if is_meant else ():
            if setting.name != TRANSACTIONAL_ID or len(plan.producers) == 1:
                yield _with_setting(plan, setting.name, value)
    for name, path, item in _fields(plan):
        for value in item.options.safe if not kinds.isdisjoint(item.options.guards) else ():
            fields = tuple((each, value) for each in path)
            yield Prevention(FIELD, name, value, f"{name}={option_text(value)}", Remedy(fields=fields))
    yield from _more_replicas(plan, kinds)


def _more_replicas(plan: Plan, kinds: frozenset[str]) -> Iterator[Prevention]:
    """Yield an assignment with as many replicas as are safe, where a campaign says which brokers have a topic's partitions."""
    (factor,) = (item for item in fields_of(TopicSpec) if item.key == "replication_factor")
    if kinds.isdisjoint(factor.options.guards):
        return
    brokers = [broker.id for broker in plan.cluster.initial_brokers()]
    for safe in factor.options.safe:
        fields = []
        for number, topic in enumerate(plan.cluster.topics):
            assignment = tuple(_widened(replicas, safe, brokers) for replicas in topic.assignment)
            if assignment != topic.assignment:
                fields.append((f"cluster.topics.{number}.assignment", assignment))
        if fields:
            text = f"replication_factor={safe}"
            yield Prevention(FIELD, factor.key, safe, text, Remedy(fields=tuple(fields)))


def _widened(replicas: tuple[int, ...], size: int, brokers: Sequence[int]) -> tuple[int, ...]:
    """Return the replicas of a partition with further brokers, as many as there are."""
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
    """Yield every setting that has a safe value; a name that several scopes share comes once."""
    found = {setting.name: setting for setting in SETTINGS.values() if setting.safe}
    yield from found.values()


def _with_setting(plan: Plan, name: str, value: Value) -> Prevention:
    """Return a setting with the changes to other producer settings without which Kafka would refuse it."""
    chosen: dict[str, Value] = {name: value}
    if (PRODUCER, name) in SETTINGS and SETTINGS[PRODUCER, name].exists_in(plan.kafka):
        for client in plan.producers:
            given = {**client.settings, **chosen}
            for conflict in list(conflicts(plan.kafka, given, plan.behaviour_switches())):
                if conflict.remedy is not None and conflict.setting != name:
                    chosen[conflict.setting] = conflict.remedy
    text = " with ".join(f"{each}={option_text(chosen[each])}" for each in chosen)
    return Prevention(SETTING, name, option_text(value), text, Remedy(settings=tuple(chosen.items())))


def _fields(plan: Plan) -> Iterator[tuple[str, tuple[str, ...], DeclaredField]]:
    """Yield each field that has a safe value, with its name and its paths in the campaign."""
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
