"""Requests of brokers to controllers are counted in transit.

An ISR counts as written once the leader's request for it is answered.
"""

import pytest

from harrow.live_cluster.links.frame import RequestHeader
from harrow.live_cluster.links.proxy import ProxiedLink
from harrow.live_cluster.requests.control_requests import ControlRequests

ALTER_PARTITION, FETCH, HEARTBEAT = 56, 1, 63
LINK = ProxiedLink(1, "broker-0", "broker-0")


@pytest.fixture
def requests() -> ControlRequests:
    requests = ControlRequests()
    requests.request_passed(LINK, header(ALTER_PARTITION, 7), b"")
    return requests


def header(api_key: int, correlation_id: int) -> RequestHeader:
    return RequestHeader(api_key, 0, correlation_id, "0", 9)


def test_a_leader_waits_for_the_answer_of_its_request(requests: ControlRequests) -> None:
    assert requests.are_pending()
    requests.answer_passed(LINK, header(ALTER_PARTITION, 6), b"")
    assert requests.are_pending()
    requests.answer_passed(LINK, header(ALTER_PARTITION, 7), b"")
    assert not requests.are_pending()


def test_a_closed_connection_ends_all_waits(requests: ControlRequests) -> None:
    requests.link_ended(LINK._replace(number=2))
    assert requests.are_pending()
    requests.link_ended(LINK)
    assert not requests.are_pending()


def test_only_alter_partition_requests_write_an_isr() -> None:
    requests = ControlRequests()
    requests.request_passed(LINK, header(FETCH, 7), b"")
    assert not requests.are_pending()


def test_the_last_answered_heartbeat_is_known_by_number() -> None:
    requests = ControlRequests()
    requests.request_passed(LINK, header(HEARTBEAT, 1), b"")
    requests.request_passed(LINK, header(HEARTBEAT, 2), b"")
    assert (requests.heartbeats_sent, requests.heartbeat_answered) == (2, 0)
    requests.answer_passed(LINK, header(HEARTBEAT, 2), b"")
    requests.answer_passed(LINK, header(HEARTBEAT, 1), b"")
    assert requests.heartbeat_answered == 2
