"""The section ``swarm``: what each seed draws."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from harrow.campaigns.clients.clients import application_kinds
from harrow.campaigns.language.open_choices import open_fields
from harrow.campaigns.language.part import Section
from harrow.campaigns.language.plan import Aim, Aims, Swarm, SwarmActions, SwarmFaults
from harrow.campaigns.language.readers.draft import Draft
from harrow.campaigns.language.readers.section import SectionReader
from harrow.campaigns.language.yaml_positions import Path
from harrow.cluster_model.release import DEFAULT_RELEASE
from harrow.cluster_model.settings import SCOPES, SETTINGS

_SWARM: Path = ("swarm",)


def read_swarm(draft: Draft, sections: SectionReader) -> Swarm | None:
    """Return what a campaign leaves open; report lists without values, and faults that say too little."""
    section = draft.body.get("swarm")
    if section is None:
        return None
    sections.forms[Aim] = partial(_aim, draft, sections)
    return _swarm(draft, sections, section, _SWARM)


def _swarm(draft: Draft, sections: SectionReader, section: Section, path: Path) -> Swarm:
    given = section.given()
    for key, value in given.items():
        if isinstance(value, list) and not value and not draft.has_lost((*path, key)):
            draft.problem((*path, key), f"{key}: there is nothing to draw from")
    open_faults, open_actions, aims = (given.get(key) for key in ("faults", "actions", "aims"))
    swarm: Swarm = sections.read(
        Swarm,
        section,
        path,
        settings=_settings(draft, given, path),
        values=tuple(
            (choice.key, tuple(given[choice.key])) for choice in open_fields() if choice.key in given
        ),
        applications=tuple(_applications(draft, given, path)),
        faults=None if open_faults is None else _faults(draft, open_faults, sections, (*path, "faults")),
        actions=None if open_actions is None else _actions(draft, open_actions, sections, (*path, "actions")),
        aims=None if aims is None else _aims(draft, aims, sections, (*path, "aims")),
    )
    return swarm


def _aims(draft: Draft, section: Section, sections: SectionReader, path: Path) -> Aims:
    listed = _listed(draft, section, path, "aims")
    found: Aims = sections.read(Aims, section, path, **({} if listed else {"kinds": ()}))
    return found


def _aim(draft: Draft, sections: SectionReader, section: Section, path: Path) -> Aim:
    found: Aim = sections.read(Aim, section, path, instead=_swarm(draft, sections, section, path))
    return found


def _listed(draft: Draft, section: Section, path: Path, noun: str) -> Any:
    """Return what a section has to draw from; report one that has nothing."""
    listed = section.given().get("any_of", ())
    if not listed and not draft.has_lost(path):
        draft.problem(path, f"{noun}: name some under `any_of`")
    return listed


def _actions(draft: Draft, section: Section, sections: SectionReader, path: Path) -> SwarmActions:
    listed = _listed(draft, section, path, "actions")
    if "count" not in section.given() and not draft.has_lost(path):
        draft.problem(path, "actions: say how many there are, as `count: 0..3`")
    found: SwarmActions = sections.read(
        SwarmActions,
        section,
        path,
        **({} if "count" in section.given() else {"count": (0, 0)}),
        **({} if listed else {"kinds": ()}),
    )
    return found


def _applications(
    draft: Draft, given: Mapping[str, Any], path: Path
) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield how many clients there are of each kind that is left open; report one that the workload has none of."""
    workload = {} if draft.body.get("workload") is None else draft.body.get("workload").given()
    for key, _ in application_kinds():
        if key in given:
            if not workload.get(key) and not draft.has_lost(("workload", key)):
                draft.problem(
                    (*path, key), f"what is drawn is like the first of `workload.{key}`, which is not there"
                )
            yield key, given[key]


def _settings(draft: Draft, given: Mapping[str, Any], path: Path) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """Return the open settings; report one that no release in question has.

    Where an option names the release, such a setting is left out instead, for the swarm has more to draw. In an aim it is reported:
    without the setting the aim may miss its state.
    """
    body = draft.body
    drawn = None if body.get("swarm") is None else body.get("swarm").given().get("kafka")
    releases = tuple(drawn or (body.get("kafka") or DEFAULT_RELEASE,))
    found = []
    for name, values in (given["settings"].given() if "settings" in given else {}).items():
        place = (*path, "settings", name)
        known = [SETTINGS[scope, name] for scope in SCOPES if (scope, name) in SETTINGS]
        if not any(setting.exists_in(release) for setting in known for release in releases):
            missing = known[0].missing_in(releases[-1])
            if all(known[0].metadata and known[0].is_gone(release) for release in releases):
                draft.note(place, f"{name} says nothing: Kafka {' and '.join(releases)} no longer has it")
                # It is drawn all the same, so that whatever is drawn after it stays as it is.
                found.append((name, tuple(values)))
                continue
            if path == _SWARM and draft.is_from_option(("kafka",)):
                draft.note(place, f"it is not drawn: {missing}")
                continue
            message = (
                missing if len(releases) == 1 else f"none of {', '.join(releases)} has {name}: {missing}"
            )
            draft.problem(place, message, at_key=True)
        elif not values and not draft.has_lost(place):
            draft.problem(place, f"{name}: there is nothing to draw from")
        else:
            found.append((name, tuple(values)))
    return tuple(found)


def _faults(draft: Draft, section: Section, sections: SectionReader, path: Path) -> SwarmFaults:
    given = section.given()
    listed = _listed(draft, section, path, "faults")
    if "rate" not in given and not draft.has_lost(path):
        draft.problem(path, "faults: say how often they strike, as `rate: 1/m..30/m`")
    most = len(listed)
    in_play = given.get("in_play", (0, most))
    if most and in_play[1] > most:
        draft.problem((*path, "in_play"), f"at most {most} can be in play, for there are no more")
    found: SwarmFaults = sections.read(
        SwarmFaults,
        section,
        path,
        in_play=in_play,
        mean_us=given.get("rate", (1, 1)),
        **({} if listed else {"kinds": ()}),
    )
    return found
