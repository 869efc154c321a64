"""The ports of served brokers wait for clients without work of their own."""

import socket

import pytest
from kafka.protocol.metadata import MetadataRequest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.targets.model_target import ModelTarget
from harrow.cluster_model.sim.choices import Choices
from harrow.live_cluster.serve.client_connection import ClientConnection
from harrow.live_cluster.serve.served_brokers import ServedBrokers
from harrow.live_cluster.serve.served_environment import ServedEnvironment

CAMPAIGN = """
name: served
kafka: "4.3"
cluster: {brokers: 1, topics: [{name: t}]}
workload: {duration: 1s}
"""
COUNT = 3_000


def test_a_client_that_gets_no_answers_is_neither_read_for_ever_nor_written_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    writes: list[ClientConnection] = []
    monkeypatch.setattr(ClientConnection, "write", writes.append)
    (plan,) = load_text(CAMPAIGN, "c.yaml").plans
    target = ModelTarget(plan, Choices.from_seed(0), ())
    target.start()
    environment = ServedEnvironment(plan, target.cluster, target.clients, target.observer, None)
    served = ServedBrokers(target.cluster, environment, "127.0.0.1", [0], 1.0)
    served.begin()
    request = MetadataRequest[9](topics=None, allow_auto_topic_creation=False)
    request.with_header(1, "client")
    with socket.create_connection(served.addresses[0]) as client:
        client.sendall(request.encode(header=True, framed=True) * COUNT)
        # The time of the model stands still, so that the broker answers nothing.
        for _ in range(20):
            served.serve(target.now_us)
        (connection,) = served._connections
        assert not connection.may_read
        served.serve(served.wall_us + 1_000)
        assert writes == []
    served.close()
