"""Two releases side by side: what one does and sets by default, and the other does not."""

from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from harrow.cli.render.catalogue import release_changes
from harrow.cli.render.layout import DIM, indented, terms
from harrow.cluster_model.release import ReleaseProfile, switch_docs
from harrow.cluster_model.settings import SETTINGS


def releases_document(former: ReleaseProfile, latter: ReleaseProfile) -> dict[str, Any]:
    """Return what differs, for programs."""
    behaviours, defaults = release_changes(former, latter)
    return {
        "schema": "harrow.diff-releases/1",
        "releases": [former.name, latter.name],
        "metadata": [list(former.modes), list(latter.modes)],
        "behaviours": {
            name: {"change": change, "doc": switch_docs()[name]["doc"]} for name, change in behaviours.items()
        },
        "defaults": dict(defaults),
        "without": _gone(former, latter),
    }


def releases_diff(former: ReleaseProfile, latter: ReleaseProfile) -> Iterator[RenderableType]:
    """Yield what differs, for people."""
    behaviours, defaults = release_changes(former, latter)
    yield Text(f"What changed from Kafka {former.name} to {latter.name}", "bold")
    if former.modes != latter.modes:
        yield indented(f"metadata in {' or '.join(latter.modes)}, before in {' or '.join(former.modes)}", 2)
    docs = switch_docs()
    explained = {name: f"{change}\n{docs[name]['doc']}" for name, change in behaviours.items()}
    gone = dict.fromkeys(_gone(former, latter), f"removed, was in {former.name}")
    for heading, part in (("behaviours", explained), ("defaults of settings", {**defaults, **gone})):
        if part:
            yield Text()
            yield indented(heading, 2, DIM)
            table = terms(style="bold")
            for term, meaning in part.items():
                table.add_row(term, meaning)
            yield indented(table, 4)
    if not explained and not defaults and not gone:
        yield indented("Nothing that is modelled differs.", 2)


def _gone(former: ReleaseProfile, latter: ReleaseProfile) -> list[str]:
    """Return the settings that a release has not, and the other has."""
    return [
        f"{setting.name} ({setting.scope})"
        for setting in SETTINGS.values()
        if setting.exists_in(former.name) and not setting.exists_in(latter.name)
    ]
