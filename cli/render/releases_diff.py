"""Compares two releases: renders the behaviours and defaults that differ."""

from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType

from harrow.cli.render.catalogue import changed_behaviours, default_text, release_changes
from harrow.cli.render.catalogue_tables import definitions
from harrow.cli.render.layout import DIM, indented
from harrow.cli.text import Text
from harrow.cluster_model.release.profiles import SWITCHES, ReleaseProfile
from harrow.cluster_model.settings import SETTINGS, Setting


def releases_document(left: ReleaseProfile, right: ReleaseProfile) -> dict[str, Any]:
    behaviours, defaults = release_changes(left, right)
    return {
        "schema": "harrow.diff-releases/1",
        "releases": [left.name, right.name],
        "metadata": [list(left.modes), list(right.modes)],
        "behaviours": {
            name: {"change": change, "doc": SWITCHES[name].doc} for name, change in behaviours.items()
        },
        "defaults": dict(defaults),
        "without": _only_in_left(left, right),
    }


def releases_diff(left: ReleaseProfile, right: ReleaseProfile) -> Iterator[RenderableType]:
    """Yield the differences for people.

    Either release may be the older one, so each value is shown with its release. With the word
    "before", it would be unclear which release has the value.
    """

    def sides(first: str, second: str) -> str:
        return f"in {left.name}: {first}, in {right.name}: {second}"

    yield Text(f"Differences between Kafka {left.name} and Kafka {right.name}", "bold")
    if left.modes != right.modes:
        yield indented(f"metadata {sides(' or '.join(left.modes), ' or '.join(right.modes))}", 2)
    behaviours_text = {
        name: f"{sides(first, second)}\n{SWITCHES[name].doc}"
        for name, first, second in changed_behaviours(left, right)
    }
    texts = {setting: _defaults(setting, left, right) for setting in SETTINGS.values()}
    defaults = {
        f"{setting.name} ({setting.scope})": sides(first, second)
        for setting, (first, second) in texts.items()
        if first != second
    }
    for heading, part in (("behaviours", behaviours_text), ("defaults of settings", defaults)):
        if part:
            yield Text()
            yield indented(heading, 2, DIM)
            yield definitions(part)
    if not behaviours_text and not defaults:
        yield indented("The model has no difference between them.", 2)


def _defaults(setting: Setting, *releases: ReleaseProfile) -> list[str]:
    """Return the default of a setting in each release."""
    return [
        default_text(setting, release.name) if setting.exists_in(release.name) else "no such setting"
        for release in releases
    ]


def _only_in_left(left: ReleaseProfile, right: ReleaseProfile) -> list[str]:
    """Return the settings that only the left release has."""
    return [
        f"{setting.name} ({setting.scope})"
        for setting in SETTINGS.values()
        if setting.exists_in(left.name) and not setting.exists_in(right.name)
    ]
