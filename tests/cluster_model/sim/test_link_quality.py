"""Faults degrade links: latency, jitter, bandwidth, slow receivers. Interfaces limit all links."""

from dataclasses import dataclass
from typing import ClassVar

from harrow.cluster_model.sim.link_quality import (
    MESSAGE_BYTES,
    LinkQualities,
    LinkQuality,
    NetworkInterfaces,
)
from tests.cluster_model.sim.test_network import LATENCY_US, Body, NetworkHarness
from tests.recorded_choices import RecordedStream

LINK = ("a", "b")


@dataclass(frozen=True)
class Batch:
    """A message with records."""

    api: ClassVar[str] = "Produce"
    record_bytes: int


def times(net: NetworkHarness) -> list[int]:
    return [at_us for at_us, _ in net.server.received]


def test_latency_adds_up_and_does_not_separate_messages_sent_together() -> None:
    net = NetworkHarness()
    connection = net.connect()
    net.network.degrade("client", "server", LinkQuality(latency_us=5_000))
    net.ask(connection, "a", "b")
    net.reply(connection, "x")
    net.run()
    assert net.server.received == [(5_100, Body("a")), (5_101, Body("b"))]
    assert net.client.received == [(LATENCY_US, Body("x"))]  # The other direction is as it was.


def test_simultaneous_degradations_add_up_and_end_one_by_one() -> None:
    net = NetworkHarness()
    connection = net.connect()
    slow, slower = LinkQuality(latency_us=1_000), LinkQuality(latency_us=2_000)
    net.network.degrade("client", "server", slow)
    net.network.degrade("client", "server", slower)
    net.ask(connection, "a")
    net.run()
    net.network.recover("client", "server", slow)
    net.ask(connection, "b")
    net.run()
    net.network.recover("client", "server", slower)
    net.ask(connection, "c")
    net.run()
    assert times(net) == [3_100, 10_000 + 2_100, 20_000 + 100]
    assert not net.network.disturbs("client")


def test_jitter_is_drawn_for_each_message_and_does_not_reorder() -> None:
    qualities = LinkQualities()
    qualities.add(LINK, LinkQuality(latency_us=10, jitter_us=100))
    assert [qualities.delay_us(LINK, 0, 1, RecordedStream([n])) for n in (0, 100)] == [10, 110]
    net = NetworkHarness(seed=3)
    connection = net.connect()
    net.network.degrade("client", "server", LinkQuality(jitter_us=5_000))
    net.ask(connection, *map(str, range(30)))
    net.run()
    assert net.server_received() == [str(number) for number in range(30)]


def test_bandwidth_is_shared_by_all_connections_of_a_link() -> None:
    net = NetworkHarness()
    one, other = net.connect(), net.connect()
    net.network.degrade("client", "server", LinkQuality(bytes_per_second=1_000_000))
    for connection in (one, other):
        net.network.send_request(connection, 0, Batch(1_000 - MESSAGE_BYTES))
    net.run()
    assert times(net) == [LATENCY_US + 1_000, LATENCY_US + 2_000]


def test_an_interface_sends_to_all_receivers_one_message_after_the_other() -> None:
    interfaces = NetworkInterfaces(1_000_000)
    arrivals = [interfaces.arrival_us(("a", receiver), 0, 100, 1_000) for receiver in ("b", "c", "d")]
    assert arrivals == [1_100, 2_100, 3_100]
    assert interfaces.arrival_us(("a", "b"), 50_000, 50_100, 1_000) == 51_100


def test_an_interface_receives_from_all_senders_one_message_after_the_other() -> None:
    interfaces = NetworkInterfaces(1_000_000)
    arrivals = [interfaces.arrival_us((sender, "d"), 0, 100, 1_000) for sender in ("a", "b", "c")]
    assert arrivals == [1_100, 2_100, 3_100]


def test_an_interface_sends_and_receives_at_the_same_time() -> None:
    interfaces = NetworkInterfaces(1_000_000)
    assert [interfaces.arrival_us(link, 0, 100, 1_000) for link in (LINK, LINK[::-1])] == [1_100, 1_100]


def test_only_messages_with_records_take_time_on_an_interface() -> None:
    net = NetworkHarness(bytes_per_second=1_000_000)
    connection = net.connect()
    net.network.send_request(connection, 0, Body("a"))
    net.network.send_request(connection, 0, Batch(1_000 - MESSAGE_BYTES))
    net.network.send_request(connection, 0, Body("b"))
    net.run()
    assert times(net) == [LATENCY_US, LATENCY_US + 1_000, LATENCY_US + 1_001]


def test_a_slow_receiver_handles_a_connections_requests_one_at_a_time() -> None:
    net = NetworkHarness()
    one, other = net.connect(), net.connect()
    net.network.degrade("client", "server", LinkQuality(request_us=1_000))
    net.ask(one, "a", "b")
    net.ask(other, "c")
    net.reply(one, "x")
    net.run()
    assert dict(zip(net.server_received(), times(net), strict=True)) == {"a": 1_100, "c": 1_100, "b": 2_101}
    assert net.client.received == [(LATENCY_US, Body("x"))]


def test_a_reset_breaks_only_the_connections_between_two_processes() -> None:
    net = NetworkHarness()
    connection = net.connect()
    net.network.reset("client", "somebody")
    net.ask(connection, "a")
    net.network.reset("server", "client")
    net.ask(connection, "b")
    net.run()
    assert net.server_received()[0] == "a"
    assert not connection.is_open
    assert net.client.lost == net.server.closed == [connection.id]


def test_healing_ends_every_degradation_and_healing_a_core_ends_those_within_it() -> None:
    qualities = LinkQualities()
    for link in (LINK, ("b", "c")):
        qualities.add(link, LinkQuality(bytes_per_second=1))
    qualities.keep_links_of(frozenset({"c"}))
    assert LINK not in qualities.by_link
    assert ("b", "c") in qualities.by_link
    net = NetworkHarness()
    net.network.degrade("client", "server", LinkQuality(latency_us=1))
    net.network.restore_all()
    assert not net.network.disturbs("client")
