"""The header of a request identifies its sender and its API."""

import struct
from typing import Any

import pytest
from kafka.protocol.consumer import FetchRequest
from kafka.protocol.metadata import MetadataRequest

from harrow.live_cluster.links.frame import (
    CLIENTS,
    CONTROL,
    REPLICATION,
    RequestHeader,
    client_id_of,
    process_of,
    request_header,
)

LEADER_AND_ISR, VOTE, OFFSETS_FOR_LEADER_EPOCH, METADATA, API_VERSIONS = 4, 52, 23, 3, 18


def encode(request: Any, client_id: str | None) -> bytes:
    request.with_header(7, client_id)
    return bytes(request.encode(header=True, framed=False))


def frame_of(client_id: str, api_key: int, body: bytes = b"") -> bytes:
    name = client_id.encode()
    return struct.pack(">hhih", api_key, 0, 7, len(name)) + name + body


def sender_of(frame: bytes) -> tuple[str, str]:
    return process_of(request_header(frame), frame)


@pytest.mark.parametrize(("client_id", "name"), [("app", "app"), ("", ""), ("é", "é"), (None, "")])
def test_a_header_has_client_id_and_size(client_id: str | None, name: str) -> None:
    frame = encode(MetadataRequest[1](topics=[]), client_id)
    header = request_header(frame)
    assert header == RequestHeader(METADATA, 1, 7, name, 10 + len(name.encode()))
    assert frame[header.size :] == bytes(4)  # An empty list of topics.


@pytest.mark.parametrize("length", range(10))
def test_a_short_frame_is_not_a_request(length: int) -> None:
    with pytest.raises(ValueError, match="the frame has no header of a request"):
        request_header(frame_of("", METADATA)[:length])


def test_a_client_id_that_is_not_utf8_is_accepted() -> None:
    assert request_header(struct.pack(">hhih", METADATA, 0, 7, 1) + b"\xff").client_id == "\ufffd"


@pytest.mark.parametrize(
    ("api_key", "name"),
    [(0, "Produce"), (1, "Fetch"), (LEADER_AND_ISR, "LeaderAndIsr"), (VOTE, "Vote"), (API_VERSIONS, "18")],
)
def test_an_api_has_the_name_that_campaigns_use(api_key: int, name: str) -> None:
    assert request_header(frame_of("", api_key)).api == name


@pytest.mark.parametrize(
    ("client_id", "api_key", "sender"),
    [
        ("broker-1-fetcher-0", OFFSETS_FOR_LEADER_EPOCH, ("broker-1", REPLICATION)),
        ("broker-12-fetcher-34", METADATA, ("broker-12", REPLICATION)),
        ("3", LEADER_AND_ISR, ("broker-3", CONTROL)),
        ("broker-3", METADATA, ("broker-3", CONTROL)),
        ("raft-client-3", VOTE, ("broker-3", CONTROL)),
        ("broker-2-txn-marker-sender", METADATA, ("broker-2", CONTROL)),
        ("broker-1-fetcher", METADATA, ("broker-1-fetcher", CLIENTS)),
        ("my-broker-1-fetcher-0", METADATA, ("my-broker-1-fetcher-0", CLIENTS)),
        ("app-3", METADATA, ("app-3", CLIENTS)),
        ("3-app", METADATA, ("3-app", CLIENTS)),
        ("", METADATA, ("", CLIENTS)),
    ],
)
def test_a_client_id_identifies_the_process(client_id: str, api_key: int, sender: tuple[str, str]) -> None:
    assert sender_of(frame_of(client_id, api_key)) == sender


@pytest.mark.parametrize("client", ["p1", "1", "broker-1", "broker-1-fetcher-0", "harrow.x"])
def test_a_client_is_never_mistaken_for_a_broker(client: str) -> None:
    assert sender_of(frame_of(client_id_of(client), METADATA)) == (client, CLIENTS)
    fetch = FetchRequest[3](replica_id=2, topics=[])
    assert sender_of(encode(fetch, client_id_of(client))) == (client, CLIENTS)


@pytest.mark.parametrize("version", [0, 3, 11])
@pytest.mark.parametrize("client_id", ["console-consumer", "5", None])
def test_an_old_fetch_identifies_the_replica(version: int, client_id: str | None) -> None:
    fetch = FetchRequest[version](replica_id=2, topics=[])
    assert sender_of(encode(fetch, client_id)) == ("broker-2", REPLICATION)
    assert sender_of(encode(FetchRequest[version](replica_id=0, topics=[]), client_id))[0] == "broker-0"


def test_an_old_consumer_fetch_identifies_no_replica() -> None:
    fetch = FetchRequest[3](replica_id=-1, topics=[])
    assert sender_of(encode(fetch, "app")) == ("app", CLIENTS)


@pytest.mark.parametrize("version", [12, 15])
def test_a_flexible_fetch_header_identifies_no_replica(version: int) -> None:
    """Otherwise the header's tags and the start of the id would be decoded as replica 0."""
    fetch = FetchRequest[version](replica_id=2, topics=[])
    assert sender_of(encode(fetch, "app")) == ("app", CLIENTS)
