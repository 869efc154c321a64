"""What a client's process makes of what it is told, whatever library it has: the library is made up here."""

import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from harrow.live_cluster.clients import worker
from harrow.live_cluster.clients.client_library import Ended, Poll

CALLED = {"a-b": "harrow-1f-a-b"}


class FakeLibrary:
    """Takes note of what it is asked, and knows the topics of the cluster alone."""

    def __init__(self, over: Callable[[], None]) -> None:
        self._over = over
        self.sent: list[tuple[str, int]] = []
        self.assigned: list[str] = []

    def make_producer(self, _: dict[str, Any]) -> Any:
        return SimpleNamespace(send=self.send, poll=lambda _: None)

    def make_consumer(self, _: dict[str, Any]) -> Any:
        return SimpleNamespace(assign=self.assigned.extend, poll=self.poll)

    def send(self, topic: str, partition: int, _value: bytes, _key: bytes | None, ended: Ended) -> None:
        self.sent.append((topic, partition))
        ended("ok", 3, None)
        self._over()

    def poll(self, _records_max: int, _timeout_s: float) -> Poll:
        self._over()
        name = self.assigned[0]
        return Poll({name: [(0, "v")]}, dict.fromkeys(self.assigned, 1), frozenset(self.assigned))


@contextmanager
def worked(
    monkeypatch: pytest.MonkeyPatch, *orders: dict[str, Any]
) -> Iterator[tuple[FakeLibrary, list[dict[str, Any]]]]:
    """Have a worker do as it is told until its library was used once; its reports are there afterwards."""
    reports: list[dict[str, Any]] = []
    over = threading.Event()
    library = FakeLibrary(over.set)
    monkeypatch.setattr(worker, "load_library", lambda _: library)
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(sys, "argv", ["worker", *map(str, server.getsockname()), "token"])

        def work() -> None:
            with pytest.raises(SystemExit):
                worker.main()

        thread = threading.Thread(target=work)
        thread.start()
        connection, _ = server.accept()
        with connection:
            connection.sendall("".join(json.dumps(order) + "\n" for order in orders).encode())
            assert over.wait(60)
            connection.shutdown(socket.SHUT_WR)
            told = b"".join(iter(lambda: connection.recv(65536), b""))
        thread.join()
    reports += map(json.loads, told.splitlines())
    yield library, [report for report in reports if "at" in report]


@pytest.mark.parametrize(("topics", "name"), [(CALLED, "harrow-1f-a-b"), ({}, "a-b")])
def test_a_producer_sends_to_a_topic_by_its_name_on_the_cluster(
    monkeypatch: pytest.MonkeyPatch, topics: dict[str, str], name: str
) -> None:
    client = {"role": "producer", "library": "any", "name": "p", "partitions": ["a-b-0"], "gaps_ns": []}
    more = {"start_ns": 0, "stop_ns": None, "settings": {}, "topics": topics}
    with worked(monkeypatch, {**client, **more}, {"value": "v", "partition": "a-b-2"}) as (library, reports):
        assert library.sent == [(name, 2)]
        assert [(report["type"], report["partition"]) for report in reports] == [
            ("invoke", "a-b-2"),
            ("ok", "a-b-2"),
        ]


@pytest.mark.parametrize(("topics", "name"), [(CALLED, "harrow-1f-a-b"), ({}, "a-b")])
def test_a_consumer_reads_there_and_tells_of_the_campaigns_topic(
    monkeypatch: pytest.MonkeyPatch, topics: dict[str, str], name: str
) -> None:
    client = {"role": "consumer", "library": "any", "name": "c", "partitions": ["a-b-0", "a-b-1"]}
    more = {"start_ns": 0, "poll_interval_ns": 0, "max_poll_records": 5, "settings": {}, "topics": topics}
    with worked(monkeypatch, {**client, **more}) as (library, reports):
        assert library.assigned == [f"{name}-0", f"{name}-1"]
        first = reports[0]
        assert first["records"] == {"a-b-0": [[0, "v"]]}
        assert (first["positions"], first["at_end"]) == ({"a-b-0": 1, "a-b-1": 1}, True)
