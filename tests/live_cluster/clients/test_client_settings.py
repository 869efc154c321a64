"""Settings of the Java client, as librdkafka takes them."""

import pytest
from confluent_kafka import Consumer, Producer

from harrow.cluster_model.release import RELEASES
from harrow.live_cluster.clients.client_settings import consumer_settings, producer_settings


@pytest.mark.parametrize("release", RELEASES)
def test_the_library_takes_all_of_them(release: str) -> None:
    Producer(producer_settings(release, {}))
    Consumer({**consumer_settings(release, {}), "group.id": "g"})
    if release != "0.10.2":
        Producer(producer_settings(release, {"enable.idempotence": True}))


def test_what_a_campaign_leaves_open_is_as_in_the_java_client_of_its_release() -> None:
    old, new = producer_settings("2.0", {}), producer_settings("2.4", {"linger.ms": 7})
    assert (old["retries"], new["retries"]) == (0, 2**31 - 1)
    assert (old["acks"], new["acks"], old["linger.ms"], new["linger.ms"]) == ("1", "1", 0, 7)
    assert "delivery.timeout.ms" in new
    idempotent = producer_settings("2.0", {"enable.idempotence": True})
    assert (idempotent["acks"], idempotent["retries"]) == ("all", 2**31 - 1)
    assert producer_settings("2.0", {"enable.idempotence": True, "retries": 3})["retries"] == 3


def test_a_consumer_calls_some_by_other_names() -> None:
    settings = consumer_settings(
        "2.4", {"fetch.max.wait.ms": 9, "auto.offset.reset": "none", "max.poll.records": 3}
    )
    assert settings["fetch.wait.max.ms"] == 9
    assert settings["socket.timeout.ms"] == 30_000
    assert settings["auto.offset.reset"] == "error"
    assert "max.poll.records" not in settings
