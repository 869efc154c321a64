"""A campaign about a user's cluster, for the model: its brokers, racks, topics, replicas and settings."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.plan_file import UnwritablePlanError, campaign_text
from harrow.campaigns.language.spelling import quoted
from harrow.campaigns.language.template import new_campaign
from harrow.cluster_model.settings import BROKER, SETTINGS, TOPIC, Setting, Value
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.cluster_model.topology import (
    BROKER_ID_MAX,
    BROKERS_MAX,
    PARTITIONS_MAX,
    BrokerSpec,
    ClusterSpec,
    TopicSpec,
)
from harrow.faults.brokers import BrokerCrash, BrokerPause
from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.releases.kafka_release import ZOOKEEPER
from harrow.live_cluster.users.user_cluster import PREFIX
from harrow.live_cluster.users.users_reach import Settings
from harrow.live_cluster.wire.survey import Survey, SurveyError

_SOME_SECONDS: Final = (US_PER_SECOND, 10 * US_PER_SECOND)
_REPLICAS: Final = 3


class TooLargeError(LiveError):
    """The model has no room for the cluster; the message says for what of it."""


def users_campaign(
    name: str, seen: Survey, settings: Settings, topics: Mapping[str, Mapping[str, str]]
) -> str:
    """Return the text of a campaign about a cluster, with the *settings* of its brokers and those of its *topics*.

    Settings that are as by default in the release of the model are left out. Workload and faults are those of `harrow new`.

    Raises:
        TooLargeError: the cluster is larger than one that a campaign can have.
        UnwritablePlanError: the cluster has what no campaign can say.
        SurveyError: it has a setting whose value is not of its kind.

    """
    plan = load_text(new_campaign(name), name).plans[0]
    release = seen.release.model_release
    largest = max((each.id for each in seen.brokers), default=0)
    if len(seen.brokers) > BROKERS_MAX or largest > BROKER_ID_MAX:
        message = (
            f"{len(seen.brokers)} brokers with ids up to {largest}: a campaign has at most {BROKERS_MAX}"
        )
        raise TooLargeError(f"{message}, with ids up to {BROKER_ID_MAX}")
    assignments = {
        topic: assignment
        for topic, assignment in seen.assignments.items()
        if not topic.startswith((PREFIX, "__"))
    }
    if (partitions := sum(map(len, assignments.values()))) > PARTITIONS_MAX:
        raise TooLargeError(f"{partitions} partitions: a campaign has at most {PARTITIONS_MAX}")
    own = {
        broker: _known(BROKER, release, given, with_zookeeper=seen.metadata == ZOOKEEPER)
        for broker, given in settings.items()
    }
    first, *others = own.values()
    shared = {key: value for key, value in first.items() if all(each.get(key) == value for each in others)}
    cluster = ClusterSpec(
        brokers=tuple(
            BrokerSpec(
                id=each.id,
                rack=each.rack,
                settings={key: value for key, value in own[each.id].items() if key not in shared},
            )
            for each in seen.brokers
        ),
        topics=tuple(
            TopicSpec(
                name=topic,
                partitions=len(assignment),
                replication_factor=len(assignment[0]),
                assignment=assignment,
                settings=_known(TOPIC, release, topics.get(topic, {}), with_zookeeper=False),
            )
            for topic, assignment in sorted(assignments.items())
        )
        or (TopicSpec(name="t", replication_factor=min(_REPLICAS, len(seen.brokers))),),
        settings=shared,
    )
    return campaign_text(_about(plan, release, cluster), comments=_comments(seen))


def _about(plan: Plan, release: str, cluster: ClusterSpec) -> Plan:
    (injection,) = plan.faults
    faults = (
        BrokerCrash(broker="any", restart_after=_SOME_SECONDS),
        BrokerPause(broker="any", duration=_SOME_SECONDS),
    )
    return replace(plan, kafka=release, cluster=cluster, faults=(replace(injection, faults=faults),))


def _comments(seen: Survey) -> list[str]:
    found = f"A cluster of Kafka {seen.release.name} (metadata: {seen.metadata}), as it was found, for the model to run."
    return [f"{found} Workload, faults and expectations are to start from."]


def _known(scope: str, release: str, given: Mapping[str, str], *, with_zookeeper: bool) -> dict[str, Value]:
    """Return what the model knows of settings and does not have as by default."""
    found: dict[str, Value] = {}
    for name, text in given.items():
        setting = SETTINGS.get((scope, name))
        if setting is None or not setting.exists_in(release):
            continue
        if name.startswith("zookeeper.") and not with_zookeeper:
            continue
        value = _value(setting, text)
        # Of a topic what was set was meant, also where it is the default.
        if scope == TOPIC or value != setting.default(release):
            found[name] = value
    return found


def _value(setting: Setting, text: str) -> Value:
    if setting.kind == "bool":
        return text == "true"
    if setting.kind in ("choice", "ratio", "replicas", "text"):
        return text
    try:
        return int(text)
    except ValueError:
        raise SurveyError(
            f"the cluster has {setting.name}={quoted(text)}, which is no whole number"
        ) from None


__all__ = ["TooLargeError", "UnwritablePlanError", "users_campaign"]
