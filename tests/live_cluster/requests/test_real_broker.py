"""The driver of a real broker, tested with a scripted connection."""

from typing import Any

import pytest

from harrow.cluster_model import protocol
from harrow.live_cluster.releases.kafka_release import KafkaRelease
from harrow.live_cluster.requests.brokers import real_broker
from harrow.live_cluster.requests.brokers.real_broker import RealBroker
from harrow.live_cluster.requests.control_requests import ControlRequests
from harrow.live_cluster.requests.conversation import Conversation
from harrow.live_cluster.wire.connection import ConnectionLostError


class _Connection:
    def speaks(self, request: Any, version: int) -> bool:
        return True


def test_a_connection_lost_while_waiting_for_a_topic_ends_the_sequence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lost(self: Conversation, request: Any, versions: Any = ()) -> Any:
        assert isinstance(request, protocol.MetadataRequest)
        raise ConnectionLostError("127.0.0.1:9092 does not answer Metadata")

    monkeypatch.setattr(Conversation, "exchange", lost)
    monkeypatch.setattr(real_broker, "create_topic", lambda *_: None)
    connection: Any = _Connection()
    broker = RealBroker(
        connection,
        None,
        topic="t1",
        follower=2,
        release=KafkaRelease("3.9.2"),
        is_running=lambda: True,
        control_requests=ControlRequests(),
    )
    with pytest.raises(ConnectionLostError):
        broker.create_topic((0,))
