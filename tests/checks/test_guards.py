"""Settings, fields and switches declare the findings that they guard against."""

from collections.abc import Mapping

import pytest

from harrow.checks.link import KINDS
from harrow.checks.promise import BY_LOSS
from harrow.checks.rules.catalogue import RULES
from harrow.cluster_model.events import EVENTS
from harrow.cluster_model.fields import fields_of
from harrow.cluster_model.release.profiles import MUTANTS, SWITCHES
from harrow.cluster_model.release.switch import Mutant
from harrow.cluster_model.settings import SETTINGS
from harrow.cluster_model.topology import ApplicationSpec, TopicSpec


def finding_names() -> frozenset[str]:
    """Return the names of findings: rules, causes, and permissions with or without values."""
    permissions = {each.setting for rule in RULES.values() for each in rule.promise.permissions}
    permissions |= {each.setting for each in BY_LOSS}
    return frozenset(
        {
            *RULES,
            *(name for name, kind in KINDS.items() if kind.is_cause),
            *permissions,
            *(name.partition("=")[0] for name in permissions),
        }
    )


def declared_guards() -> Mapping[str, tuple[str, ...]]:
    fields = [item for spec in (ApplicationSpec, TopicSpec) for item in fields_of(spec)]
    return {
        **{name: switch.guards for name, switch in SWITCHES.items()},
        **{setting.name: setting.guards for setting in SETTINGS.values()},
        **{item.key: item.options.guards for item in fields},
    }


def test_every_guard_names_findings_that_exist() -> None:
    unknown = {
        name: sorted(set(names) - finding_names())
        for name, names in declared_guards().items()
        if set(names) - finding_names()
    }
    assert unknown == {}


def test_every_event_that_a_setting_prevents_exists() -> None:
    prevented = {setting.prevents for setting in SETTINGS.values() if setting.prevents}
    assert prevented
    assert prevented <= set(EVENTS)


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=lambda mutant: mutant.name)
def test_the_switch_of_a_mutant_that_rules_notice_guards_against_a_finding(mutant: Mutant) -> None:
    assert bool(SWITCHES[mutant.switch].guards) or not mutant.noticed_by
