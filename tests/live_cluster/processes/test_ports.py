"""A reserved port of a broker is free, and stays reserved until it is released."""

import socket

import pytest

from harrow.live_cluster.processes.ports import LOOPBACK, PortError, Ports


def test_ports_are_distinct_and_not_ephemeral() -> None:
    with Ports() as mine, Ports() as others:
        taken = [ports.reserve() for _ in range(20) for ports in (mine, others)]
    assert len(set(taken)) == len(taken)
    assert all(port < 32_768 for port in taken)


def test_ports_in_use_are_skipped() -> None:
    with Ports() as first:
        port = first.reserve()
    with socket.create_server((LOOPBACK, port)), Ports() as second:
        assert second.reserve() != port


def test_a_server_can_listen_on_a_reserved_port_repeatedly() -> None:
    with Ports() as ports:
        address = (LOOPBACK, ports.reserve())
        for _ in range(3):
            with socket.socket() as server:
                server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                server.bind(address)
                server.listen()
                with socket.create_connection(address), server.accept()[0]:
                    pass


def test_no_free_port_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harrow.live_cluster.processes.ports._HIGHEST", 21_000)
    with pytest.raises(PortError, match=r"no port from 21000 to 21000 is free on 127\.0\.0\.1"):
        Ports().reserve()
