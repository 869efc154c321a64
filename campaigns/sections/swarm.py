"""The section ``swarm``: what each seed draws."""

from typing import Any

from campaigns.plan import Swarm, SwarmFaults
from campaigns.sections.draft import Draft
from campaigns.sections.faults import FaultReader
from campaigns.swarm_sections import SwarmFaultsSection, SwarmSection
from campaigns.yaml_positions import Path
from cluster_model.release import DEFAULT_RELEASE
from cluster_model.settings import SCOPES, SETTINGS

_SWARM: Path = ("swarm",)
_FAULTS: Path = ("swarm", "faults")


def read_swarm(draft: Draft, faults: FaultReader) -> Swarm | None:
    """Return what a campaign leaves open; report lists without values, and faults that say too little."""
    section = draft.body.swarm
    if section is None:
        return None
    for key, value in section.given().items():
        if isinstance(value, list) and not value and not draft.has_lost((*_SWARM, key)):
            draft.problem((*_SWARM, key), f"{key}: there is nothing to draw from")
    return Swarm(
        releases=tuple(section.kafka or ()),
        brokers=section.brokers,
        racks=section.racks,
        partitions=section.partitions,
        replication_factor=section.replication_factor,
        settings=_settings(draft, section),
        latencies=tuple(section.latency or ()),
        writebacks_us=tuple(section.writeback or ()),
        duration_us=section.duration,
        producers=section.producers,
        intervals_us=tuple(section.rate or ()),
        consumers=section.consumers,
        faults=None if section.faults is None else _faults(draft, section.faults, faults),
        core=bool(section.core),
    )


def _settings(draft: Draft, section: SwarmSection) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """Return the open settings; one that no release in question has is reported."""
    releases = tuple(section.kafka or (draft.body.kafka or DEFAULT_RELEASE,))
    found = []
    for name, values in (section.settings.given() if section.settings is not None else {}).items():
        place = (*_SWARM, "settings", name)
        known = [SETTINGS[scope, name] for scope in SCOPES if (scope, name) in SETTINGS]
        if not any(setting.exists_in(release) for setting in known for release in releases):
            message = f"Kafka {' and '.join(releases)} has no {name}; it came with {known[0].since}"
            draft.problem(place, message, at_key=True)
        elif not values and not draft.has_lost(place):
            draft.problem(place, f"{name}: there is nothing to draw from")
        else:
            found.append((name, tuple(values)))
    return tuple(found)


def _faults(draft: Draft, section: SwarmFaultsSection, reader: FaultReader) -> SwarmFaults | None:
    kinds = reader.choices(section.any_of or (), (*_FAULTS, "any_of"))
    if not section.any_of and not draft.has_lost(_FAULTS):
        draft.problem(_FAULTS, "faults: name some under `any_of`")
    if section.rate is None and not draft.has_lost(_FAULTS):
        draft.problem(_FAULTS, "faults: say how often they strike, as `rate: 1/m..30/m`")
    most = len(section.any_of or ())
    in_play = section.in_play or (0, most)
    if most and in_play[1] > most:
        draft.problem((*_FAULTS, "in_play"), f"at most {most} can be in play, for there are no more")
    return SwarmFaults(
        kinds=kinds,
        in_play=in_play,
        mean_us=section.rate or (1, 1),
        together=section.together or (1, 1),
    )
