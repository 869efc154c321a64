"""Settings as they reach each process, and whether Kafka would take them together."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from campaigns.literal_texts import duration_text
from campaigns.schema import Body
from campaigns.sections.draft import Draft
from campaigns.yaml_positions import Path
from cluster_model.release import DEFAULT_RELEASE, RELEASES, Behaviours
from cluster_model.settings import (
    BROKER,
    CONSUMER,
    PRODUCER,
    SCOPES,
    SETTINGS,
    TOPIC,
    Value,
    producer_config,
    scopes_of,
)

IDEMPOTENCE = "enable.idempotence"
IN_FLIGHT = "max.in.flight.requests.per.connection"
MIN_ISR = "min.insync.replicas"


class Given(NamedTuple):
    """A setting's value, and where the campaign says so."""

    value: Value
    path: Path


GivenSettings = Mapping[str, Given]


class EffectiveSettings:
    """The settings of one plan. The more special place wins over the campaign's ``settings``."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._behaviours = behaviours_of(draft.body)
        self.release: str = draft.body.kafka or DEFAULT_RELEASE
        self._checks_release = draft.is_intact("kafka")
        self._common = self._read(draft.body, (), SCOPES)

    def broker(self) -> GivenSettings:
        """Return what all brokers get."""
        return self._known_to(BROKER)

    def own_of_broker(self, broker: Any, path: Path) -> GivenSettings:
        """Return what one broker gets besides."""
        return self._read(broker, path, (BROKER,))

    def topic(self, topic: Any, path: Path) -> GivenSettings:
        """Return what a topic gets. What brokers know too reaches it through them."""
        common = {
            name: given for name, given in self._known_to(TOPIC).items() if BROKER not in scopes_of(name)
        }
        return {**common, **self._read(topic, path, (TOPIC,))}

    def producer(self, producer: Any, path: Path) -> GivenSettings:
        """Return what a producer gets."""
        settings = {**self._known_to(PRODUCER), **self._read(producer, path, (PRODUCER,))}
        self._check_idempotence(settings)
        self._check_delivery_timeout(settings)
        return settings

    def consumer(self, consumer: Any, path: Path) -> GivenSettings:
        """Return what a consumer gets."""
        return {**self._known_to(CONSUMER), **self._read(consumer, path, (CONSUMER,))}

    def _known_to(self, scope: str) -> dict[str, Given]:
        return {
            name: given
            for name, given in self._common.items()
            if (scope, name) in SETTINGS and SETTINGS[scope, name].exists_in(self.release)
        }

    def _read(self, owner: Any, path: Path, scopes: tuple[str, ...]) -> dict[str, Given]:
        """Return the settings that *owner* has, and report those that its release does not know."""
        section = owner.settings if owner is not None else None
        if section is None:
            return {}
        found: dict[str, Given] = {}
        for name, value in section.given().items():
            place = (*path, "settings", name)
            known = [SETTINGS[scope, name] for scope in scopes if (scope, name) in SETTINGS]
            if self._checks_release and not any(setting.exists_in(self.release) for setting in known):
                self._draft.problem(
                    place, f"Kafka {self.release} has no {name}; it came with {known[0].since}", at_key=True
                )
            else:
                found[name] = Given(value, place)
        return found

    def _check_idempotence(self, settings: GivenSettings) -> None:
        """Check what KafkaProducer checks in configureAcks, configureRetries and configureInflightRequests."""
        idempotence = settings.get(IDEMPOTENCE)
        if idempotence is None or not idempotence.value or not self._checks_release:
            return
        if not self._behaviours.idempotence:
            self._draft.problem(
                idempotence.path, "there is no idempotent producer: `behaviours` switch it off"
            )
        limit = self._behaviours.idempotent_in_flight_max
        acks, retries, in_flight = settings.get("acks"), settings.get("retries"), settings.get(IN_FLIGHT)
        if acks is not None and acks.value != "all":
            self._conflict(acks, idempotence, f"needs acks=all, not acks={acks.value}")
        if retries is not None and retries.value == 0:
            self._conflict(retries, idempotence, "needs retries of more than 0")
        if in_flight is not None and int(in_flight.value) > limit:
            needed = f"needs {IN_FLIGHT} of at most {limit} in Kafka {self.release}, not {in_flight.value}"
            self._conflict(in_flight, idempotence, needed)

    def _conflict(self, given: Given, idempotence: Given, needed: str) -> None:
        place = self._draft.place(idempotence.path)
        self._draft.problem(given.path, f"{IDEMPOTENCE} ({place}) {needed}")

    def _check_delivery_timeout(self, settings: GivenSettings) -> None:
        """Check what KafkaProducer checks in configureDeliveryTimeout (KIP-91)."""
        given = settings.get("delivery.timeout.ms")
        if given is None or not self._checks_release:
            return
        config = producer_config(self.release, plain(settings))
        least_us = config.linger_us + config.request_timeout_us
        if config.delivery_timeout_us < least_us:
            least = duration_text(least_us)
            self._draft.problem(
                given.path,
                f"delivery.timeout.ms has to be at least linger.ms + request.timeout.ms, which is {least}",
            )

    def acks_all(self, settings: GivenSettings) -> bool:
        """Return whether a producer waits for every replica in the ISR."""
        return producer_config(self.release, plain(settings)).acks == -1

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


def switches_of(body: Body) -> dict[str, Value]:
    """Return the switches that a campaign sets."""
    return body.behaviours.given() if body.behaviours is not None else {}


def behaviours_of(body: Body) -> Behaviours:
    """Return what the release does, with the campaign's switches."""
    switches: dict[str, Any] = switches_of(body)
    return replace(RELEASES[body.kafka or DEFAULT_RELEASE].behaviours, **switches)
