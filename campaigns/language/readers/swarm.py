"""The section ``swarm``: what each seed draws."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from harrow.campaigns.clients.clients import application_kinds
from harrow.campaigns.language.open_choices import open_fields
from harrow.campaigns.language.part import Part
from harrow.campaigns.language.plan import Aim, Aims, Swarm, SwarmActions, SwarmFaults
from harrow.campaigns.language.readers.draft import Draft
from harrow.campaigns.language.readers.section import SectionReader
from harrow.cluster_model.release.switch import DEFAULT_RELEASE
from harrow.cluster_model.settings import SCOPES, SETTINGS


def read_swarm(draft: Draft, sections: SectionReader) -> Swarm | None:
    """Return what a campaign leaves open; report lists without values, and faults that say too little."""
    section = draft.body / "swarm"
    if section.value is None:
        return None
    sections.forms[Aim] = partial(_aim, draft, sections)
    return _swarm(draft, sections, section)


def _swarm(draft: Draft, sections: SectionReader, section: Part) -> Swarm:
    for key, part in section.parts.items():
        if part.value == [] and not part.lost:
            draft.problem(part, f"{key}: there is nothing to draw from")
    swarm: Swarm = sections.read(
        Swarm,
        section,
        settings=_settings(draft, section),
        values=tuple(
            (choice.key, tuple(section.get(choice.key))) for choice in open_fields() if choice.key in section
        ),
        applications=tuple(_applications(draft, section)),
        **{
            key: read(draft, section / key, sections) if key in section else None
            for key, read in (("faults", _faults), ("actions", _actions), ("aims", _aims))
        },
    )
    return swarm


def _aims(draft: Draft, section: Part, sections: SectionReader) -> Aims:
    listed = _listed(draft, section, "aims")
    found: Aims = sections.read(Aims, section, **({} if listed else {"kinds": ()}))
    return found


def _aim(draft: Draft, sections: SectionReader, section: Part) -> Aim:
    found: Aim = sections.read(Aim, section, instead=_swarm(draft, sections, section))
    return found


def _listed(draft: Draft, section: Part, noun: str) -> Any:
    """Return what a section has to draw from; report one that has nothing."""
    listed = section.get("any_of") or ()
    if not listed and not section.lost:
        draft.problem(section, f"{noun}: name some under `any_of`")
    return listed


def _actions(draft: Draft, section: Part, sections: SectionReader) -> SwarmActions:
    listed = _listed(draft, section, "actions")
    if "count" not in section and not section.lost:
        draft.problem(section, "actions: say how many there are, as `count: 0..3`")
    found: SwarmActions = sections.read(
        SwarmActions,
        section,
        **({} if "count" in section else {"count": (0, 0)}),
        **({} if listed else {"kinds": ()}),
    )
    return found


def _applications(draft: Draft, section: Part) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield how many clients there are of each kind that is left open; report one that the workload has none of."""
    workload = draft.body / "workload"
    for key, _ in application_kinds():
        if key in section:
            if not workload.get(key) and not (workload / key).lost:
                message = f"what is drawn is like the first of `workload.{key}`, which is not there"
                draft.problem(section / key, message)
            yield key, section.get(key)


def _settings(draft: Draft, section: Part) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """Return the open settings; report one that no release in question has.

    Where an option names the release, such a setting is left out instead, for the swarm has more to draw. In an aim it is reported:
    without the setting the aim may miss its state.
    """
    swarm = draft.body / "swarm"
    releases = tuple(swarm.get("kafka") or (draft.body.get("kafka") or DEFAULT_RELEASE,))
    found = []
    for name, part in (section / "settings").parts.items():
        known = [SETTINGS[scope, name] for scope in SCOPES if (scope, name) in SETTINGS]
        if not any(setting.exists_in(release) for setting in known for release in releases):
            missing = known[0].missing_in(releases[-1])
            if all(known[0].metadata and known[0].is_gone(release) for release in releases):
                draft.note(part, f"{name} says nothing: Kafka {' and '.join(releases)} no longer has it")
                # It is drawn all the same, so that whatever is drawn after it stays as it is.
                found.append((name, tuple(part.value)))
                continue
            if section is swarm and (draft.body / "kafka").is_from_option():
                draft.note(part, f"it is not drawn: {missing}")
                continue
            message = (
                missing if len(releases) == 1 else f"none of {', '.join(releases)} has {name}: {missing}"
            )
            draft.problem(part, message, at_key=True)
        elif not part.value and not part.lost:
            draft.problem(part, f"{name}: there is nothing to draw from")
        else:
            found.append((name, tuple(part.value)))
    return tuple(found)


def _faults(draft: Draft, section: Part, sections: SectionReader) -> SwarmFaults:
    listed = _listed(draft, section, "faults")
    if "rate" not in section and not section.lost:
        draft.problem(section, "faults: say how often they strike, as `rate: 1/m..30/m`")
    most = len(listed)
    in_play = section.get("in_play") or (0, most)
    if most and in_play[1] > most:
        draft.problem(section / "in_play", f"at most {most} can be in play, for there are no more")
    found: SwarmFaults = sections.read(
        SwarmFaults,
        section,
        in_play=in_play,
        mean_us=section.get("rate") or (1, 1),
        **({} if listed else {"kinds": ()}),
    )
    return found
