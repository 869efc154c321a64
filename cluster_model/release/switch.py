"""Defines the switch: a behaviour that differs between releases, with its mutants and repairs."""

from dataclasses import KW_ONLY, field, fields
from functools import cache
from typing import Any, Final

from harrow.cluster_model.lazy_dataclass import dataclass, replace
from harrow.cluster_model.release.subjects import Subject

NEVER: Final = "never"
ALWAYS: Final = "always"

DEFAULT_RELEASE: Final = "2.4"

Version = tuple[int, ...]

_SWITCH: Final = "switch"


@cache
def version_of(release: str) -> Version:
    """Return a release such as ``2.4`` as a tuple of numbers."""
    return tuple(int(number) for number in release.split("."))


@dataclass(frozen=True, slots=True)
class Mutant:
    """A known flaw: a switch with a bad value, which is False for most.

    ``doc`` says what goes wrong and what follows from it. ``source`` says where Kafka had the flaw,
    or which class prevents it. By default that is the source of the switch. ``noticed_by`` names
    the rules and invariants that notice the flaw. It is empty if only the expectations of a script
    can tell the flaw from allowed behaviour. ``kafka`` is the release to which tests add the flaw.
    It differs from the default release if that one already has the flaw, or does not have the
    affected feature. ``switch`` is filled in by the declaration of the switch.
    """

    name: str
    doc: str
    _: KW_ONLY
    value: Any = False
    source: str = ""
    noticed_by: tuple[str, ...] = ()
    kafka: str = DEFAULT_RELEASE
    switch: str = ""


@dataclass(frozen=True, slots=True)
class Repair:
    """A change in Kafka, by a KIP or a ticket, that prevents an anomaly.

    ``text`` is by default the meaning of the switch. ``since`` is the first release that has the
    repair, by default the last release that changed the switch. ``needs`` names another switch
    without which the repair has no effect. A repair that ``is_opt_in`` must be enabled in Kafka, so
    no release brings it by itself. For all other repairs, the declaration of the switch fills in
    ``switch``, the ``value`` of the switch since the repair, and its ``former_values``.
    """

    name: str
    text: str = ""
    _: KW_ONLY
    since: str = ""
    needs: str | None = None
    is_opt_in: bool = False
    switch: str | None = None
    value: Any = None
    former_values: tuple[Any, ...] = ()

    @property
    def version(self) -> Version:
        """The version of the first release with the repair."""
        return version_of(self.since)

    def is_missing(self, value: Any) -> bool:
        """Return whether a switch with this *value* behaves like a release before the repair."""
        return value != self.value and value in self.former_values


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """A behaviour of Kafka that differs between releases, or that a known flaw changes.

    ``section`` is the field of `Behaviours` that has the switch. ``is_read_in_campaign`` is False
    if only tests and single requests read the switch, but no run of its subject's campaign.
    ``former_values`` has the values of earlier releases, oldest first, each with the release that
    replaced it. ``latest`` is the value that replaced the last of them. ``meaning`` says in a few
    words what the ``safe`` value ensures. If a switch that ``is_repair`` does not have its safe
    value, a promise may be broken. Other switches only change how a promise is kept. ``guards``
    names the rules whose promise the safe value keeps, and the kinds of causes that it rules out
    (`harrow.checks.prevention.by_switches`). While any switch in ``hidden_by`` is on, this switch
    has no effect. A switch that ``is_always_in_kraft`` makes a difference only with ZooKeeper,
    because KRaft has always behaved as if it were on.
    """

    name: str = ""
    section: str = ""
    doc: str
    source: str
    subject: Subject
    is_read_in_campaign: bool
    choices: tuple[Any, ...]
    meaning: str
    safe: Any
    latest: Any
    former_values: tuple[tuple[str, Any], ...]
    is_repair: bool
    is_always_in_kraft: bool
    guards: tuple[str, ...]
    hidden_by: tuple[str, ...]
    mutants: tuple[Mutant, ...]
    repairs: tuple[Repair, ...]

    def value_in(self, release: str) -> Any:
        """Return the value in the last bug fix release of *release*, such as 2.0.1 for 2.0."""
        version = version_of(release)
        for replaced_in, value in self.former_values:
            if version < version_of(replaced_in)[: len(version)]:
                return value
        return self.latest

    def history(self) -> tuple[tuple[str, Any], ...]:
        """Return the values of the switch, oldest first, each with the release that introduced it.

        The oldest value is older than all releases that harrow knows, so its release is empty.
        """
        releases = ["", *(release for release, _ in self.former_values)]
        values = [*(value for _, value in self.former_values), self.latest]
        return tuple(zip(releases, values, strict=True))

    def completed(self, name: str, section: str) -> "Switch":
        """Return the switch with its name and section, and with complete mutants and repairs."""
        return replace(
            self,
            name=name,
            section=section,
            mutants=tuple(
                replace(mutant, switch=name, source=mutant.source or self.source) for mutant in self.mutants
            ),
            repairs=tuple(self._complete_repair(repair, name) for repair in self.repairs),
        )

    def _complete_repair(self, repair: Repair, name: str) -> Repair:
        if repair.is_opt_in:
            return repair
        releases, values = zip(*self.history(), strict=True)
        since = repair.since or releases[-1]
        place = releases.index(since)
        text = repair.text or self.meaning.partition(" (")[0]
        return replace(
            repair, text=text, since=since, switch=name, value=values[place], former_values=values[:place]
        )


def switch(
    doc: str,
    source: str,
    *,
    subject: Subject,
    meaning: str,
    latest: Any = True,
    choices: tuple[Any, ...] = (False, True),
    safe: Any = None,
    since: str = "",
    former_values: tuple[tuple[str, Any], ...] = (),
    is_repair: bool = True,
    is_read_in_campaign: bool = True,
    is_always_in_kraft: bool = False,
    guards: tuple[str, ...] = (),
    hidden_by: tuple[str, ...] = (),
    mutant: Mutant | tuple[Mutant, ...] = (),
    repair: Repair | tuple[Repair, ...] = (),
) -> Any:
    """Declare a switch as a field of a class, with one mutant or repair, or several.

    The parameters are the fields of `Switch`. *since* is a short form of *former_values*, for a
    switch that was changed only once, from off to on or from on to off.
    """
    declaration = Switch(
        doc=doc,
        source=source,
        subject=subject,
        is_read_in_campaign=is_read_in_campaign,
        choices=choices,
        meaning=meaning,
        safe=latest if safe is None else safe,
        latest=latest,
        former_values=((since, not latest),) if since else former_values,
        is_repair=is_repair,
        is_always_in_kraft=is_always_in_kraft,
        guards=guards,
        hidden_by=hidden_by,
        mutants=mutant if isinstance(mutant, tuple) else (mutant,),
        repairs=repair if isinstance(repair, tuple) else (repair,),
    )
    return field(default=declaration.value_in(DEFAULT_RELEASE), metadata={_SWITCH: declaration})


@cache
def switches_in(owner: type[Any], section: str) -> tuple[Switch, ...]:
    """Return the switches that are fields of a class, in the order of the fields."""
    return tuple(item.metadata[_SWITCH].completed(item.name, section) for item in fields(owner))
