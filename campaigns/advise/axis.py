"""Defines the axes of the lattice of settings that `harrow advise` searches.

An axis is a setting with values from cheap to dear. It declares what a dearer value costs, against
which harm it protects, and to which it exposes: a higher ``min.insync.replicas`` loses less and is
unavailable more often. An axis without effect on a harm is not searched for that harm's sake.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, Required, TypedDict, Unpack

from harrow.campaigns.language.literals import setting_text
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.remedies import option_text
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.release.switch import version_of
from harrow.cluster_model.settings import (
    CONSUMER,
    INT_MAX,
    LONG_MAX,
    PRODUCER,
    ConsumerConfig,
    ProducerConfig,
    TopicConfig,
    Value,
    broker_config,
    consumer_config,
    producer_config,
    topic_config,
)
from harrow.cluster_model.topology import (
    INTERNAL_TOPICS,
    ApplicationSpec,
    ConsumerSpec,
    ProducerSpec,
    TopicSpec,
)

_DYNAMIC_DEFAULT: Final = "kafka-configs --entity-type brokers --entity-default --alter --add-config"

_LARGEST_WORDS: Final[Mapping[Value, str]] = {LONG_MAX: "never (Kafka's default)", INT_MAX: "unlimited"}

Cost = Literal["latency", "outage", "storage", "none"]

Chosen = Mapping[str, Value]
"""The values of a point on the axes where it differs from the user's settings, by axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A value of an axis. The user's ``own`` level has no options: it changes nothing.

    ``values`` has several values if the user's topics or clients differ.
    """

    values: tuple[Value, ...]
    own: bool = False

    def text(self) -> str:
        """Return the values as users write them after ``--set``."""
        return ", ".join(map(option_text, self.values))

    def words(self) -> str:
        """Return the values for readers."""
        return ", ".join(map(value_words, self.values))


def value_words(value: Value) -> str:
    """Return a value for readers, to whom Kafka's largest numbers mean nothing."""
    return _LARGEST_WORDS.get(value) or option_text(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line to write in a file, or a command to type. ``place`` says where: ``server.properties``.

    ``before`` is the user's line, empty if there is none.
    """

    place: str
    text: str
    before: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A setting that advice may change.

    ``values`` are the values to try, cheap to dear, and ``rank`` orders all values like that.
    ``own`` returns the values that a plan has now, ``options`` the options (``--set``) that give it
    a point's value, and ``lines`` what a user of Kafka writes or types for that. ``most`` is the
    dearest value that a cluster can have. If an axis is ``only_dearer``, no value below the user's
    is tried. ``since`` is the first release with the setting.
    """

    name: str
    meaning: str
    values: tuple[Value, ...]
    cost: Cost
    protects: tuple[str, ...] = ()
    exposes: tuple[str, ...] = ()
    since: str = "0.10.2"
    own: Callable[[Plan], Sequence[Value]]
    options: Callable[[Plan, Chosen], Sequence[str]]
    lines: Callable[[Plan, Chosen], Sequence[Line]]
    rank: Callable[[Value], int]
    most: Callable[[Plan], Value | None] = lambda _: None
    applies: Callable[[Plan], bool] = lambda _: True
    only_dearer: bool = False

    def levels(self, plans: Sequence[Plan]) -> tuple[Level, ...]:
        """Return the levels on the cluster of these plans, cheap to dear; none if it has none."""
        yours = self.own_level(plans)
        own = yours.values
        if not own:
            return ()
        limits = [limit for plan in plans if self._exists_in(plan) and (limit := self.most(plan)) is not None]
        levels = [yours]
        levels += [
            Level(values=(value,))
            for value in self.values
            if own != (value,)
            and all(self.rank(value) <= self.rank(limit) for limit in limits)
            and not (self.only_dearer and self.rank(value) < self.rank(own[-1]))
        ]
        return tuple(sorted(levels, key=lambda level: (self.rank(level.values[0]), len(level.values))))

    def own_level(self, plans: Sequence[Plan]) -> Level:
        """Return the values that these plans have now."""
        values = {value for plan in plans if self._exists_in(plan) for value in self.own(plan)}
        return Level(values=tuple(sorted(values, key=self.rank)), own=True)

    def _exists_in(self, plan: Plan) -> bool:
        return version_of(self.since) <= RELEASES[plan.kafka].version and self.applies(plan)


def producer_configs(plan: Plan) -> Iterator[ProducerConfig]:
    """Yield the configuration of each producer of a plan, also of those in applications."""
    switches = plan.behaviour_switches()
    for client in (*plan.producers, *plan.applications):
        if isinstance(client, ProducerSpec):
            yield producer_config(plan.kafka, client.settings, switches)
        elif isinstance(client, ApplicationSpec):
            yield producer_config(plan.kafka, client.producer_settings(), switches)


def consumer_configs(plan: Plan, *, in_groups: bool = False) -> Iterator[ConsumerConfig]:
    """Yield the configuration of each consumer of a plan, also of those in applications.

    With *in_groups*, leave out consumers that begin without a committed offset each time.
    """
    for client in (*plan.consumers, *plan.applications):
        if isinstance(client, ConsumerSpec) and (client.internal_topics() or not in_groups):
            yield consumer_config(plan.kafka, client.settings)
        elif isinstance(client, ApplicationSpec):
            yield consumer_config(plan.kafka, client.consumer_settings())


def topics_of(plan: Plan) -> Iterator[tuple[int, TopicSpec]]:
    """Yield the topics of a plan that are not internal, with their places in the campaign."""
    yield from (
        (n, topic) for n, topic in enumerate(plan.cluster.topics) if topic.name not in INTERNAL_TOPICS
    )


def topic_configs(plan: Plan) -> Iterator[TopicConfig]:
    """Yield the configuration of each topic on each broker of a plan."""
    for broker in plan.cluster.initial_brokers():
        config = broker_config(plan.kafka, {**plan.cluster.settings, **broker.settings})
        yield from (topic_config(topic.settings, config) for _, topic in topics_of(plan))


def client_line(name: str, value: Value, settings: Iterable[Mapping[str, Value]], scope: str) -> Line:
    """Return the line of a properties file of clients, which have these explicit *settings* now."""
    before = {property_line(name, own[name]) for own in settings if name in own}
    text = property_line(name, value)
    return Line(place=f"{scope}.properties", text=text, before=before.pop() if len(before) == 1 else "")


def property_line(name: str, value: Value) -> str:
    return f"{name}={option_text(value)}"


def _producer_settings(plan: Plan) -> Iterator[Mapping[str, Value]]:
    yield from (client.settings for client in plan.producers)
    yield from (client.producer for client in plan.applications if isinstance(client, ApplicationSpec))


def _consumer_settings(plan: Plan) -> Iterator[Mapping[str, Value]]:
    yield from (client.settings for client in plan.consumers)
    yield from (client.consumer for client in plan.applications if isinstance(client, ApplicationSpec))


def _increasing(value: Value) -> int:
    return int(value)


def _decreasing(value: Value) -> int:
    return -int(value)


class Effects(TypedDict, total=False):
    """What an `Axis` says about costs, harm and releases."""

    cost: Required[Cost]
    protects: Required[tuple[str, ...]]
    exposes: tuple[str, ...]
    since: str


def producer_axis(
    name: str,
    meaning: str,
    *values: Value,
    own: Callable[[ProducerConfig], Value],
    **effects: Unpack[Effects],
) -> Axis:
    """Return the axis of a setting of producers, with *values* from cheap to dear."""

    def own_values(plan: Plan) -> Sequence[Value]:
        return [own(config) for config in producer_configs(plan)]

    return _client_axis(name, meaning, values, own_values, _producer_settings, PRODUCER, **effects)


def consumer_axis(
    name: str,
    meaning: str,
    *values: Value,
    own: Callable[[Plan], Sequence[Value]],
    **effects: Unpack[Effects],
) -> Axis:
    """Return the axis of a setting of consumers, with *values* from cheap to dear."""
    return _client_axis(name, meaning, values, own, _consumer_settings, CONSUMER, **effects)


def _client_axis(
    name: str,
    meaning: str,
    values: tuple[Value, ...],
    own: Callable[[Plan], Sequence[Value]],
    settings: Callable[[Plan], Iterable[Mapping[str, Value]]],
    scope: str,
    **effects: Unpack[Effects],
) -> Axis:
    return Axis(
        name=name,
        meaning=meaning,
        values=values,
        own=own,
        options=lambda _, chosen: (f"{name}={setting_text(name, chosen[name])}",),
        lines=lambda plan, chosen: [client_line(name, chosen[name], settings(plan), scope)],
        rank=_ranked(values),
        **effects,
    )


def application_axis(
    name: str,
    meaning: str,
    *order: Value,
    own: Callable[[ApplicationSpec], Value],
    words: Mapping[Value, str],
    **effects: Unpack[Effects],
) -> Axis:
    """Return the axis of a key of applications, with the values that have *words* to try.

    *words* say what to change in an application. *order* has all values from cheap to dear, and
    applications with other values are left alone.
    """

    def applications(plan: Plan) -> Iterator[tuple[int, Value]]:
        for number, client in enumerate(plan.applications):
            if isinstance(client, ApplicationSpec) and own(client) in order:
                yield number, own(client)

    return Axis(
        name=name,
        meaning=meaning,
        values=tuple(words),
        own=lambda plan: [value for _, value in applications(plan)],
        options=lambda plan, chosen: [
            f"workload.applications.{number}.{name}={option_text(chosen[name])}"
            for number, _ in applications(plan)
        ],
        lines=lambda _, chosen: [Line(place="applications", text=words[chosen[name]])],
        rank=_ranked(order),
        **effects,
    )


def _ranked(values: Sequence[Value]) -> Callable[[Value], int]:
    """Return the order of *values*, which are given from cheap to dear, and of other numbers."""
    numbers = [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
    if len(numbers) == len(values):
        return _increasing if numbers[0] <= numbers[-1] else _decreasing
    return values.index


def topic_axis(
    name: str,
    meaning: str,
    *values: Value,
    own: Callable[[TopicConfig], Value],
    topic_name: str = "",
    most: Callable[[Plan], Value | None] = lambda _: None,
    is_dynamic: Callable[[Plan, Chosen], bool] = lambda _plan, _chosen: False,
    **effects: Unpack[Effects],
) -> Axis:
    """Return the axis of a setting of brokers and topics. Topics may call it *topic_name*.

    If it *is_dynamic*, a dynamic default of the cluster overrides ``server.properties``.
    """
    key = topic_name or name

    def differing(plan: Plan) -> list[tuple[int, TopicSpec]]:
        return [(number, topic) for number, topic in topics_of(plan) if key in topic.settings]

    def options(plan: Plan, chosen: Chosen) -> Iterator[str]:
        yield f"{name}={option_text(chosen[name])}"
        for number, _ in differing(plan) if topic_name else ():
            yield f"cluster.topics.{number}.settings.{key}={option_text(chosen[name])}"

    def lines(plan: Plan, chosen: Chosen) -> Iterator[Line]:
        own = [broker.settings for broker in plan.cluster.brokers if name in broker.settings]
        before = {
            property_line(name, settings[name])
            for settings in own or [plan.cluster.settings]
            if name in settings
        }
        text = property_line(name, chosen[name])
        if is_dynamic(plan, chosen):
            yield Line(place="cluster", text=f"{_DYNAMIC_DEFAULT} {text}")
        else:
            yield Line(place="server.properties", text=text, before=before.pop() if len(before) == 1 else "")
        for _, topic in differing(plan):
            yield Line(
                place=f"topic {topic.name}",
                text=property_line(key, chosen[name]),
                before=property_line(key, topic.settings[key]),
            )

    return Axis(
        name=name,
        meaning=meaning,
        values=values,
        own=lambda plan: [own(config) for config in topic_configs(plan)],
        options=lambda plan, chosen: tuple(options(plan, chosen)),
        lines=lambda plan, chosen: tuple(lines(plan, chosen)),
        rank=_ranked(values),
        most=most,
        **effects,
    )
