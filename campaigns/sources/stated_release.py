"""Finds the release and the control plane that sources mean, stated or not."""

from collections.abc import Iterator, Sequence
from typing import Final

from harrow.campaigns.sources.description import Description
from harrow.campaigns.sources.servers import ROLES
from harrow.cluster_model.release.profiles import NEWEST_RELEASE, RELEASES
from harrow.cluster_model.topology import KRAFT, ZOOKEEPER

VOTERS: Final = ("controller.quorum.voters", "controller.quorum.bootstrap.servers")
ENSEMBLE: Final = "zookeeper.connect"
_NEWEST_WITH_ZOOKEEPER: Final = next(name for name in reversed(RELEASES) if ZOOKEEPER in RELEASES[name].modes)


def release_of(descriptions: Sequence[Description], control_plane: str | None) -> str:
    """Return the release that a source states, or the newest with the sources' control plane."""
    stated = next((stated for about in descriptions for stated in about.releases), None)
    if stated is not None:
        return modelled_release(stated.version, control_plane)
    return _NEWEST_WITH_ZOOKEEPER if control_plane == ZOOKEEPER else NEWEST_RELEASE


def modelled_release(version: str, control_plane: str | None) -> str:
    """Return the newest release of the model that is not newer than a version of Kafka.

    If it lacks the control plane, return the nearest release that has it.
    """
    numbers = tuple(int(part) for part in version.split(".")[:3] if part.isdecimal())
    suitable = [name for name in RELEASES if control_plane is None or control_plane in RELEASES[name].modes]
    older = [name for name in suitable if RELEASES[name].version <= numbers]
    return older[-1] if older else suitable[0]


def control_plane_of(descriptions: Sequence[Description]) -> str | None:
    """Return where the brokers keep metadata, or None if the sources do not say."""
    if any(about.zookeeper_servers for about in descriptions):
        return ZOOKEEPER
    names = {name for about in descriptions for name in _names_in(about)}
    return KRAFT if ROLES in names else ZOOKEEPER if ENSEMBLE in names else None


def _names_in(about: Description) -> Iterator[str]:
    """Yield the settings of servers, and what follows from the source."""
    for server in about.servers:
        yield from (entry.name for entry in server.entries)
        yield from server.facts
    for changed in about.broker_settings:
        yield from (entry.name for entry in changed.entries)
