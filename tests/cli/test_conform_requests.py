"""`harrow conform --requests` with a model broker as the real one: its output and exit codes."""

import json
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import pytest

from harrow.cli import exit_code
from harrow.cli.commands import conform_requests
from harrow.cli.requests.real_brokers import ConformRequest
from harrow.cluster_model.release.profiles import behaviours_in
from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.local.started_brokers import StartedBrokers
from harrow.live_cluster.releases.kafka_release import KafkaRelease
from harrow.live_cluster.requests.answers import Answer
from harrow.live_cluster.requests.brokers import real_broker
from harrow.live_cluster.requests.brokers.broker_driver import SingleRequest
from harrow.live_cluster.requests.brokers.model_broker import ModelBroker
from harrow.live_cluster.requests.brokers.real_broker import RealBrokers
from harrow.live_cluster.requests.controllers.model_controller import ModelController
from harrow.live_cluster.requests.measures import measure as measure_module
from harrow.live_cluster.requests.measures.measure import (
    SETTINGS,
    Measure,
    measure,
    model_broker,
    model_controller,
)
from harrow.live_cluster.requests.measures.recording import steps_of
from tests.cli.conftest import Harrow

RELEASE = KafkaRelease("2.4.1")


def broker(**switches: Any) -> ModelBroker:
    return ModelBroker("2.4", behaviours_in(RELEASE.name).with_switches(**switches), SETTINGS)


class FakeBrokers:
    """Brokers from *make* instead of real ones, optionally with KRaft controllers."""

    def __init__(
        self, make: Callable[[], ModelBroker], control: Callable[[], ModelController] | None = None
    ) -> None:
        self._make = make
        self._control = control
        self.is_followed = control is None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Do nothing: there is no process."""

    def next_broker(self) -> ModelBroker:
        return self._make()

    def next_controller(self) -> ModelController | None:
        return self._control() if self._control is not None else None


Session = Callable[..., int]


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Session:
    """Return a function that compares requests to given brokers and returns the exit code."""

    def compare(make: Callable[[], ModelBroker], **options: Any) -> int:
        nowhere = Path("nowhere")
        started = StartedBrokers(release=RELEASE, metadata="zookeeper", java=nowhere, jars=nowhere)
        monkeypatch.setattr(conform_requests, "started_brokers", lambda *_, **__: started)
        monkeypatch.setattr(real_broker, "RealBrokers", lambda *_: FakeBrokers(make))
        request = ConformRequest(target="kafka:2.4.1", **{"requests": 60, "quiet": True, **options})
        return conform_requests.requests_session(request)

    return compare


def test_brokers_with_equal_responses_agree(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    assert session(broker) == exit_code.OK
    out = capsys.readouterr().out
    assert int(out.split()[0]) >= 60
    assert out.endswith("on kafka:2.4.1: agreed\n")


def test_a_difference_is_shown_with_its_shortest_sequence(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    assert session(lambda: broker(sequence_check=False), requests=600) == exit_code.BROKEN
    out = capsys.readouterr().out
    assert "differs  Produce: " in out
    assert "ProduceRequest(acks=" in out
    assert "  model:  {'partitions': {'t-" in out
    assert "  broker: {'partitions': {'t-" in out
    assert out.rstrip().endswith("differ")


def test_json_has_what_replays_a_difference(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    code = session(lambda: broker(sequence_check=False), requests=600, output_format="json", seed=3)
    assert code == exit_code.BROKEN
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["target"], document["seed"]) == (
        "harrow.conform-requests/1",
        "kafka:2.4.1",
        3,
    )
    assert document["requests"] >= 600
    assert all(steps_of(difference["shortest"]) for difference in document["differences"])
    assert sum(difference["count"] for difference in document["differences"]) <= document["sequences"]
    answered = document["asked"]["broker"].pop("answered")
    assert document["asked"] == {
        "broker": {
            "requests": document["requests"],
            "sequences": document["sequences"],
            "differing": sum(difference["count"] for difference in document["differences"]),
        }
    }
    assert answered["Produce"]["NONE"] > 0
    assert answered["Produce"]["UNKNOWN_TOPIC_OR_PARTITION"] > 0


def test_markdown_is_a_row_of_a_table(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    assert session(broker, output_format="markdown") == exit_code.OK
    head, _, row = capsys.readouterr().out.splitlines()
    assert head == "| Kafka 2.4.1 | requests | sequences | differ |"
    assert row.startswith("| zookeeper, broker | ")


def test_requests_to_brokers_and_controllers_are_counted_separately() -> None:
    release = KafkaRelease("4.3.1")
    measured = Measure()
    stand_ins = cast(
        "RealBrokers", FakeBrokers(lambda: model_broker(release), lambda: model_controller(release))
    )
    measure(release, stand_ins, 200, 0, measured, lambda: None)
    of_broker, of_controller = measured.tallies["broker"], measured.tallies["controller"]
    assert 0 <= of_broker.sequences - of_controller.sequences <= 1
    assert of_broker.requests
    assert of_controller.requests
    assert measured.requests == of_broker.requests + of_controller.requests >= 200
    assert measured.sequences == of_broker.sequences + of_controller.sequences
    assert not measured.differing


def test_brokers_that_die_are_inconclusive(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    def fail_start() -> ModelBroker:
        raise LiveError("waited 30 s in vain for an election")

    assert session(fail_start) == exit_code.INCONCLUSIVE
    document = capsys.readouterr()
    assert "waited 30 s in vain for an election" in document.err
    assert document.out == "0 requests in 0 sequences on kafka:2.4.1: nothing compared\n"


class DyingBroker(ModelBroker):
    """A broker that ends after a few requests."""

    requests_left = 3

    def ask(self, request: SingleRequest) -> Answer:
        if not self.requests_left:
            raise LiveError(f"the broker has ended; {request.api} was the last that it was asked")
        self.requests_left -= 1
        return super().ask(request)


def dying_broker() -> ModelBroker:
    return DyingBroker("2.4", behaviours_in(RELEASE.name), SETTINGS)


def test_the_requests_before_a_broker_dies_are_reported_but_no_difference(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    assert session(dying_broker, output_format="json") == exit_code.INCONCLUSIVE
    document = json.loads(capsys.readouterr().out)
    assert (document["differences"], document["sequences"]) == ([], 0)
    assert len(steps_of(document["ended_in"])) >= 4
    assert document["ended_in"][-1]["answer"] == {"error": "no answer"}
    assert session(dying_broker) == exit_code.INCONCLUSIVE
    assert "the last requests before the broker failed:\n  " in capsys.readouterr().out


def test_without_a_broker_failure_there_is_no_last_sequence(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    assert session(broker, output_format="json") == exit_code.OK
    assert json.loads(capsys.readouterr().out)["ended_in"] is None


@pytest.mark.parametrize(
    ("end", "code"), [(KeyboardInterrupt, exit_code.INTERRUPTED), (LiveError, exit_code.BROKEN)]
)
def test_a_broker_that_dies_during_shrinking_keeps_the_difference(
    session: Session,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    end: type[BaseException],
    code: int,
) -> None:
    def fail_end(*_: object) -> None:
        raise end

    monkeypatch.setattr(measure_module, "shrink", fail_end)
    assert session(lambda: broker(sequence_check=False), requests=600, output_format="json") == code
    document = json.loads(capsys.readouterr().out)
    assert [difference["count"] for difference in document["differences"]] == [1]
    assert steps_of(document["differences"][0]["shortest"])


def test_comparisons_before_an_interrupt_are_reported(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    brokers: list[ModelBroker] = []

    def interrupted() -> ModelBroker:
        if len(brokers) == 2:
            raise KeyboardInterrupt
        brokers.append(broker())
        return brokers[-1]

    assert session(interrupted) == exit_code.INTERRUPTED
    assert " in 2 sequences on kafka:2.4.1: agreed\n" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [(), ("ack-lost", "--requests", "5")])
def test_conform_takes_campaigns_or_requests(harrow: Harrow, arguments: tuple[str, ...]) -> None:
    fail_end = harrow("conform", *arguments, "--target", "kafka:2.4.1")
    assert fail_end.returncode == exit_code.USAGE
    assert "give campaigns, or --requests N" in fail_end.stderr
