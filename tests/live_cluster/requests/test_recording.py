"""Recorded sequences in which the model once differed from a real broker: the model now agrees."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from pydantic import ValidationError

from harrow.live_cluster.releases.kafka_release import KafkaRelease
from harrow.live_cluster.requests.brokers.comparison import compare_brokers
from harrow.live_cluster.requests.brokers.sequences import sequences
from harrow.live_cluster.requests.brokers.steps import Step
from harrow.live_cluster.requests.comparison import difference_text
from harrow.live_cluster.requests.controllers.comparison import compare_controllers
from harrow.live_cluster.requests.coordinators.comparison import compare_coordinators
from harrow.live_cluster.requests.measures.measure import model_broker, model_controller, model_coordinator
from harrow.live_cluster.requests.measures.recording import (
    RecordedBroker,
    RecordedController,
    RecordedCoordinator,
    recording,
    steps_of,
)

ONCE_DIFFERED = sorted((Path(__file__).parent / "once_differed").glob("*.json"))
CONTROLLERS_ONCE_DIFFERED = sorted((Path(__file__).parent / "once_differed" / "controllers").glob("*.json"))
COORDINATORS_ONCE_DIFFERED = sorted((Path(__file__).parent / "once_differed" / "coordinators").glob("*.json"))
RELEASE = KafkaRelease("2.4.1")


@pytest.mark.parametrize("file", ONCE_DIFFERED, ids=lambda file: file.stem)
def test_the_model_answers_like_the_recorded_broker(file: Path) -> None:
    recorded = json.loads(file.read_text(encoding="utf-8"))
    model = model_broker(KafkaRelease(recorded["release"]))
    compared = compare_brokers(steps_of(recorded["sequence"]), model, RecordedBroker(recorded["sequence"]))
    assert compared.difference is None, difference_text(compared.difference)
    assert len(compared.exchanges) == len(recorded["sequence"])


@pytest.mark.parametrize("file", CONTROLLERS_ONCE_DIFFERED, ids=lambda file: file.stem)
def test_the_model_answers_like_the_recorded_controller(file: Path) -> None:
    recorded = json.loads(file.read_text(encoding="utf-8"))
    model = model_controller(KafkaRelease(recorded["release"]))
    real = RecordedController(recorded["sequence"])
    compared = compare_controllers(steps_of(recorded["sequence"]), model, real)
    assert compared.difference is None, difference_text(compared.difference)
    assert len(compared.exchanges) == len(recorded["sequence"])


@pytest.mark.parametrize("file", COORDINATORS_ONCE_DIFFERED, ids=lambda file: file.stem)
def test_the_model_answers_like_the_recorded_coordinator(file: Path) -> None:
    recorded = json.loads(file.read_text(encoding="utf-8"))
    model = model_coordinator(KafkaRelease(recorded["release"]))
    real = RecordedCoordinator(recorded["sequence"])
    compared = compare_coordinators(steps_of(recorded["sequence"]), model, real)
    assert compared.difference is None, difference_text(compared.difference)
    assert len(compared.exchanges) == len(recorded["sequence"])


@settings(max_examples=10, suppress_health_check=list(HealthCheck), derandomize=True)
@given(sequences(followed=True))
def test_a_recorded_broker_repeats_its_answers(steps: tuple[Step, ...]) -> None:
    compared = compare_brokers(steps, model_broker(RELEASE), model_broker(RELEASE))
    recorded = json.loads(json.dumps(recording(compared)))
    assert steps_of(recorded) == steps
    again = compare_brokers(steps, model_broker(RELEASE), RecordedBroker(recorded))
    assert json.loads(json.dumps(recording(again))) == recorded


def test_invalid_steps_are_refused() -> None:
    with pytest.raises(ValidationError, match="kind"):
        steps_of([{"step": {"kind": "dance"}, "answer": {}}])
