"""Turns a plan into the data of a campaign file.

Most of the data follows from the fields that a plan declares. The functions of this module write
sections that have a shorter or safer notation.
"""

from typing import Any, Final

from harrow.campaigns.clients.clients import application_kinds
from harrow.campaigns.language.literals import field_text
from harrow.campaigns.language.open_choices import open_fields
from harrow.campaigns.language.plan import BlastRadius, Core, Expectation, Plan, Swarm
from harrow.campaigns.language.readers.judgement import rule_scope_of
from harrow.campaigns.language.schema import ALL_RULES, NO_INVARIANTS
from harrow.campaigns.language.writers.conditions import condition_map
from harrow.campaigns.language.writers.script import action_entry, injection_rows, listed, script_items
from harrow.campaigns.language.writers.section import section_map, value_of
from harrow.campaigns.language.writers.settings import (
    SharedSettings,
    is_application,
    setting_word,
    settings_map,
    without_names,
)
from harrow.campaigns.language.yaml_text import Items, Prose, Rows, Word
from harrow.cluster_model.fields import NumberRangeMarker
from harrow.cluster_model.invariants.catalogue import INVARIANTS
from harrow.cluster_model.release.profiles import SWITCHES
from harrow.cluster_model.topology import BrokerSpec, ClusterSpec, ProducerSpec, TopicSpec

_DEFAULT_PRODUCER: Final = {"name": "producer-0"}


def document(plan: Plan) -> Rows:
    """Return the sections of a campaign file, in the order in which a plan declares them."""
    shared = SharedSettings(plan)
    sections = section_map(
        plan,
        description=Prose(plan.description.strip()) or None,
        # The release is written even if it is the default, because a later version of harrow may
        # have another default.
        kafka=plan.kafka,
        behaviours=Rows((key, plan.behaviours[key]) for key in _switches(plan)),
        cluster=_cluster(plan.cluster, shared),
        producers=_producers(plan, shared),
        consumers=Items(_client(client, shared) for client in plan.consumers) or None,
        script=script_items(plan),
        faults=Items(injection_rows(injection, plan.duration_us) for injection in plan.faults),
        swarm=None if plan.swarm is None else _swarm(plan.swarm),
        blast_radius=_emptiable(plan.blast_radius),
        core=_emptiable(plan.core),
        invariants=plan.invariants or NO_INVARIANTS if plan.invariants != tuple(INVARIANTS) else None,
        demand=_demand(plan),
        found=None if plan.found is None else section_map(plan.found, seed=plan.found.seed),
        expect=_expect(plan.expect),
    )
    behaviours = sections.pop("behaviours")
    rows = Rows(name=plan.campaign)
    for key in ("title", "description", "kafka"):
        if key in sections:
            rows[key] = sections.pop(key)
    rows |= {"behaviours": behaviours, "settings": shared.rows(), **sections}
    for key, kind in application_kinds():
        applications = [
            _application(client, shared) for client in plan.applications if type(client) is kind.spec
        ]
        if applications:
            rows.setdefault("workload", {})[key] = Items(applications)
    if "workload" in rows:
        rows["workload"] = Rows(rows["workload"])
    return Rows((key, value) for key, value in rows.items() if value not in ("", {}, []))


def _switches(plan: Plan) -> list[str]:
    order = list(SWITCHES)
    return sorted(plan.behaviours, key=lambda key: (order.index(key) if key in order else len(order), key))


def _cluster(cluster: ClusterSpec, shared: SharedSettings) -> Rows:
    """Return the section. Brokers and topics are always written, because other keys name them."""
    numbered = tuple(BrokerSpec(id=number) for number in range(len(cluster.brokers)))
    brokers = Items(
        section_map(broker, settings=settings_map(broker.settings) or None) for broker in cluster.brokers
    )
    return Rows(
        section_map(
            cluster,
            brokers=len(brokers) if brokers and cluster.brokers == numbered else brokers,
            topics=Items(_topic(topic, shared) for topic in cluster.topics),
        )
    )


def _topic(topic: TopicSpec, shared: SharedSettings) -> dict[str, Any]:
    assigned = topic.assignment and topic.replication_factor == len(topic.assignment[0])
    return section_map(
        topic,
        partitions=None if topic.partitions == max(1, len(topic.assignment)) else topic.partitions,
        # The default depends on the number of brokers, so the value is written for readers.
        replication_factor=None if assigned else topic.replication_factor,
        settings=shared.own(topic.settings) or None,
    )


def _producers(plan: Plan, shared: SharedSettings) -> Items | None:
    """Return the producers; None if they are only the default producer."""
    producers = [_producer(producer, plan.duration_us, shared) for producer in plan.producers]
    has_workload = bool(plan.duration_us or plan.consumers or plan.applications)
    if not has_workload and producers == [_DEFAULT_PRODUCER]:
        return None
    return Items(producers) if producers or not has_workload else None


def _producer(producer: ProducerSpec, duration_us: int, shared: SharedSettings) -> dict[str, Any]:
    ends_with_workload = producer.interval_us is not None and producer.stop_us == duration_us
    return _client(producer, shared, without=("stop_us",) if ends_with_workload else ())


def _client(client: Any, shared: SharedSettings, without: tuple[str, ...] = ()) -> dict[str, Any]:
    return section_map(client, without=without, settings=shared.own(client.settings) or None)


def _application(client: Any, shared: SharedSettings) -> dict[str, Any]:
    if not is_application(client):
        return section_map(client)
    return section_map(
        client,
        consumer=shared.own(without_names(client.consumer, client)) or None,
        producer=shared.own(without_names(client.producer, client)) or None,
    )


def _emptiable(section: BlastRadius | Core | None) -> dict[str, Any] | Word | None:
    """Return the section. An empty section differs from none, so it is written as ``{}``."""
    return None if section is None else section_map(section) or Word("{}")


def _demand(plan: Plan) -> Any:
    if len(plan.demand) > 1 and plan.demand == tuple(sorted(rule_scope_of(plan).rules())):
        return ALL_RULES
    return plan.demand or None


def _expect(expect: Expectation) -> Rows:
    final = None if expect.final is None else condition_map(expect.final)
    return Rows(section_map(expect, rules=dict(expect.rules) or None, final=final))


def _swarm(swarm: Swarm) -> Rows:
    settings = Rows(
        (name, [setting_word(name, value) for value in values]) for name, values in swarm.settings
    )
    rows = Rows(section_map(swarm, without=("faults", "actions", "aims", "core"), settings=settings or None))
    open_fields_by_key = {choice.key: choice.field for choice in open_fields()}
    rows |= {
        key: [value_of(open_fields_by_key[key], value) for value in values] for key, values in swarm.values
    }
    rows |= {key: Word(field_text(NumberRangeMarker, bounds) or "") for key, bounds in swarm.applications}
    if swarm.faults is not None:
        rows["faults"] = Rows(section_map(swarm.faults, kinds=listed(map(action_entry, swarm.faults.kinds))))
    if swarm.actions is not None:
        rows["actions"] = Rows(
            section_map(swarm.actions, kinds=listed(map(action_entry, swarm.actions.kinds)))
        )
    if swarm.aims is not None:
        aims = Items(Rows({"probe": aim.probe, **_swarm(aim.instead)}) for aim in swarm.aims.kinds)
        rows["aims"] = Rows(section_map(swarm.aims, kinds=aims))
    if swarm.core:
        rows["core"] = True
    return rows
