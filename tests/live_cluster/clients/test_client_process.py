"""A client's process starts, reports, and ends with harrow."""

import socket
import time
from pathlib import Path
from typing import Any

import pytest

from harrow.live_cluster.clients import worker
from harrow.live_cluster.clients.client_process import ClientError, ClientProcess
from harrow.live_cluster.processes.child_processes import ChildProcesses
from tests.patience import PATIENCE_S

NO_BROKER = "127.0.0.1:1"


def producer(**more: Any) -> dict[str, Any]:
    settings = {"bootstrap.servers": NO_BROKER, "delivery.timeout.ms": 300, "log_level": 0}
    client = {
        "role": "producer",
        "library": "confluent-kafka",
        "name": "p",
        "partitions": ["t-0", "t-1"],
        "gaps_ns": [],
        "start_ns": 0,
    }
    return {**client, "stop_ns": None, "settings": settings, **more}


def application() -> dict[str, Any]:
    """Return the client of an application that is held at its first poll."""
    library = {"bootstrap.servers": NO_BROKER, "log_level": 0}
    more = {
        "role": "application",
        "delivery": "at_least_once",
        "name": "app",
        "source": "t",
        "work_ns": 0,
        "slow_ns": 0,
        "workers": 1,
        "takes_ns": [0],
        "rewinds": True,
        "group_metadata": True,
        "hold": ["poll", 0],
        "begins_at_zero": True,
        "max_poll_records": 5,
        "consumer": {**library, "group.id": "g"},
    }
    return {**producer(), **more, "producer": library}


def wait_for(reports: list[dict[str, Any]], count: int) -> None:
    until = time.monotonic() + PATIENCE_S
    while len(reports) < count:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_each_send_is_reported_with_its_outcome(tmp_path: Path) -> None:
    reports: list[dict[str, Any]] = []
    with ChildProcesses() as children:
        client = ClientProcess(children, tmp_path / "p", producer(), reports.append)
        client.begin(0)
        for value, partition in (("a", None), ("b", None), ("c", "t-0"), ("x" * 2_000_000, "t-1")):
            client.order(value=value, partition=partition)
        wait_for(reports, 8)
        client.kill()
    invoked = [(r["value"][:3], r["partition"]) for r in reports if r["type"] == "invoke"]
    assert invoked == [("a", "t-0"), ("b", "t-1"), ("c", "t-0"), ("xxx", "t-1")]
    ended = {r["value"][:3]: (r["type"], r["error"]) for r in reports if r["type"] != "invoke"}
    # No broker exists, but the outcome of an attempted send is unknown.
    assert ended == {
        **dict.fromkeys("abc", ("info", "_MSG_TIMED_OUT")),
        "xxx": ("fail", "MSG_SIZE_TOO_LARGE"),
    }
    assert [r["at"] for r in reports] == sorted(r["at"] for r in reports)


def test_orders_and_answers_use_tcp_nodelay(tmp_path: Path) -> None:
    with ChildProcesses() as children:
        client = ClientProcess(children, tmp_path / "p", producer(), print)
        assert client._connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
        client.kill()


def test_worker_generates_records(tmp_path: Path) -> None:
    reports: list[dict[str, Any]] = []
    times = {"gaps_ns": [10_000_000], "start_ns": time.monotonic_ns(), "stop_ns": None}
    with ChildProcesses() as children:
        client = ClientProcess(children, tmp_path / "p", producer(**times), reports.append)
        client.begin(0)
        wait_for(reports, 10)
        client.kill()
    values = [r["value"] for r in reports if r["type"] == "invoke"]
    assert len(values) >= 5
    assert values == [f"p:{number}" for number in range(len(values))]


def test_failed_start_names_its_cause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("raise SystemExit('no such library')")
    monkeypatch.setattr(worker, "__file__", str(broken))
    with (
        ChildProcesses() as children,
        pytest.raises(ClientError, match="a client did not start: no such library"),
    ):
        ClientProcess(children, tmp_path / "p", producer(), print)


def test_connection_without_the_token_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other.py"
    other.write_text(
        "import socket, sys, time\n"
        "with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as c: c.sendall(b'{}\\n'); time.sleep(0.1)\n"
        "sys.exit('refused')"
    )
    monkeypatch.setattr(worker, "__file__", str(other))
    with ChildProcesses() as children, pytest.raises(ClientError, match="refused"):
        ClientProcess(children, tmp_path / "p", producer(), print)


def test_questions_of_a_worker_are_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asking = tmp_path / "asking.py"
    asking.write_text(
        "import json, socket, sys\n"
        "from harrow.live_cluster.clients.channel import AskingChannel, Channel\n"
        "with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as c:\n"
        "    plain = Channel(c)\n"
        "    plain.report(token=sys.argv[3])\n"
        "    while not plain.orders(None): pass\n"
        "    channel = AskingChannel(plain)\n"
        "    channel.report(ready=True)\n"
        "    channel.report(heard=[channel.ask(next=True), channel.ask(next=True)])\n"
        "    orders = []\n"
        "    while not orders: orders = channel.orders(None)\n"
        "    channel.report(orders=orders, later=channel.orders(0))\n"
        "    channel.orders(None)\n"
    )
    monkeypatch.setattr(worker, "__file__", str(asking))
    reports: list[dict[str, Any]] = []

    def take(report: dict[str, Any]) -> dict[str, Any] | None:
        reports.append(report)
        return {"answer": 10 * len(reports)} if "next" in report else None

    with ChildProcesses() as children:
        client = ClientProcess(children, tmp_path / "p", producer(), take)
        wait_for(reports, 3)
        assert reports[2] == {"heard": [10, 20]}
        client.order(go=True)
        wait_for(reports, 4)
        assert reports[3] == {"orders": [{"go": True}], "later": []}
        # The process ends with harrow even while it waits for an order.
        client._connection.shutdown(socket.SHUT_RDWR)
        assert client.process.wait(PATIENCE_S)
        client.kill()


def test_reports_sent_with_the_ready_message_arrive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    eager = tmp_path / "eager.py"
    eager.write_text(
        "import json, socket, sys\n"
        "with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as c:\n"
        "    c.sendall(json.dumps({'token': sys.argv[3]}).encode() + b'\\n')\n"
        "    c.recv(65536)\n"
        '    c.sendall(b\'{"ready": true}\\n{"at": 1}\\n{"at": 2}\\n\')\n'
        "    c.recv(65536)\n"
    )
    monkeypatch.setattr(worker, "__file__", str(eager))
    reports: list[dict[str, Any]] = []
    with ChildProcesses() as children:
        client = ClientProcess(children, tmp_path / "p", producer(), reports.append)
        wait_for(reports, 2)
        client.kill()
    assert reports == [{"at": 1}, {"at": 2}]


def test_application_is_held_and_closes(tmp_path: Path) -> None:
    reports: list[dict[str, Any]] = []
    with ChildProcesses() as children:
        client = ClientProcess(children, tmp_path / "app", application(), reports.append)
        client.begin(0)
        wait_for(reports, 4)
        assert [next(key for key in r if key not in ("at", "of")) for r in reports] == [
            *("subscribed", "step", "passed", "held")
        ]
        client.pause()
        client.order(go=True)
        client.order(close=True)
        time.sleep(0.2)
        assert len(reports) == 4
        client.resume()
        wait_for(reports, 5)
        while "ended" not in reports[-1]:
            wait_for(reports, len(reports) + 1)
        assert reports[-1]["ended"] is None
        client.kill()
