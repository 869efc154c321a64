"""Settings as they reach each process, and whether Kafka would take them together."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from harrow.campaigns.language.literals import duration_text
from harrow.campaigns.language.part import Part
from harrow.campaigns.language.readers.draft import Draft
from harrow.cluster_model import settings as catalogue
from harrow.cluster_model.release.profiles import RELEASES, Behaviours
from harrow.cluster_model.release.switch import DEFAULT_RELEASE
from harrow.cluster_model.settings import (
    BROKER,
    CONSUMER,
    IDEMPOTENCE,
    MIN_ISR,
    PRODUCER,
    SCOPES,
    SETTINGS,
    TRANSACTIONAL_ID,
    Setting,
    Value,
)
from harrow.cluster_model.sim.virtual_time import US_PER_MS


class Given(NamedTuple):
    """A setting's value, and where the campaign says so."""

    value: Value
    part: Part


GivenSettings = Mapping[str, Given]


class EffectiveSettings:
    """The settings of one plan. The more special place wins over the campaign's ``settings``."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self.behaviours = behaviours_of(draft.body)
        self.release: str = draft.body.get("kafka") or DEFAULT_RELEASE
        self._checks_release = draft.body.knows("kafka")
        self._common = self._read(draft.body / "settings", SCOPES)

    def broker(self) -> GivenSettings:
        """Return what all brokers get."""
        return self._known_to(BROKER)

    def check_brokers(self, own: Iterable[GivenSettings]) -> None:
        """Report what brokers would not start with: of what all get, and of what some have of their own."""
        if not self._checks_release:
            return
        common = self.broker()
        for settings in (common, *({**common, **given} for given in own if given)):
            for conflict in catalogue.broker_conflicts(self.release, plain(settings)):
                self._draft.problem(settings[conflict.setting].part, conflict.needed)

    def own_of_broker(self, broker: Part) -> GivenSettings:
        return self._read(broker / "settings", (BROKER,))

    def own(self, scope: str, owner: Part) -> GivenSettings:
        """Return what a topic or a client gets."""
        return self.own_in(scope, owner / "settings")

    def own_in(
        self, scope: str, section: Part, implied: Mapping[str, Value] = MappingProxyType({})
    ) -> GivenSettings:
        """Return what a client gets whose settings stand in a section; *implied* are those that follow from elsewhere."""
        settings = {**self._known_to(scope), **self._read(section, (scope,))}
        settings |= {name: Given(value, section) for name, value in implied.items() if name not in settings}
        if scope == PRODUCER:
            self._check(settings)
        elif scope == CONSUMER and self._checks_release:
            for conflict in catalogue.consumer_conflicts(self.release, plain(settings)):
                self._draft.problem(settings[conflict.setting].part, conflict.needed)
        return settings

    def _known_to(self, scope: str) -> dict[str, Given]:
        return catalogue.shared_with(scope, self.release, self._common)

    def _read(self, section: Part, scopes: tuple[str, ...]) -> dict[str, Given]:
        """Return the settings of a section, and report those that the release does not know."""
        found: dict[str, Given] = {}
        for name, part in section.parts.items():
            known = [SETTINGS[scope, name] for scope in scopes if (scope, name) in SETTINGS]
            if self._checks_release and not any(setting.exists_in(self.release) for setting in known):
                self._missing(known[0], part)
            elif not all(self.behaviours.value(setting.needs) for setting in known if setting.needs):
                needed = f"`behaviours: {{{known[0].needs}: true}}` brings it back"
                self._draft.problem(part, f"no release that is modelled has {name}; {needed}", at_key=True)
            else:
                found[name] = Given(part.value, part)
        return found

    def _missing(self, setting: Setting, place: Part) -> None:
        """Report a setting that the release does not have; one of a control plane that is gone changes nothing, and may stand there."""
        if setting.metadata and setting.is_gone(self.release):
            self._draft.note(place, f"{setting.name} says nothing: Kafka {self.release} no longer has it")
        else:
            self._draft.problem(place, setting.missing_in(self.release), at_key=True)

    def _check(self, settings: GivenSettings) -> None:
        if not self._checks_release:
            return
        for conflict in catalogue.conflicts(self.release, plain(settings), self.behaviours):
            needed = conflict.needed
            if isinstance(conflict.remedy, int):
                needed = needed.format(remedy=duration_text(conflict.remedy * US_PER_MS))
            if conflict.others in ((IDEMPOTENCE,), (TRANSACTIONAL_ID,)):
                (asked_for,) = conflict.others
                place = settings[asked_for].part.place()
                needed = f"{asked_for} ({place}) {needed}"
            self._draft.problem(settings[conflict.setting].part, needed)

    def acks_all(self, settings: GivenSettings) -> bool:
        """Return whether a producer waits for every replica in the ISR."""
        return catalogue.producer_config(self.release, plain(settings)).acks == -1

    def min_isr(self, topic: GivenSettings, brokers: Mapping[int, GivenSettings]) -> Given | None:
        """Return the least `min.insync.replicas` that a topic can have, where one is given."""
        if MIN_ISR in topic:
            return topic[MIN_ISR]
        common = self.broker().get(MIN_ISR)
        own = [settings.get(MIN_ISR, common) for settings in brokers.values()]
        given = [one for one in own if one is not None]
        if len(given) < len(own):
            return None
        return min(given, key=lambda one: int(one.value), default=common)


def plain(settings: GivenSettings) -> dict[str, Value]:
    """Return settings as the actors take them."""
    return {name: given.value for name, given in settings.items()}


def switches_of(body: Part) -> dict[str, Value]:
    return (body / "behaviours").given()


def behaviours_of(body: Part) -> Behaviours:
    """Return what the release does, with the campaign's switches."""
    return RELEASES[body.get("kafka") or DEFAULT_RELEASE].behaviours.with_switches(**switches_of(body))
