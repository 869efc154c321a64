"""Which settings Kafka has in a release, whether or not the model has them.

``kafka_settings.txt`` has a line for each setting of brokers, topics, producers and consumers: the
scope, the name, and the releases whose ConfigDef has it. ``python -m docs.setting_names`` wrote it.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from harrow.cluster_model.registry import derived
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.release.switch import version_of
from harrow.cluster_model.settings import SCOPES

TABLE: Final = Path(__file__).with_name("kafka_settings.txt")


@derived
def setting_names() -> Mapping[tuple[str, str], frozenset[str]]:
    """Return the releases that have each setting, by scope and name."""
    rows = (line.split() for line in TABLE.read_text(encoding="utf-8").splitlines())
    return {(scope, name): frozenset(releases) for scope, name, *releases in rows}


def kafka_has(scope: str, name: str, release: str) -> bool:
    """Return whether Kafka has a setting in a release.

    The table lacks 1.1: a release that it lacks has what the release before or after it has.
    """
    present = setting_names().get((scope, name), frozenset())
    return any(near in present for near in _nearest(release))


def _nearest(release: str) -> Iterator[str]:
    covered = sorted(frozenset().union(*setting_names().values()), key=version_of)
    version = RELEASES[release].version
    yield from [name for name in covered if version_of(name) <= version][-1:]
    yield from [name for name in covered if version_of(name) >= version][:1]


def releases_with(name: str, scopes: tuple[str, ...] = SCOPES) -> tuple[str, ...]:
    """Return the releases in which Kafka has a setting of any of these scopes, oldest first."""
    present = frozenset().union(*(setting_names().get((scope, name), frozenset()) for scope in scopes))
    return tuple(release for release in RELEASES if release in present)
