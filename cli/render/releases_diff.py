"""Two releases side by side: the behaviours and defaults that differ."""

from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType

from harrow.cli.render.catalogue import changed_behaviours, default_text, release_changes
from harrow.cli.render.catalogue_tables import definitions
from harrow.cli.render.layout import DIM, indented
from harrow.cli.text import Text
from harrow.cluster_model.release.profiles import SWITCHES, ReleaseProfile
from harrow.cluster_model.settings import SETTINGS, Setting


def releases_document(former: ReleaseProfile, latter: ReleaseProfile) -> dict[str, Any]:
    behaviours, defaults = release_changes(former, latter)
    return {
        "schema": "harrow.diff-releases/1",
        "releases": [former.name, latter.name],
        "metadata": [list(former.modes), list(latter.modes)],
        "behaviours": {
            name: {"change": change, "doc": SWITCHES[name].doc} for name, change in behaviours.items()
        },
        "defaults": dict(defaults),
        "without": _removed(former, latter),
    }


def releases_diff(former: ReleaseProfile, latter: ReleaseProfile) -> Iterator[RenderableType]:
    """Yield the differences for people.

    Each side has its name, because either release may come first, and the text of a switch says
    "before" of older ones.
    """

    def sides(first: str, second: str) -> str:
        return f"in {former.name}: {first}, in {latter.name}: {second}"

    yield Text(f"Differences between Kafka {former.name} and Kafka {latter.name}", "bold")
    if former.modes != latter.modes:
        yield indented(f"metadata {sides(' or '.join(former.modes), ' or '.join(latter.modes))}", 2)
    explained = {
        name: f"{sides(first, second)}\n{SWITCHES[name].doc}"
        for name, first, second in changed_behaviours(former, latter)
    }
    texts = {setting: _defaults(setting, former, latter) for setting in SETTINGS.values()}
    defaults = {
        f"{setting.name} ({setting.scope})": sides(first, second)
        for setting, (first, second) in texts.items()
        if first != second
    }
    for heading, part in (("behaviours", explained), ("defaults of settings", defaults)):
        if part:
            yield Text()
            yield indented(heading, 2, DIM)
            yield definitions(part)
    if not explained and not defaults:
        yield indented("The model has no difference between them.", 2)


def _defaults(setting: Setting, *releases: ReleaseProfile) -> list[str]:
    """Return the default of a setting in each release."""
    return [
        default_text(setting, release.name) if setting.exists_in(release.name) else "no such setting"
        for release in releases
    ]


def _removed(former: ReleaseProfile, latter: ReleaseProfile) -> list[str]:
    """Return the settings that only the former release has."""
    return [
        f"{setting.name} ({setting.scope})"
        for setting in SETTINGS.values()
        if setting.exists_in(former.name) and not setting.exists_in(latter.name)
    ]
