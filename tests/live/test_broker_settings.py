"""Real brokers change settings of brokers as a served cluster does."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from harrow.live_cluster.local.started_brokers import StartedBrokers
from tests.live.conftest import start_cluster
from tests.live_cluster.serve.test_broker_settings import change_and_describe

CLUSTER = """
name: settings
cluster: {brokers: 1, topics: [{name: t}]}
workload: {duration: 1s}
"""


def test_real_brokers_change_describe_and_refuse_settings_as_served_ones_do(
    brokers: StartedBrokers, tmp_path: Path
) -> None:
    if brokers.release.model_release != "4.3":
        pytest.skip("the words and the defaults are those of 4.3")
    with ExitStack() as clusters:
        started = start_cluster(clusters, tmp_path, brokers.release.name, brokers.metadata, CLUSTER)
        with started.connect(0) as connection:
            change_and_describe(connection)
