"""Writes settings: shared settings under ``settings``, others in the section of their owner."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeGuard

from harrow.campaigns.language.literals import setting_text
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.yaml_text import Rows, Word
from harrow.cluster_model.registry import derived
from harrow.cluster_model.settings import (
    ALL_REPLICAS,
    BROKER,
    CONSUMER,
    GROUP_ID,
    PRODUCER,
    SETTINGS,
    TOPIC,
    TRANSACTIONAL_ID,
    Value,
    qualified_names,
    scopes_of,
)
from harrow.cluster_model.topology import ApplicationSpec

Settings = Mapping[str, Value]


@derived
def _order() -> dict[str, int]:
    return {name: number for number, (_, name) in reversed(list(enumerate(SETTINGS)))}


class SharedSettings:
    """The campaign's section ``settings``, and the settings that remain for each owner.

    An owner is a topic or a client. Settings of all brokers are always in ``settings``. A setting
    of topics or clients is shared if all owners that would get it have it, and several of them have
    the same value.
    """

    def __init__(self, plan: Plan) -> None:
        self._receivers: dict[str, Sequence[Settings]] = {
            TOPIC: [topic.settings for topic in plan.cluster.topics],
            PRODUCER: [
                *(producer.settings for producer in plan.producers),
                *(
                    without_names(client.producer, client)
                    for client in plan.applications
                    if is_application(client)
                ),
            ],
            CONSUMER: [
                *(consumer.settings for consumer in plan.consumers),
                *(
                    without_names(client.consumer, client)
                    for client in plan.applications
                    if is_application(client)
                ),
            ],
        }
        self._shared = dict(plan.cluster.settings)
        for name in _order():
            value = self._most_common(name)
            if value is not None:
                self._shared.setdefault(name, value)

    def rows(self) -> Rows:
        """Return the campaign's section ``settings``."""
        return Rows(settings_map(self._shared))

    def own(self, settings: Settings) -> dict[str, str]:
        """Return those of *settings* that the section of their owner has to contain."""
        return settings_map(
            {name: value for name, value in settings.items() if not self._is_shared(name, value)}
        )

    def _is_shared(self, name: str, value: Value) -> bool:
        if BROKER in scopes_of(name) or name not in self._shared:
            return False
        shared = self._shared[name]
        return shared == value and type(shared) is type(value)

    def _most_common(self, name: str) -> Value | None:
        """Return the value to share; None if the setting should not be shared."""
        scopes = scopes_of(name)
        if BROKER in scopes:
            return None
        receivers = [settings for scope in scopes for settings in self._receivers[scope]]
        if not receivers or any(name not in settings for settings in receivers):
            return None
        ((value, count),) = Counter(settings[name] for settings in receivers).most_common(1)
        return value if count > 1 or len(receivers) == 1 else None


def is_application(client: object) -> TypeGuard[ApplicationSpec]:
    """Return whether a client has settings for a producer and a consumer."""
    return isinstance(client, ApplicationSpec)


def without_names(settings: Settings, application: ApplicationSpec) -> dict[str, Value]:
    """Return the settings of an application's client without those that repeat its name."""
    named = (GROUP_ID, TRANSACTIONAL_ID)
    return {
        name: value for name, value in settings.items() if not (name in named and value == application.name)
    }


def settings_map(settings: Settings) -> dict[str, str]:
    """Return settings in the order of the catalogue, with values in the notation of a campaign."""
    order = _order()
    names = sorted(settings, key=lambda name: (order.get(plain_name(name), len(order)), name))
    return {name: setting_word(name, settings[name]) for name in names}


def plain_name(name: str) -> str:
    """Return Kafka's name of a setting: without the prefix for producers or consumers."""
    return qualified_names()[name][1] if name in qualified_names() else name


def setting_word(name: str, value: Value) -> str:
    """Return the text of a setting's value. A list such as ``compact,delete`` may need quotes."""
    text = setting_text(plain_name(name), value)
    is_list = "," in text or ":" in text or text in ("", ALL_REPLICAS)
    return text if is_list else Word(text)
