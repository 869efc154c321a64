"""A swarm: what a campaign leaves open, and how each seed decides it (swarm testing).

A random run with everything in it reaches few states: where every fault strikes all the
time, nothing ever gets far. So each seed first draws which cluster there is, which settings
it has, which faults are in play at all, how often they strike and how many together; the
plan that comes of it is then run like any other. Groce et al., Swarm Testing (ISSTA 2012).

Only the standard library and the core are needed to draw, as on a machine that runs plans.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from campaigns.literal_texts import duration_text
from campaigns.plan import Core, Plan, Swarm
from cluster_model.choices import SeededStream, Stream, between, pick
from cluster_model.release import RELEASES, Behaviours
from cluster_model.settings import BROKER, CONSUMER, PRODUCER, SETTINGS, TOPIC, Value
from cluster_model.topology import BrokerSpec, ClusterSpec, ConsumerSpec, DiskSpec, NetworkSpec, ProducerSpec
from faults.fault import Fault
from faults.injection import Injection, Rate

T = TypeVar("T")

STREAM: Final = "swarm"
"""The stream of choices that a plan is drawn from; the run's own streams are apart from it."""

_ACKS: Final = "acks"
_ACKS_ALL: Final = frozenset({"all", "-1"})
_IDEMPOTENCE: Final = "enable.idempotence"
_IN_FLIGHT: Final = "max.in.flight.requests.per.connection"
_MIN_ISR: Final = "min.insync.replicas"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """What a seed made of an open plan: a plan with nothing open, and the values in words."""

    plan: Plan
    values: tuple[tuple[str, str], ...] = ()


def drawn(plan: Plan, seed: int) -> Drawn:
    """Return the plan that *seed* makes of an open one; a plan without a swarm is as it is."""
    return draw(plan, SeededStream(seed, STREAM)) if plan.swarm is not None else Drawn(plan=plan)


def draw(plan: Plan, stream: Stream) -> Drawn:
    """Draw what a plan leaves open from a stream of choices."""
    assert plan.swarm is not None
    return _Draw(plan, plan.swarm, stream).result()


class _Draw:
    """One draw. Every choice is made in a fixed order, whatever the others came to."""

    def __init__(self, plan: Plan, swarm: Swarm, stream: Stream) -> None:
        self._plan = plan
        self._swarm = swarm
        self._stream = stream
        self._values: list[tuple[str, str]] = []

    def result(self) -> Drawn:
        swarm = self._swarm
        plan = self._plan
        kafka = self._one_of("kafka", swarm.releases, plan.kafka)
        cluster = self._cluster(plan.cluster)
        duration_us = self._between("duration", swarm.duration_us, plan.duration_us, duration_text)
        settings = self._settings(kafka, cluster)
        producers, consumers = self._clients(plan, duration_us)
        faults = self._faults(duration_us)
        # Drawn last, so that a seed draws everything else as it does without.
        core = self._core(plan.core, cluster)
        return Drawn(
            plan=replace(
                plan,
                kafka=kafka,
                cluster=_with_settings(cluster, settings),
                producers=tuple(replace(p, settings={**p.settings, **settings[PRODUCER]}) for p in producers),
                consumers=tuple(replace(c, settings={**c.settings, **settings[CONSUMER]}) for c in consumers),
                faults=(*plan.faults, *faults),
                duration_us=duration_us,
                core=core,
                swarm=None,
            ),
            values=tuple(self._values),
        )

    # Single choices

    def _note(self, name: str, value: Any) -> None:
        self._values.append((name, str(value).lower() if isinstance(value, bool) else str(value)))

    def _one_of(self, name: str, options: Sequence[T], default: T, shown: Any = str) -> T:
        if not options:
            return default
        value = pick(self._stream, options)
        self._note(name, value if isinstance(value, bool) else shown(value))
        return value

    def _between(self, name: str, bounds: tuple[int, int] | None, default: int, shown: Any = str) -> int:
        if bounds is None:
            return default
        value = _rounded(between(self._stream, *bounds), bounds)
        self._note(name, shown(value))
        return value

    # Parts of a plan

    def _cluster(self, cluster: ClusterSpec) -> ClusterSpec:
        swarm = self._swarm
        count = self._between("brokers", swarm.brokers, len(cluster.brokers))
        racks = self._between("racks", swarm.racks, 0)
        brokers = cluster.brokers
        if swarm.brokers is not None or swarm.racks is not None:
            brokers = tuple(
                BrokerSpec(id=number, rack=f"rack-{number % racks}" if racks > 0 else None)
                for number in range(count)
            )
        partitions = self._between("partitions", swarm.partitions, 0)
        factor = self._between("replication_factor", swarm.replication_factor, 0)
        topics = tuple(
            replace(
                topic,
                partitions=partitions or topic.partitions,
                replication_factor=min(factor or topic.replication_factor, len(brokers)),
                assignment=() if partitions or factor or swarm.brokers else topic.assignment,
            )
            for topic in cluster.topics
        )
        latency = self._one_of("latency", swarm.latencies, None, _range_text)
        writeback = self._one_of("writeback", swarm.writebacks_us, cluster.disk.writeback_us, _or_never)
        return replace(
            cluster,
            brokers=brokers,
            topics=topics,
            network=cluster.network
            if latency is None
            else NetworkSpec(latency_min_us=latency[0], latency_max_us=latency[1]),
            disk=DiskSpec(writeback_us=writeback),
        )

    def _settings(self, kafka: str, cluster: ClusterSpec) -> dict[str, dict[str, Value]]:
        """Return the drawn settings by scope: each goes to whoever knows it, as in a campaign's `settings`."""
        chosen = {name: pick(self._stream, values) for name, values in self._swarm.settings}
        chosen = _taken_together(chosen, self._plan, kafka, cluster)
        for name, value in chosen.items():
            self._note(name, value)
        found: dict[str, dict[str, Value]] = {BROKER: {}, TOPIC: {}, PRODUCER: {}, CONSUMER: {}}
        for name, value in chosen.items():
            for scope, settings in found.items():
                if scope == TOPIC and (BROKER, name) in SETTINGS:
                    continue
                if (scope, name) in SETTINGS and SETTINGS[scope, name].exists_in(kafka):
                    settings[name] = value
        return found

    def _clients(
        self, plan: Plan, duration_us: int
    ) -> tuple[tuple[ProducerSpec, ...], tuple[ConsumerSpec, ...]]:
        swarm = self._swarm
        producers, consumers = plan.producers, plan.consumers
        if swarm.producers is not None:
            count = self._between("producers", swarm.producers, 0)
            like = producers[0] if producers else ProducerSpec(name="producer")
            producers = tuple(replace(like, name=f"producer-{number}") for number in range(count))
        if swarm.intervals_us:
            interval_us = self._one_of("rate", swarm.intervals_us, 0, _rate_text)
            producers = tuple(replace(p, interval_us=interval_us, partitions=()) for p in producers)
        producers = tuple(replace(p, stop_us=duration_us) if p.interval_us else p for p in producers)
        if swarm.consumers is not None:
            count = self._between("consumers", swarm.consumers, 0)
            reader = consumers[0] if consumers else ConsumerSpec(name="consumer")
            consumers = tuple(replace(reader, name=f"consumer-{number}") for number in range(count))
        return producers, consumers

    def _faults(self, duration_us: int) -> tuple[Injection, ...]:
        """Draw which faults are in play, how often they strike, and how many together."""
        open_faults = self._swarm.faults
        if open_faults is None:
            return ()
        count = between(self._stream, *open_faults.in_play)
        in_play = _sample(self._stream, open_faults.kinds, count)
        mean_us = _rounded(between(self._stream, *open_faults.mean_us), open_faults.mean_us)
        together = between(self._stream, *open_faults.together)
        self._note("faults", ", ".join(sorted({fault.name for fault in in_play})) or "none")
        if not in_play:
            return ()
        self._note("one fault in", duration_text(mean_us))
        self._note("together", together)
        timing = Rate(mean_us=mean_us, start_us=0, stop_us=duration_us)
        return (Injection(timing=timing, faults=tuple(in_play), together=together),)

    def _core(self, core: Core | None, cluster: ClusterSpec) -> Core | None:
        """Draw in which order brokers are healed until they suffice."""
        if not self._swarm.core:
            known = {broker.id for broker in cluster.brokers}
            return core and replace(core, order=tuple(broker for broker in core.order if broker in known))
        left = [broker.id for broker in cluster.brokers]
        order = tuple(left.pop(self._stream.below(len(left))) for _ in cluster.brokers)
        self._note("core", " ".join(map(str, order)))
        return replace(core or Core(), order=order)


def _taken_together(
    chosen: Mapping[str, Value], plan: Plan, kafka: str, cluster: ClusterSpec
) -> dict[str, Value]:
    """Return drawn settings with what Kafka would refuse put right, as somebody would who means them.

    Idempotence takes acks=all and few requests in flight with it, or is not there at all: where
    the campaign says something else of these, it is not drawn. A topic needs no more replicas in
    sync than it has.
    """
    settings = dict(chosen)
    behaviours = _behaviours(plan, kafka)
    in_flight_max = behaviours.idempotent_in_flight_max
    fixed = {name: value for p in plan.producers for name, value in p.settings.items() if name not in chosen}
    if settings.get(_IDEMPOTENCE):
        if not behaviours.idempotence:
            del settings[_IDEMPOTENCE]
        elif str(fixed.get(_ACKS, "all")) not in _ACKS_ALL or int(fixed.get(_IN_FLIGHT, 1)) > in_flight_max:
            settings[_IDEMPOTENCE] = False
    if settings.get(_IDEMPOTENCE) or fixed.get(_IDEMPOTENCE):
        if _ACKS in settings or _ACKS not in fixed:
            settings[_ACKS] = "all"
        if _IN_FLIGHT in settings:
            settings[_IN_FLIGHT] = min(int(settings[_IN_FLIGHT]), in_flight_max)
    if _MIN_ISR in settings:
        replicas = min(topic.replication_factor for topic in cluster.topics)
        settings[_MIN_ISR] = min(int(settings[_MIN_ISR]), replicas)
    return {
        name: value
        for name, value in settings.items()
        if any(
            (scope, name) in SETTINGS and SETTINGS[scope, name].exists_in(kafka)
            for scope in (BROKER, TOPIC, PRODUCER, CONSUMER)
        )
    }


def _behaviours(plan: Plan, kafka: str) -> Behaviours:
    switches: dict[str, Any] = dict(plan.behaviours)
    return replace(RELEASES[kafka].behaviours, **switches)


def _with_settings(cluster: ClusterSpec, settings: Mapping[str, Mapping[str, Value]]) -> ClusterSpec:
    return replace(
        cluster,
        settings={**cluster.settings, **settings[BROKER]},
        topics=tuple(
            replace(topic, settings={**topic.settings, **settings[TOPIC]}) for topic in cluster.topics
        ),
    )


def _sample(stream: Stream, options: Sequence[Fault], count: int) -> list[Fault]:
    """Return so many different options, in the order of the list."""
    left = list(range(len(options)))
    taken = [left.pop(stream.below(len(left))) for _ in range(min(count, len(options)))]
    return [options[place] for place in sorted(taken)]


def _rounded(value: int, bounds: tuple[int, int]) -> int:
    """Return a value to two digits, if that is within its bounds: a number that can be read."""
    low, high = bounds
    step = 10 ** max(0, len(str(value)) - 2)
    rounded = round(value / step) * step
    return rounded if low <= rounded <= high else value


def _range_text(bounds: tuple[int, int] | None) -> str:
    low_us, high_us = bounds or (0, 0)
    return (
        duration_text(low_us) if low_us == high_us else f"{duration_text(low_us)}..{duration_text(high_us)}"
    )


def _or_never(period_us: int | None) -> str:
    return "never" if period_us is None else duration_text(period_us)


def _rate_text(interval_us: int) -> str:
    return f"one in {duration_text(interval_us)}"
