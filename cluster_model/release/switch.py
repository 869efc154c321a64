"""A switch: one behaviour that differs by release, with all that belongs to it."""

from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, Final

from harrow.cluster_model.release.subjects import Subject

NEVER: Final = "never"
ALWAYS: Final = "always"

DEFAULT_RELEASE: Final = "2.4"

Version = tuple[int, ...]

_SWITCH: Final = "switch"


@cache
def version_of(release: str) -> Version:
    """Return the numbers of a release's name."""
    return tuple(int(number) for number in release.split("."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A known flaw: a switch set to a known-bad value, most of them off.

    ``doc`` says what goes wrong and what comes of it, ``source`` where Kafka had it or what keeps
    it from having it. ``noticed_by`` names the rules that notice it; none where only a campaign's
    script does, for it takes an expectation to tell the flaw from what Kafka may do. ``kafka`` is the release whose
    profile gets the flaw, where the default one has it already, or has nothing that it concerns. ``switch`` follows from
    where it is declared.
    """

    name: str
    value: Any = False
    doc: str
    source: str
    noticed_by: tuple[str, ...] = ()
    kafka: str = DEFAULT_RELEASE
    switch: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """What a KIP or an issue changed in Kafka that keeps an anomaly from happening.

    ``since`` is the first release that has it. ``needs`` is another switch without which that changes nothing. One that
    ``is_opt_in`` has to be switched on in Kafka, so no release brings it by itself. For all others ``switch``, the ``value`` that it
    has since, and the ``former`` ones follow from where the repair is declared.
    """

    name: str
    since: str
    text: str
    needs: str | None = None
    is_opt_in: bool = False
    switch: str | None = None
    value: Any = None
    former: tuple[Any, ...] = ()

    @property
    def version(self) -> Version:
        """The numbers of its first release."""
        return version_of(self.since)

    def is_missing(self, value: Any) -> bool:
        """Return whether a switch of this *value* is as some release before this repair had it."""
        return value != self.value and value in self.former


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """What a switch does and where that stands.

    ``of`` is its subject. ``is_met`` is False where no run of the subject's campaign reads it, but only tests and single
    requests do. ``before`` has what releases before others had, oldest first, ``latest`` what all have since. ``meaning``
    says in a few words what holds at the ``safe`` value. One that ``is_repair`` has to have that value, or a promise
    may be broken; others only change how a promise is kept. ``guards`` names the rules whose promise the safe value keeps, and the
    kinds of causes that it rules out (`harrow.checks.prevention.by_switches`). While another one that it is ``hidden_by`` is on,
    its own value changes nothing. One that ``is_always_in_kraft`` is about ZooKeeper alone: KRaft has done the same from the beginning.

    ``home`` is the field of `Behaviours` that has it.
    """

    name: str = ""
    home: str = ""
    doc: str
    source: str
    of: Subject
    is_met: bool
    choices: tuple[Any, ...]
    meaning: str
    safe: Any
    latest: Any
    before: tuple[tuple[str, Any], ...]
    is_repair: bool
    is_always_in_kraft: bool
    guards: tuple[str, ...]
    hidden_by: tuple[str, ...]
    mutants: tuple[Mutant, ...]
    repairs: tuple[Repair, ...]

    def value_in(self, release: str) -> Any:
        """Return what a release does: in its last bug fix release, so that 2.0 has what came with 2.0.1."""
        version = version_of(release)
        for first, value in self.before:
            if version < version_of(first)[: len(version)]:
                return value
        return self.latest

    def history(self) -> tuple[tuple[str, Any], ...]:
        """Return the values that it has had, oldest first, each with the release that brought it.

        The oldest has been there since before all releases, so its release is empty.
        """
        releases = ["", *(first for first, _ in self.before)]
        return tuple(zip(releases, [*(value for _, value in self.before), self.latest], strict=True))

    def declared_as(self, name: str, home: str) -> "Switch":
        """Return the switch with its name and home, which its mutants and repairs get too."""
        return replace(
            self,
            name=name,
            home=home,
            mutants=tuple(replace(mutant, switch=name) for mutant in self.mutants),
            repairs=tuple(
                repair if repair.is_opt_in else self._with_values(repair, name) for repair in self.repairs
            ),
        )

    def _with_values(self, repair: Repair, name: str) -> Repair:
        releases, values = zip(*self.history(), strict=True)
        arrived = releases.index(repair.since)
        return replace(repair, switch=name, value=values[arrived], former=values[:arrived])


def switch(
    doc: str,
    source: str,
    *,
    of: Subject,
    meaning: str,
    latest: Any = True,
    choices: tuple[Any, ...] = (False, True),
    safe: Any = None,
    before: tuple[tuple[str, Any], ...] = (),
    is_repair: bool = True,
    is_met: bool = True,
    is_always_in_kraft: bool = False,
    guards: tuple[str, ...] = (),
    hidden_by: tuple[str, ...] = (),
    mutant: Mutant | tuple[Mutant, ...] = (),
    repair: Repair | tuple[Repair, ...] = (),
) -> Any:
    """Declare a field of a class of switches (`Switch`); one mutant or repair, or several."""
    declared = Switch(
        doc=doc,
        source=source,
        of=of,
        is_met=is_met,
        choices=choices,
        meaning=meaning,
        safe=latest if safe is None else safe,
        latest=latest,
        before=before,
        is_repair=is_repair,
        is_always_in_kraft=is_always_in_kraft,
        guards=guards,
        hidden_by=hidden_by,
        mutants=mutant if isinstance(mutant, tuple) else (mutant,),
        repairs=repair if isinstance(repair, tuple) else (repair,),
    )
    return field(default=declared.value_in(DEFAULT_RELEASE), metadata={_SWITCH: declared})


def switches_in(declaring: type[Any], home: str) -> list[Switch]:
    """Return the switches that are fields of a class, in their order."""
    return [item.metadata[_SWITCH].declared_as(item.name, home) for item in fields(declaring)]
