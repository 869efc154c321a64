"""A served cluster describes settings as brokers of its release do."""

from contextlib import ExitStack
from pathlib import Path

import pytest
from kafka.protocol.admin import DescribeConfigsRequest

from harrow.campaigns.language.loader import load_text
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.sim.choices import Choices
from harrow.live_cluster.local.started_brokers import StartedBrokers
from harrow.live_cluster.serve.answers.described_settings import STATIC, DescribedSetting, DescribedSettings
from harrow.live_cluster.wire.codec import Address
from harrow.live_cluster.wire.connection import BrokerConnection
from tests.live.conftest import start_cluster

CAMPAIGN = """
name: described
kafka: "{}"
cluster:
  brokers: 1
  metadata: {}
  topics: [{{name: t, settings: {{retention.ms: 700000, min.insync.replicas: 1}}}}]
settings: {{min.insync.replicas: 1, log.flush.interval.messages: 5, log.roll.ms: 100000}}
"""
TOPIC, BROKER = 2, 4
WITH_SYNONYMS, WITH_TYPES = 1, 3
"""The first versions of DescribeConfigs with synonyms, and with the types of settings."""


def reported(connection: BrokerConnection, kind: int, name: str) -> dict[str, DescribedSetting]:
    """Return the settings that a broker describes. It describes no types before 2.6."""
    versions = (version for version in (4, 2, 1) if connection.speaks(DescribeConfigsRequest, version))
    resource = DescribeConfigsRequest.DescribeConfigsResource
    request = DescribeConfigsRequest[next(versions)](
        resources=[resource(resource_type=kind, resource_name=name, configuration_keys=None)],
        include_synonyms=True,
    )
    (answer,) = connection.ask(request).results
    return {
        each.name: DescribedSetting(
            *(each.name, each.config_type, each.value, each.read_only),
            tuple((synonym.name, synonym.value, synonym.source) for synonym in each.synonyms),
        )
        for each in answer.configs
    }


def without_static(setting: DescribedSetting) -> DescribedSetting:
    """Return a setting as it would be if the broker's file did not set it."""
    synonyms = tuple(each for each in setting.synonyms if each[2] != STATIC)
    return setting._replace(value=synonyms[0][1] if synonyms else None, synonyms=synonyms)


def test_a_setting_has_the_value_the_type_and_the_synonyms_of_a_broker(
    brokers: StartedBrokers, tmp_path: Path
) -> None:
    release = brokers.release.model_release
    text = CAMPAIGN.format(release, brokers.metadata)
    (plan,) = load_text(text, "described.yaml").plans
    cluster = Cluster(plan.cluster, release, RELEASES[release].behaviours, Choices.from_seed(0))
    described = DescribedSettings(cluster, 0, Address("127.0.0.1", 1))
    with ExitStack() as clusters:
        started = start_cluster(clusters, tmp_path, brokers.release.name, brokers.metadata, text)
        with started.connect(0) as connection:
            if not connection.speaks(DescribeConfigsRequest, WITH_SYNONYMS):
                pytest.skip("brokers describe no synonyms before 1.1")
            of_topic, of_broker = reported(connection, TOPIC, "t"), reported(connection, BROKER, "0")
            has_types = connection.speaks(DescribeConfigsRequest, WITH_TYPES)
    own = {*plan.cluster.settings}
    for setting in described.of_topic(plan.cluster.topics[0].settings):
        assert of_topic[setting.name] == (setting if has_types else setting._replace(type=0))
    for setting in described.of_broker():
        # harrow sets some more settings of the brokers that it starts.
        expected = setting if has_types else setting._replace(type=0)
        found = of_broker[setting.name]
        if setting.name in own or found.source != STATIC:
            assert found == expected
        else:
            assert without_static(found) == without_static(expected)
