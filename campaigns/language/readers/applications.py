"""Reads the applications of a workload, and checks that the fields of each fit together."""

from collections.abc import Collection, Mapping
from typing import Final, get_args

from harrow.campaigns.language.part import Part
from harrow.campaigns.language.readers.draft import Draft
from harrow.campaigns.language.readers.effective_settings import EffectiveSettings, SourcedSettings, plain
from harrow.campaigns.language.readers.section import SectionReader
from harrow.cluster_model.fields import fields_of
from harrow.cluster_model.lazy_dataclass import replace
from harrow.cluster_model.release.profiles import RELEASES
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
    INTERNAL_TOPICS,
    WATERMARK,
    ApplicationSpec,
    Delivery,
)

_DELIVERY: Final = "delivery"
_DELIVERIES_OF_KEY: Final[Mapping[str, tuple[str, ...]]] = {
    "to": tuple(delivery for delivery in get_args(Delivery) if delivery != IDEMPOTENT_SINK),
    "workers": (WATERMARK, HIGHEST_FINISHED),
    "group_metadata": (EXACTLY_ONCE,),
}
"""The keys that apply only to some deliveries, with these deliveries."""


ANY: Final = "any"
OWN: Final = "own"


def own_topic(source: str) -> str:
    """Return the name of the topic that applications that read *source* have as their own."""
    return f"{source}-{OWN}"


def topics_of_application(section: Part, topics: Collection[str]) -> tuple[str | None, str | None]:
    """Return the topics of a cluster that an application reads and writes.

    `from: any` is the first topic. `to: own` is a topic that the cluster gets for the application.
    A topic that has such a name comes first.
    """
    source, target = section.get("from"), section.get("to")
    if source == ANY and ANY not in topics:
        source = next((name for name in topics if name not in INTERNAL_TOPICS), source)
    if target == OWN and OWN not in topics and source is not None:
        target = own_topic(source)
    return source, target


class ApplicationReader:
    """Reads and checks an application."""

    def __init__(
        self, draft: Draft, settings: EffectiveSettings, reader: SectionReader, topics: Collection[str]
    ) -> None:
        self._draft = draft
        self._settings = settings
        self._reader = reader
        self._topics = topics

    def read(self, section: Part, name: str) -> ApplicationSpec:
        delivery = section.get(_DELIVERY) or EXACTLY_ONCE
        consumer = self._settings.own_in(CONSUMER, section / CONSUMER, {GROUP_ID: name})
        # `_check_delivery` reports a release without transactions. With a transactional.id here,
        # it could be reported a second time.
        is_transactional = delivery == EXACTLY_ONCE and self._has_transactions()
        implied: dict[str, Value] = {TRANSACTIONAL_ID: name} if is_transactional else {}
        producer = self._settings.own_in(PRODUCER, section / PRODUCER, implied)
        source, target = topics_of_application(section, self._topics)
        topics = {"source": source} if source != section.get("from") else {}
        topics |= {"target": target} if target != section.get("to") else {}
        spec = self._reader.read(
            ApplicationSpec, section, name=name, consumer=plain(consumer), producer=plain(producer), **topics
        )
        ignored = self._keys_without_effect(spec, section)
        spec = replace(
            spec,
            **{item.attribute: item.default for item in fields_of(ApplicationSpec) if item.key in ignored},
        )
        keys = section.parts.keys() - ignored
        self._check_topics(spec, keys, section)
        self._check_delivery(spec, keys, consumer, section)
        self._draft.check_stop("application", section, spec.start_us, spec.stop_us)
        return spec

    def _has_transactions(self) -> bool:
        release = self._settings.release
        return release not in RELEASES or SETTINGS[PRODUCER, TRANSACTIONAL_ID].exists_in(release)

    def _check_topics(self, spec: ApplicationSpec, keys: Collection[str], section: Part) -> None:
        if spec.target is None and spec.delivery != IDEMPOTENT_SINK and not section.rejected:
            message = f"`to` is missing: with `{_DELIVERY}: {spec.delivery}` an application writes to a topic"
            self._draft.problem(section, message)
        elif spec.target is not None and spec.target == spec.source and "to" in keys:
            message = f"an application that reads and writes {spec.target} never finishes"
            self._draft.problem(section / "to", message)

    def _keys_without_effect(self, spec: ApplicationSpec, section: Part) -> set[str]:
        """Return the keys in the file that have no effect because an option chose the delivery."""
        if _DELIVERY not in section or not (section / _DELIVERY).is_from_option():
            return set()
        ignored = {
            key
            for key, deliveries in _DELIVERIES_OF_KEY.items()
            if key in section and spec.delivery not in deliveries
        }
        return {key for key in ignored if not (section / key).is_from_option()}

    def _check_delivery(
        self, spec: ApplicationSpec, keys: Collection[str], consumer: SourcedSettings, section: Part
    ) -> None:
        for key, deliveries in _DELIVERIES_OF_KEY.items():
            if key in keys and spec.delivery not in deliveries:
                message = f"`{key}` has no effect with `{_DELIVERY}: {spec.delivery}`"
                self._draft.problem(section / key, message, at_key=True)
        if spec.delivery == EXACTLY_ONCE and not self._has_transactions():
            since = SETTINGS[PRODUCER, TRANSACTIONAL_ID].since
            message = f"Kafka {self._settings.release} has no transactions; they came with {since}"
            self._draft.problem(section / _DELIVERY, message)
        committed = consumer.get(AUTO_COMMIT)
        if committed is not None and committed.value != (spec.delivery == AUTO_COMMITTED):
            place = committed.part.place()
            setting = f"{AUTO_COMMIT}={str(committed.value).lower()} ({place})"
            message = f"`{_DELIVERY}: {spec.delivery}` contradicts {setting}"
            self._draft.problem(section / _DELIVERY, message)
