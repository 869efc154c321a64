"""Writes a campaign with the brokers, racks, topics and settings of the user's cluster."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from harrow.campaigns.language.loader import load_text
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
    """The cluster is too large for a campaign; the message says why."""


def users_campaign(
    name: str, survey: Survey, settings: Settings, topics: Mapping[str, Mapping[str, str]]
) -> str:
    """Return the text of a campaign about a cluster with these *settings* and *topics*.

    The campaign omits settings that equal the default of the model's release. It has the workload
    of `harrow new`, and crashes and pauses of brokers. Raise `TooLargeError` if the cluster is too
    large, `UnwritablePlanError` if no campaign can express it, and `SurveyError` if a setting has
    an invalid value.
    """
    plan = load_text(new_campaign(name), name).plans[0]
    release = survey.release.model_release
    brokers = survey.brokers
    largest_id = max((node.id for node in brokers), default=0)
    if len(brokers) > BROKERS_MAX or largest_id > BROKER_ID_MAX:
        message = f"{len(brokers)} brokers with ids up to {largest_id}: a campaign has at most {BROKERS_MAX}"
        raise TooLargeError(f"{message}, with ids up to {BROKER_ID_MAX}")
    assignments = {
        topic: assignment
        for topic, assignment in survey.assignments.items()
        if not topic.startswith((PREFIX, "__"))
    }
    if (partitions := sum(map(len, assignments.values()))) > PARTITIONS_MAX:
        raise TooLargeError(f"{partitions} partitions: a campaign has at most {PARTITIONS_MAX}")
    by_broker = {
        broker: _model_settings(BROKER, release, actual_settings, with_zookeeper=survey.metadata == ZOOKEEPER)
        for broker, actual_settings in settings.items()
    }
    first, *others = by_broker.values()
    shared = {key: value for key, value in first.items() if all(other.get(key) == value for other in others)}
    cluster = ClusterSpec(
        brokers=tuple(
            BrokerSpec(
                id=node.id,
                rack=node.rack,
                settings={key: value for key, value in by_broker[node.id].items() if key not in shared},
            )
            for node in brokers
        ),
        topics=tuple(
            TopicSpec(
                name=topic,
                partitions=len(assignment),
                replication_factor=len(assignment[0]),
                assignment=assignment,
                settings=_model_settings(TOPIC, release, topics.get(topic, {}), with_zookeeper=False),
            )
            for topic, assignment in sorted(assignments.items())
        )
        or (TopicSpec(name="t", replication_factor=min(_REPLICAS, len(brokers))),),
        settings=shared,
    )
    (injection,) = plan.faults
    faults = (
        BrokerCrash(broker="any", restart_after=_SOME_SECONDS),
        BrokerPause(broker="any", duration=_SOME_SECONDS),
    )
    plan = replace(plan, kafka=release, cluster=cluster, faults=(replace(injection, faults=faults),))
    origin = f"A cluster of Kafka {survey.release.name} (metadata: {survey.metadata}), for the model."
    return campaign_text(plan, comments=[f"{origin} Adapt the workload, the faults and the expectations."])


def _model_settings(
    scope: str, release: str, settings: Mapping[str, str], *, with_zookeeper: bool
) -> dict[str, Value]:
    """Return the settings that the model supports and that differ from its defaults."""
    values: dict[str, Value] = {}
    for name, text in settings.items():
        setting = SETTINGS.get((scope, name))
        if setting is None or not setting.exists_in(release):
            continue
        if name.startswith("zookeeper.") and not with_zookeeper:
            continue
        value = _value(setting, text)
        # Keep a topic's settings even if they equal the default: somebody set them.
        if scope == TOPIC or value != setting.default(release):
            values[name] = value
    return values


def _value(setting: Setting, text: str) -> Value:
    if setting.kind == "bool":
        return text == "true"
    if setting.kind in ("choice", "ratio", "replicas", "text"):
        return text
    try:
        return int(text)
    except ValueError:
        raise SurveyError(
            f"the cluster has {setting.name}={quoted(text)}, which is not a whole number"
        ) from None


__all__ = ["TooLargeError", "UnwritablePlanError", "users_campaign"]
