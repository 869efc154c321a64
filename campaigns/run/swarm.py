"""Draws a plan from a swarm, a campaign that leaves values open: each seed chooses them.

A random run with all faults at once reaches few states, because the cluster makes no progress. So
each seed first draws a cluster, its settings, some of the faults, their rate, and how many of them
strike together. The resulting plan runs like any other. See Groce et al., Swarm Testing (ISSTA
2012).

This module imports only the standard library and the packages of harrow that run plans, so it also
works on machines that only run sweeps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, Final, TypeVar

from harrow.campaigns.clients.clients import application_kinds
from harrow.campaigns.language.literals import duration_text, field_text
from harrow.campaigns.language.plan import Aim, Aims, Core, Plan, Step, Swarm
from harrow.cluster_model import settings as catalogue
from harrow.cluster_model.fields import DeclaredField, fields_of, with_fields
from harrow.cluster_model.lazy_dataclass import dataclass, replace
from harrow.cluster_model.registry import derived
from harrow.cluster_model.release.profiles import behaviours_with
from harrow.cluster_model.settings import BROKER, CONSUMER, PRODUCER, SCOPES, TOPIC, Value
from harrow.cluster_model.sim.choices import SeededStream, Stream, between, happens, pick
from harrow.cluster_model.topology import ApplicationSpec, BrokerSpec, ClusterSpec, ConsumerSpec, ProducerSpec
from harrow.faults.fault import Fault
from harrow.faults.injection import Injection, Rate

T = TypeVar("T")

STREAM: Final = "swarm"
"""The name of the stream of random numbers for these choices. Runs have streams of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """The plan that a seed draws, with nothing left open, and the names and texts of its values.

    ``values_without_workload`` are those that matter to clients other than the modelled ones.
    """

    plan: Plan
    values: tuple[tuple[str, str], ...] = ()
    values_without_workload: tuple[tuple[str, str], ...] = ()


def draw_for_seed(plan: Plan, seed: int) -> Draw:
    """Return the plan that *seed* draws. A plan without a swarm stays as it is."""
    return draw(plan, SeededStream(seed, STREAM)) if plan.swarm is not None else Draw(plan=plan)


def draw(plan: Plan, stream: Stream) -> Draw:
    assert plan.swarm is not None
    swarm, aim = plan.swarm, _aim(plan.swarm.aims, stream)
    return _Drawing(plan, swarm if aim is None else swarm.aimed(aim), stream, aim).result()


def _aim(aims: Aims | None, stream: Stream) -> Aim | None:
    """Draw whether the seed aims at a rare state, and at which one. This choice is drawn first."""
    if aims is None or happens(stream, 1 - aims.share):
        return None
    return pick(stream, aims.kinds)


class _Drawing:
    """One draw. It makes its choices in a fixed order, whatever values it draws."""

    def __init__(self, plan: Plan, swarm: Swarm, stream: Stream, aim: Aim | None) -> None:
        self._plan = plan
        self._swarm = swarm
        self._stream = stream
        self._values: list[tuple[str, str]] = []
        self._values_without_workload: list[tuple[str, str]] = []
        self._left_open = dict(swarm.values)
        if aim is not None:
            self._note("aim", aim.probe)

    def result(self) -> Draw:
        swarm = self._swarm
        plan = self._plan
        kafka = plan.kafka
        if swarm.releases:
            kafka = pick(self._stream, swarm.releases)
            self._note("kafka", kafka)
        cluster = self._cluster(plan.cluster)
        duration_us = self._between("duration", swarm.duration_us, plan.duration_us, duration_text)
        settings = self._settings(kafka, cluster)
        producers, consumers = self._clients(plan, duration_us)
        applications = self._applications(plan.applications)
        faults = self._faults(duration_us)
        actions = self._actions(kafka, duration_us)
        # The core is drawn last. So a swarm with a core draws the same other values as without.
        core = self._core(plan.core, cluster)
        return Draw(
            plan=replace(
                self._with_open_fields_drawn(replace(plan, swarm=None)),
                kafka=kafka,
                cluster=_with_settings(cluster, settings),
                producers=tuple(replace(p, settings={**p.settings, **settings[PRODUCER]}) for p in producers),
                consumers=tuple(replace(c, settings={**c.settings, **settings[CONSUMER]}) for c in consumers),
                applications=tuple(_with_client_settings(each, settings) for each in applications),
                script=(*plan.script, *actions),
                faults=(*plan.faults, *faults),
                duration_us=duration_us,
                core=core,
            ),
            values=tuple(self._values),
            values_without_workload=tuple(self._values_without_workload),
        )

    # Single choices

    def _note(self, name: str, value: Any, *, of_workload: bool = False) -> None:
        pair = (name, str(value).lower() if isinstance(value, bool) else str(value))
        self._values.append(pair)
        if not of_workload:
            self._values_without_workload.append(pair)

    def _between(
        self,
        name: str,
        bounds: tuple[int, int] | None,
        default: int,
        text_of: Any = str,
        *,
        of_workload: bool = False,
    ) -> int:
        if bounds is None:
            return default
        value = _round(between(self._stream, *bounds), bounds)
        self._note(name, text_of(value), of_workload=of_workload)
        return value

    # Fields that are declared as open

    def _with_open_fields_drawn(self, spec: T, *, of_workload: bool = False) -> T:
        """Return a part of a plan in which each open field has a drawn value."""
        changes = self._drawn_fields(type(spec), spec, of_workload=of_workload)
        return with_fields(spec, changes)

    def _each_with_open_fields_drawn(
        self, specs: tuple[T, ...], *, of_workload: bool = False
    ) -> tuple[T, ...]:
        if not specs:
            return ()
        changes = self._drawn_fields(type(specs[0]), specs[0], of_workload=of_workload)
        return tuple(with_fields(spec, changes) for spec in specs)

    def _drawn_fields(self, declared: type[Any], spec: Any, *, of_workload: bool) -> dict[str, Any]:
        changes: dict[str, Any] = {}
        for item in _drawable_fields(declared):
            key = item.options.open
            if key in self._left_open:
                value = pick(self._stream, self._left_open.pop(key))
                self._note(key, field_text(item.kind, value) or value, of_workload=of_workload)
                changes |= item.named(value)
            elif is_dataclass(part := item.value_in(spec)):
                changes[item.attribute] = self._with_open_fields_drawn(part, of_workload=of_workload)
        return changes

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
        initial = [broker for broker in brokers if broker.joins_us == 0]
        partitions = self._between("partitions", swarm.partitions, 0)
        factor = self._between("replication_factor", swarm.replication_factor, 0)
        topics = tuple(
            replace(
                topic,
                partitions=partitions or topic.partitions,
                replication_factor=min(factor or topic.replication_factor, len(initial)),
                assignment=() if partitions or factor or swarm.brokers else topic.assignment,
            )
            for topic in cluster.topics
        )
        brokers, topics = (
            self._each_with_open_fields_drawn(brokers),
            self._each_with_open_fields_drawn(topics),
        )
        return replace(self._with_open_fields_drawn(cluster), brokers=brokers, topics=topics)

    def _settings(self, kafka: str, cluster: ClusterSpec) -> dict[str, dict[str, Value]]:
        """Return the drawn settings of each scope (broker, topic, producer, consumer)."""
        chosen = {name: pick(self._stream, values) for name, values in self._swarm.settings}
        fixed = {
            name: value
            for p in self._plan.producers
            for name, value in p.settings.items()
            if name not in chosen
        }
        chosen = catalogue.reconciled(
            kafka,
            {name: value for name, value in chosen.items() if _is_known(name, kafka)},
            behaviours_with(kafka, self._plan.behaviours),
            fixed=fixed,
            replicas=min(topic.replication_factor for topic in cluster.topics),
        )
        settings = {scope: catalogue.shared_with(scope, kafka, chosen) for scope in SCOPES}
        for name, value in chosen.items():
            is_of_cluster = name in settings[BROKER] or name in settings[TOPIC]
            self._note(name, value, of_workload=not is_of_cluster)
        return settings

    def _clients(
        self, plan: Plan, duration_us: int
    ) -> tuple[tuple[ProducerSpec, ...], tuple[ConsumerSpec, ...]]:
        swarm = self._swarm
        producers, consumers = plan.producers, plan.consumers
        if swarm.producers is not None:
            count = self._between("producers", swarm.producers, 0, of_workload=True)
            producer_template = producers[0] if producers else ProducerSpec(name="producer")
            producers = tuple(
                replace(producer_template, name=f"producer-{number}") for number in range(count)
            )
        draws_rate = "rate" in self._left_open
        producers = self._each_with_open_fields_drawn(producers, of_workload=True)
        if draws_rate:
            # If the rate of producers is drawn, they write to every partition.
            producers = tuple(replace(p, partitions=()) for p in producers)
        producers = tuple(replace(p, stop_us=duration_us) if p.interval_us else p for p in producers)
        if swarm.consumers is not None:
            count = self._between("consumers", swarm.consumers, 0, of_workload=True)
            consumer_template = consumers[0] if consumers else ConsumerSpec(name="consumer")
            consumers = tuple(
                replace(consumer_template, name=f"consumer-{number}") for number in range(count)
            )
        return producers, self._each_with_open_fields_drawn(consumers, of_workload=True)

    def _applications(self, declared: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the applications. If the number of a kind is open, draw it and copy the first."""
        bounds = dict(self._swarm.applications)
        applications: tuple[Any, ...] = ()
        for key, kind in application_kinds():
            clients = tuple(client for client in declared if type(client) is kind.spec)
            if key in bounds:
                count = self._between(key, bounds[key], 0, of_workload=True)
                clients = tuple(replace(clients[0], name=f"{kind.name}-{number}") for number in range(count))
            applications += self._each_with_open_fields_drawn(clients, of_workload=True)
        return applications

    def _faults(self, duration_us: int) -> tuple[Injection, ...]:
        """Draw which faults can strike, how often they strike, and how many strike together."""
        open_faults = self._swarm.faults
        if open_faults is None:
            return ()
        count = between(self._stream, *open_faults.in_play)
        in_play = _sample(self._stream, open_faults.kinds, count)
        mean_us = _round(between(self._stream, *open_faults.mean_us), open_faults.mean_us)
        together = between(self._stream, *open_faults.together)
        self._note("faults", ", ".join(sorted({fault.name for fault in in_play})) or "none")
        if not in_play:
            return ()
        self._note("one fault in", duration_text(mean_us))
        self._note("together", together)
        timing = Rate(mean_us=mean_us, start_us=0, stop_us=duration_us)
        return (Injection(timing=timing, faults=tuple(in_play), together=together),)

    def _actions(self, kafka: str, duration_us: int) -> tuple[Step, ...]:
        """Draw actions that exist in the release, and their times."""
        actions = self._swarm.actions
        available = () if actions is None else [kind for kind in actions.kinds if kind.exists_in(kafka)]
        if actions is None or not available:
            return ()
        count = between(self._stream, *actions.count)
        times = sorted(self._stream.below(duration_us) if duration_us else 0 for _ in range(count))
        chosen = [pick(self._stream, available) for _ in times]
        self._note("actions", ", ".join(sorted({action.name for action in chosen})) or "none")
        return tuple(
            Step(at_us=at_us, actions=(action,)) for at_us, action in zip(times, chosen, strict=True)
        )

    def _core(self, core: Core | None, cluster: ClusterSpec) -> Core | None:
        """Draw the order in which brokers are added to the core until it suffices."""
        if not self._swarm.core:
            broker_ids = {broker.id for broker in cluster.brokers}
            return core and replace(
                core, order=tuple(broker for broker in core.order if broker in broker_ids)
            )
        remaining = [broker.id for broker in cluster.brokers]
        order = tuple(remaining.pop(self._stream.below(len(remaining))) for _ in cluster.brokers)
        self._note("core", " ".join(map(str, order)))
        return replace(core or Core(), order=order)


@derived
def _drawable_fields(declared: type[Any]) -> tuple[DeclaredField, ...]:
    """Return the fields that a seed may draw, and those that may have such fields."""
    return tuple(
        item
        for item in fields_of(declared)
        if item.options.open or (is_dataclass(item.kind) and not item.many)
    )


def _is_known(name: str, kafka: str) -> bool:
    return any((scope, name) in catalogue.settings_in(kafka) for scope in SCOPES)


def _with_settings(cluster: ClusterSpec, settings: Mapping[str, Mapping[str, Value]]) -> ClusterSpec:
    return replace(
        cluster,
        settings={**cluster.settings, **settings[BROKER]},
        topics=tuple(
            replace(topic, settings={**topic.settings, **settings[TOPIC]}) for topic in cluster.topics
        ),
    )


def _with_client_settings(client: T, settings: Mapping[str, Mapping[str, Value]]) -> T:
    """Return an application with the drawn client settings; other clients stay as they are."""
    if not isinstance(client, ApplicationSpec):
        return client
    consumer, producer = (
        {**client.consumer, **settings[CONSUMER]},
        {**client.producer, **settings[PRODUCER]},
    )
    return replace(client, consumer=consumer, producer=producer)


def _sample(stream: Stream, options: Sequence[Fault], count: int) -> list[Fault]:
    """Return *count* different options, in the order of the list."""
    remaining = list(range(len(options)))
    positions = [remaining.pop(stream.below(len(remaining))) for _ in range(min(count, len(options)))]
    return [options[position] for position in sorted(positions)]


def _round(value: int, bounds: tuple[int, int]) -> int:
    """Round a value to two digits so that people can read it, if that stays within its bounds."""
    low, high = bounds
    step = 10 ** max(0, len(str(value)) - 2)
    rounded = round(value / step) * step
    return rounded if low <= rounded <= high else value
