"""Computes the settings of each process, and checks that Kafka accepts them together."""

from collections.abc import Iterable, Mapping
from itertools import product
from types import MappingProxyType
from typing import NamedTuple

from harrow.campaigns.language.literals import duration_text
from harrow.campaigns.language.part import Part
from harrow.campaigns.language.readers.draft import Draft
from harrow.cluster_model import settings as catalogue
from harrow.cluster_model.release.profiles import RELEASES, Behaviours
from harrow.cluster_model.release.switch import DEFAULT_RELEASE
from harrow.cluster_model.settings import (
    AUTO_COMMIT,
    BROKER,
    CONSUMER,
    GROUP_ID,
    IDEMPOTENCE,
    MIN_ISR,
    PRODUCER,
    SCOPES,
    SETTINGS,
    TRANSACTIONAL_ID,
    Setting,
    Value,
    qualified_names,
)
from harrow.cluster_model.sim.virtual_time import US_PER_MS


class SourcedValue(NamedTuple):
    """The value of a setting, and the part of the campaign that sets it."""

    value: Value
    part: Part


SourcedSettings = Mapping[str, SourcedValue]


class EffectiveSettings:
    """The settings of a plan. Settings of a broker, topic or client override ``settings``."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self.behaviours = behaviours_of(draft.body)
        self.release: str = draft.body.get("kafka") or DEFAULT_RELEASE
        self._checks_release = draft.body.is_sound("kafka")
        self._common = self._read(draft.body / "settings", SCOPES)

    def broker(self) -> SourcedSettings:
        """Return the settings that all brokers share."""
        return self._shared_with(BROKER)

    def check_brokers(self, own: Iterable[SourcedSettings]) -> None:
        """Report settings with which a broker would refuse to start.

        *own* has the settings of single brokers, which override those of all brokers.
        """
        if not self._checks_release:
            return
        common = self.broker()
        for settings in (
            common,
            *({**common, **broker_settings} for broker_settings in own if broker_settings),
        ):
            for conflict in catalogue.broker_conflicts(self.release, plain(settings)):
                self._draft.problem(settings[conflict.setting].part, conflict.needed)

    def own_of_broker(self, broker: Part) -> SourcedSettings:
        return self._read(broker / "settings", (BROKER,))

    def own(self, scope: str, owner: Part) -> SourcedSettings:
        """Return the settings of a topic or a client."""
        return self.own_in(scope, owner / "settings")

    def own_in(
        self, scope: str, section: Part, implied: Mapping[str, Value] = MappingProxyType({})
    ) -> SourcedSettings:
        """Return the settings of a client. *implied* has settings that follow from other keys."""
        own = self._read(section, (scope,))
        settings = {**self._shared_with(scope), **own}
        settings |= {
            name: SourcedValue(value, section) for name, value in implied.items() if name not in settings
        }
        if scope == PRODUCER:
            self._check(settings)
        elif scope == CONSUMER and self._checks_release:
            for conflict in catalogue.consumer_conflicts(self.release, plain(settings)):
                if conflict.setting == AUTO_COMMIT and AUTO_COMMIT not in own:
                    # What all clients share is meant for the members of groups.
                    shared = settings.pop(AUTO_COMMIT)
                    self._draft.note(shared.part, f"{AUTO_COMMIT} holds only for consumers with a {GROUP_ID}")
                else:
                    self._draft.problem(settings[conflict.setting].part, conflict.needed)
        return settings

    def _shared_with(self, scope: str) -> dict[str, SourcedValue]:
        return catalogue.shared_with(scope, self.release, self._common)

    def _read(self, section: Part, scopes: tuple[str, ...]) -> dict[str, SourcedValue]:
        """Return the settings in a section, and report those that the release does not have."""
        settings: dict[str, SourcedValue] = {}
        for name, part in section.parts.items():
            keys = [qualified_names()[name]] if name in qualified_names() else product(scopes, (name,))
            declared = [SETTINGS[key] for key in keys if key in SETTINGS]
            if self._checks_release and not any(setting.exists_in(self.release) for setting in declared):
                self._report_missing(declared[0], part)
            elif not all(self.behaviours.value(setting.needs) for setting in declared if setting.needs):
                needed = f"`behaviours: {{{declared[0].needs}: true}}` brings it back"
                self._draft.problem(part, f"no release in the model has {name}; {needed}", at_key=True)
            else:
                settings[name] = SourcedValue(part.value, part)
        return settings

    def _report_missing(self, setting: Setting, place: Part) -> None:
        """Report a setting that the release lacks; only note it if its control plane is gone."""
        if setting.metadata and setting.is_gone(self.release):
            self._draft.note(place, f"{setting.name} is ignored: Kafka {self.release} no longer has it")
        else:
            self._draft.problem(place, setting.missing_in(self.release), at_key=True)

    def _check(self, settings: SourcedSettings) -> None:
        if not self._checks_release:
            return
        for conflict in catalogue.conflicts(self.release, plain(settings), self.behaviours):
            needed, part = conflict.needed, settings[conflict.setting].part
            if isinstance(conflict.remedy, int):
                needed = needed.format(remedy=duration_text(conflict.remedy * US_PER_MS))
            if conflict.others in ((IDEMPOTENCE,), (TRANSACTIONAL_ID,)):
                (other,) = conflict.others
                needed = f"{other}{settings[other].part.place_beside(part)} {needed}"
            self._draft.problem(part, needed)

    def acks_all(self, settings: SourcedSettings) -> bool:
        """Return whether a producer waits for every replica in the ISR."""
        return catalogue.producer_config(self.release, plain(settings)).acks == -1

    def min_isr(self, topic: SourcedSettings, brokers: Mapping[int, SourcedSettings]) -> SourcedValue | None:
        """Return the lowest `min.insync.replicas` of a topic; None if a broker has the default."""
        if MIN_ISR in topic:
            return topic[MIN_ISR]
        common = self.broker().get(MIN_ISR)
        broker_values = [settings.get(MIN_ISR, common) for settings in brokers.values()]
        explicit = [value for value in broker_values if value is not None]
        if len(explicit) < len(broker_values):
            return None
        return min(explicit, key=lambda sourced: int(sourced.value), default=common)


def plain(settings: SourcedSettings) -> dict[str, Value]:
    """Return the values of settings, without the parts of the campaign that set them."""
    return {name: sourced.value for name, sourced in settings.items()}


def switches_of(body: Part) -> dict[str, Value]:
    return (body / "behaviours").as_dict()


def behaviours_of(body: Part) -> Behaviours:
    """Return the behaviours of the release, with the campaign's switches."""
    return RELEASES[body.get("kafka") or DEFAULT_RELEASE].behaviours.with_switches(**switches_of(body))
