"""What to try against a finding: settings, fields and switches that guard against its cause, and later releases.

What guards against what is declared where the setting (`harrow.cluster_model.settings.Setting`), the field
(`harrow.cluster_model.fields.described`) or the switch is. A finding is named by what permits it and by the kinds of
its causes, one that nothing permits also by its rule. So a lost disk is not tried against the fencing of transactions.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from harrow.campaigns.language.plan import Plan
from harrow.checks.finding import Finding
from harrow.checks.prevention import FIELD, RELEASE, SETTING, Prevention, Remedy
from harrow.cluster_model.fields import DeclaredField, fields_of
from harrow.cluster_model.release import RELEASES
from harrow.cluster_model.settings import PRODUCER, SETTINGS, TRANSACTIONAL_ID, Setting, Value, conflicts

_BOOLS: Final = {True: "true", False: "false"}


def option_text(value: Any) -> str:
    """Return a value as one types it."""
    return _BOOLS[value] if isinstance(value, bool) else str(value)


def options_of(remedy: Remedy) -> tuple[str, ...]:
    """Return a remedy as the options that one types after ``--set``."""
    release = () if remedy.release is None else (("kafka", remedy.release),)
    switches = ((f"behaviours.{name}", value) for name, value in remedy.switches)
    pairs = (*release, *switches, *remedy.settings, *remedy.fields)
    return tuple(f"{name}={option_text(value)}" for name, value in pairs)


def kinds_of(rule: str, finding: Finding) -> frozenset[str]:
    """Return what a finding is called where it is said what guards against it."""
    causes = {cause.kind.name for cause in finding.causes}
    if finding.permitted_by is None:
        return frozenset({rule, *causes})
    # Of a permission such as ``acks=1`` the setting is named that permits it.
    return frozenset({finding.permitted_by, finding.permitted_by.partition("=")[0], *causes})


def guarding(plan: Plan, kinds: frozenset[str], proposed: Sequence[Prevention]) -> Iterator[Prevention]:
    """Yield what guards against findings of these kinds: settings, then fields of the campaign, each with its safe values.

    What a rule has *proposed* is tried too, setting by setting.
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


def later_releases(plan: Plan) -> Iterator[Prevention]:
    """Yield the releases after that of a plan, the next one first."""
    version = RELEASES[plan.kafka].version
    for release in RELEASES.values():
        if release.version > version:
            text = f"Kafka {release.name}"
            yield Prevention(RELEASE, "kafka", release.name, text, Remedy(release=release.name))


def _settings() -> Iterator[Setting]:
    """Yield the settings that have a safe value, each name once."""
    found = {setting.name: setting for setting in SETTINGS.values() if setting.safe}
    yield from found.values()


def _with_setting(plan: Plan, name: str, value: Value) -> Prevention:
    """Return a setting, with what has to give way of a producer's own settings for Kafka to take it."""
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
    """Yield each field that has a safe value, with its name and the paths at which the campaign has it."""
    parts = (("workload.applications", plan.applications), ("cluster.topics", plan.cluster.topics))
    for place, specs in parts:
        for kind in dict.fromkeys(map(type, specs)):
            for item in fields_of(kind):
                if item.options.safe:
                    paths = tuple(
                        f"{place}.{number}.{item.key}"
                        for number, spec in enumerate(specs)
                        if type(spec) is kind
                    )
                    yield item.key, paths, item
