"""Kafka's settings as the catalogue shows them: who reads them, their defaults and limits."""

from collections.abc import Iterator
from typing import Final

from campaigns.units import value_text
from cli.catalogue import Entry, Part, changes_text
from cluster_model.settings import INT_MAX, LONG_MAX, SETTINGS, Setting, Value, scopes_of, setting_names

_BIG: Final = {INT_MAX: "2^31 - 1", LONG_MAX: "2^63 - 1"}
_FIRST_RELEASE: Final = "0.10.2"


def setting_entries() -> Iterator[Entry]:
    """Yield an entry for each name of a setting."""
    for name in setting_names():
        settings = [SETTINGS[scope, name] for scope in scopes_of(name)]
        defaults = list(dict.fromkeys(_defaults(setting) for setting in settings))
        yield Entry(
            kind="setting",
            name=name,
            summary=settings[0].doc,
            columns=(
                ("of", ", ".join(setting.scope for setting in settings)),
                ("default", " / ".join(defaults)),
            ),
            parts=(
                *(Part(heading=setting.scope, items=_facts(setting)) for setting in settings),
                Part(heading="in a campaign", items=(("settings", f"{{{name}: {_example(settings[0])}}}"),)),
                Part(
                    heading="try",
                    items=(("run", f"harrow run swarm --set {name}={_example(settings[0])}"),),
                ),
            ),
        )


def _facts(setting: Setting) -> tuple[tuple[str, str], ...]:
    facts = [("meaning", setting.doc), ("default", _defaults(setting)), ("values", _values(setting))]
    if setting.since != _FIRST_RELEASE:
        facts.append(("since", setting.since))
    return tuple(facts)


def _example(setting: Setting) -> str:
    """Return a value that is not the default of the latest release, where there is one."""
    default = setting.defaults[-1][1]
    if setting.kind == "bool":
        return value_text(not default)
    if setting.choices:
        return next((choice for choice in setting.choices if choice != str(default)), str(default))
    return value_text(default)


def _defaults(setting: Setting) -> str:
    return changes_text((release, _value(value)) for release, value in setting.defaults)


def _values(setting: Setting) -> str:
    if setting.kind == "bool":
        return "true or false"
    if setting.choices:
        return ", ".join(setting.choices)
    unit = {"ms": "milliseconds, or a time such as 10s; ", "seconds": "seconds, or a time such as 5m; "}
    return f"{unit.get(setting.kind, '')}{setting.minimum} to {_value(setting.maximum)}"


def _value(value: Value) -> str:
    return _BIG[value] if isinstance(value, int) and value in _BIG else value_text(value)
