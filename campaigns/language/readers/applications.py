"""Applications of the workload: whether what is said of one goes together."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, get_args

from harrow.campaigns.language.literals import duration_text
from harrow.campaigns.language.part import Section
from harrow.campaigns.language.readers.draft import Draft
from harrow.campaigns.language.readers.effective_settings import EffectiveSettings, GivenSettings, plain
from harrow.campaigns.language.readers.section import SectionReader
from harrow.campaigns.language.yaml_positions import Path
from harrow.cluster_model.fields import fields_of
from harrow.cluster_model.release import RELEASES
from harrow.cluster_model.settings import (
    AUTO_COMMIT,
    CONSUMER,
    GROUP_ID,
    PRODUCER,
    SETTINGS,
    TRANSACTIONAL_ID,
    Value,
)
from harrow.cluster_model.topology import (
    AUTO_COMMITTED,
    EXACTLY_ONCE,
    HIGHEST_FINISHED,
    IDEMPOTENT_SINK,
    WATERMARK,
    ApplicationSpec,
    Delivery,
)

_DELIVERY: Final = "delivery"
_OF_DELIVERIES: Final[Mapping[str, tuple[str, ...]]] = {
    "to": tuple(each for each in get_args(Delivery) if each != IDEMPOTENT_SINK),
    "workers": (WATERMARK, HIGHEST_FINISHED),
    "group_metadata": (EXACTLY_ONCE,),
}
"""What can be said of applications with some kinds of delivery alone."""


class ApplicationReader:
    """Reads an application, and checks it."""

    def __init__(self, draft: Draft, settings: EffectiveSettings, reader: SectionReader) -> None:
        self._draft = draft
        self._settings = settings
        self._reader = reader

    def read(self, section: Section | None, name: str, path: Path) -> ApplicationSpec:
        given = {} if section is None else section.given()
        delivery = given.get(_DELIVERY, EXACTLY_ONCE)
        consumer = self._settings.own_in(CONSUMER, given.get(CONSUMER), (*path, CONSUMER), {GROUP_ID: name})
        # Where there are no transactions that is reported once, below.
        is_transactional = delivery == EXACTLY_ONCE and self._has_transactions()
        implied: dict[str, Value] = {TRANSACTIONAL_ID: name} if is_transactional else {}
        producer = self._settings.own_in(PRODUCER, given.get(PRODUCER), (*path, PRODUCER), implied)
        spec: ApplicationSpec = self._reader.read(
            ApplicationSpec, section, path, name=name, consumer=plain(consumer), producer=plain(producer)
        )
        idle = self._idle(spec, given, path)
        spec = replace(
            spec,
            **{item.attribute: item.default for item in fields_of(ApplicationSpec) if item.key in idle},
        )
        given = {key: value for key, value in given.items() if key not in idle}
        self._check_topics(spec, given, path)
        self._check_delivery(spec, given, consumer, path)
        if spec.stop_us is not None and spec.stop_us <= spec.start_us:
            message = (
                f"the application stops at {duration_text(spec.stop_us)}, which is not after its start at "
                f"{duration_text(spec.start_us)}"
            )
            self._draft.problem((*path, "stop"), message)
        return spec

    def _has_transactions(self) -> bool:
        release = self._settings.release
        return release not in RELEASES or SETTINGS[PRODUCER, TRANSACTIONAL_ID].exists_in(release)

    def _check_topics(self, spec: ApplicationSpec, given: Mapping[str, Any], path: Path) -> None:
        if spec.target is None and spec.delivery != IDEMPOTENT_SINK and not self._draft.has_lost(path):
            self._draft.problem(
                path, f"`to` is missing: with `{_DELIVERY}: {spec.delivery}` it writes to a topic"
            )
        elif spec.target is not None and spec.target == spec.source and "to" in given:
            message = f"an application that writes to {spec.target}, which it reads, never comes to an end"
            self._draft.problem((*path, "to"), message)

    def _idle(self, spec: ApplicationSpec, given: Mapping[str, Any], path: Path) -> set[str]:
        """Return keys of the file that say nothing with the delivery that an option has chosen: they count no more."""
        if _DELIVERY not in given or not self._draft.is_from_option((*path, _DELIVERY)):
            return set()
        idle = {
            key
            for key, deliveries in _OF_DELIVERIES.items()
            if key in given and spec.delivery not in deliveries
        }
        return {key for key in idle if not self._draft.is_from_option((*path, key))}

    def _check_delivery(
        self, spec: ApplicationSpec, given: Mapping[str, Any], consumer: GivenSettings, path: Path
    ) -> None:
        for key, deliveries in _OF_DELIVERIES.items():
            if key in given and spec.delivery not in deliveries:
                message = f"`{key}` says nothing with `{_DELIVERY}: {spec.delivery}`"
                self._draft.problem((*path, key), message, at_key=True)
        if spec.delivery == EXACTLY_ONCE and not self._has_transactions():
            since = SETTINGS[PRODUCER, TRANSACTIONAL_ID].since
            message = f"Kafka {self._settings.release} has no transactions; they came with {since}"
            self._draft.problem((*path, _DELIVERY) if _DELIVERY in given else path, message)
        committed = consumer.get(AUTO_COMMIT)
        if committed is not None and committed.value != (spec.delivery == AUTO_COMMITTED):
            place = self._draft.place(committed.path)
            message = f"`{_DELIVERY}: {spec.delivery}` goes not with {AUTO_COMMIT}={str(committed.value).lower()} ({place})"
            self._draft.problem((*path, _DELIVERY) if _DELIVERY in given else path, message)
