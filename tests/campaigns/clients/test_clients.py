"""The clients of a run start one after the other."""

import pytest

from harrow.campaigns.clients import clients
from harrow.campaigns.clients.clients import MODEL, Clients
from harrow.cluster_model.topology import ProducerSpec


class FakeClient:
    """A client that records its start."""

    def __init__(self, name: str, started: list[str]) -> None:
        self._name = name
        self._started = started

    def start(self) -> None:
        self._started.append(self._name)


def test_the_run_begins_when_all_clients_have_started(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    monkeypatch.setattr(clients, "make_client", lambda spec, *_: FakeClient(spec.name, started))
    specs = [ProducerSpec(name="a"), ProducerSpec(name="b")]
    Clients(specs, MODEL, None, on_started=lambda: started.append("the run")).start()
    assert started == ["a", "b", "the run"]
