"""The cheapest settings that survive are those that follow from Kafka's promises."""

from pathlib import Path

import pytest

from harrow.campaigns.run.workers.workers import Workers
from tests.campaigns.advise.known_answers import CASES, Case, advice_of, changed


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_cheapest_settings_that_survive_are_the_known_ones(case: Case, tmp_path: Path) -> None:
    assert changed(advice_of(case, tmp_path)) == case.answer, case.why


@pytest.mark.soak(size=1, rounds_in_test=0, rounds_in_soak=len(CASES))
def test_more_runs_do_not_change_the_answer(numbers: range, tmp_path: Path) -> None:
    case = CASES[numbers.start]
    assert changed(advice_of(case, tmp_path, runs=100)) == case.answer, case.why


def test_the_advice_is_the_same_for_every_number_of_processes(tmp_path: Path) -> None:
    case = CASES[0]
    with Workers(2) as workers:
        assert advice_of(case, tmp_path, workers=workers) == advice_of(case, tmp_path)


@pytest.mark.parametrize(
    ("name", "survives_on"),
    [
        # The first release of the model whose new clusters have eligible leader replicas (KIP-966)
        ("the last replica standing loses power, 3.9", "4.3"),
        ("power of all, 3.9", None),
    ],
)
def test_settings_that_do_not_survive_are_tried_on_later_releases(
    name: str, survives_on: str | None, tmp_path: Path
) -> None:
    (case,) = (case for case in CASES if case.name == name)
    tried = advice_of(case, tmp_path).on_release
    assert tried is not None
    assert survives_on == (tried.kafka if tried.refuted_by is None else None)
    assert f"--set kafka={tried.kafka}" in tried.command


def test_values_are_those_that_kafka_has_with_the_other_settings(tmp_path: Path) -> None:
    (case,) = (case for case in CASES if case.name == "one broker, acks=1, 3.9")
    advice = advice_of(case, tmp_path)
    assert advice.advised is not None
    assert dict(advice.yours.values)["enable.idempotence"].text() == "false"
    assert dict(advice.advised.values)["enable.idempotence"].text() == "true"
    assert [line.text for line in advice.advised.lines] == ["acks=all"]
