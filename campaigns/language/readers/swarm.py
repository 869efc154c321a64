"""Reads the section ``swarm``: the choices that each seed draws."""

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
    """Return the choices that seeds draw. Report empty lists, and a missing rate or count."""
    section = draft.body / "swarm"
    if section.value is None:
        return None
    sections.readers[Aim] = partial(_aim, draft, sections)
    return _swarm(draft, sections, section)


def _swarm(draft: Draft, sections: SectionReader, section: Part) -> Swarm:
    for key, part in section.parts.items():
        if part.value == [] and not part.rejected:
            draft.problem(part, f"{key}: the list of values is empty")
    return sections.read(
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


def _aims(draft: Draft, section: Part, sections: SectionReader) -> Aims:
    listed = _any_of(draft, section, "aims")
    return sections.read(Aims, section, **({} if listed else {"kinds": ()}))


def _aim(draft: Draft, sections: SectionReader, section: Part) -> Aim:
    return sections.read(Aim, section, instead=_swarm(draft, sections, section))


def _any_of(draft: Draft, section: Part, noun: str) -> Any:
    """Return the list from which a section draws; report a section without such a list."""
    listed = section.get("any_of") or ()
    if not listed and not section.rejected:
        draft.problem(section, f"{noun}: name some under `any_of`")
    return listed


def _actions(draft: Draft, section: Part, sections: SectionReader) -> SwarmActions:
    listed = _any_of(draft, section, "actions")
    if "count" not in section and not section.rejected:
        draft.problem(section, "actions: write how many there are, such as `count: 0..3`")
    return sections.read(
        SwarmActions,
        section,
        **({} if "count" in section else {"count": (0, 0)}),
        **({} if listed else {"kinds": ()}),
    )


def _applications(draft: Draft, section: Part) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the possible numbers of clients of each kind that a seed draws.

    Report a kind of which the workload has no client that could be copied.
    """
    workload = draft.body / "workload"
    for key, _ in application_kinds():
        if key in section:
            if not workload.get(key) and not (workload / key).rejected:
                message = f"drawn {key} are copies of the first one in `workload.{key}`, which is missing"
                draft.problem(section / key, message)
            yield key, section.get(key)


def _settings(draft: Draft, section: Part) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """Return the settings that seeds draw; report a setting that none of the releases has.

    If an option names the release, the swarm leaves out such a setting instead, because it has
    other choices. In an aim the setting is always reported: without it, the aim may miss its rare
    state.
    """
    swarm = draft.body / "swarm"
    releases = tuple(swarm.get("kafka") or (draft.body.get("kafka") or DEFAULT_RELEASE,))
    settings = []
    for name, part in (section / "settings").parts.items():
        declared = [SETTINGS[scope, name] for scope in SCOPES if (scope, name) in SETTINGS]
        if not any(setting.exists_in(release) for setting in declared for release in releases):
            missing = declared[0].missing_in(releases[-1])
            if all(declared[0].metadata and declared[0].is_gone(release) for release in releases):
                draft.note(part, f"{name} is ignored: Kafka {' and '.join(releases)} no longer has it")
                # The seed still draws a value, so that its other draws do not change.
                settings.append((name, tuple(part.value)))
                continue
            if section is swarm and (draft.body / "kafka").is_from_option():
                draft.note(part, f"{name} is not drawn: {missing}")
                continue
            message = (
                missing if len(releases) == 1 else f"none of {', '.join(releases)} has {name}: {missing}"
            )
            draft.problem(part, message, at_key=True)
        elif not part.value and not part.rejected:
            draft.problem(part, f"{name}: the list of values is empty")
        else:
            settings.append((name, tuple(part.value)))
    return tuple(settings)


def _faults(draft: Draft, section: Part, sections: SectionReader) -> SwarmFaults:
    listed = _any_of(draft, section, "faults")
    if "rate" not in section and not section.rejected:
        draft.problem(section, "faults: write how often they strike, such as `rate: 1/m..30/m`")
    count = len(listed)
    in_play = section.get("in_play") or (0, count)
    if count and in_play[1] > count:
        draft.problem(section / "in_play", f"at most {count} can be in play, because `any_of` has no more")
    return sections.read(
        SwarmFaults,
        section,
        in_play=in_play,
        mean_us=section.get("rate") or (1, 1),
        **({} if listed else {"kinds": ()}),
    )
