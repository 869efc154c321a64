"""Any campaign file is either loaded or refused with positions in the file."""

from collections.abc import Callable
from functools import partial
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harrow.campaigns.language.loader import Campaign, CampaignError, Problem, load_campaign, load_text
from tests.properties.campaign_mutants import EVERYTHING, SOURCES, mutants


def check_refusal(error: CampaignError, text: str) -> None:
    lines = text.removeprefix("\ufeff").splitlines() or [""]
    assert error.problems
    for problem in error.problems:
        assert problem.file == "mutant.yaml"
        assert 1 <= problem.line <= len(lines), problem
        assert 1 <= problem.column <= len(lines[problem.line - 1]) + 1, problem
        assert problem.message.isprintable(), problem
    places = [(problem.line, problem.column) for problem in error.problems]
    assert places == sorted(places)
    assert len(set(error.problems)) == len(error.problems)


def problems_of(load: Callable[[], Campaign]) -> tuple[Problem, ...]:
    """Return the problems of a campaign, none if it loads."""
    try:
        load()
    except CampaignError as error:
        assert error.problems  # noqa: PT017 - it may be raised, or not
        return error.problems
    return ()


def load_or_refuse(text: str) -> Campaign | None:
    try:
        campaign = load_text(text, "mutant.yaml")
    except CampaignError as error:
        check_refusal(error, text)
        return None
    assert campaign.plans
    for plan in campaign.plans:
        assert plan.digest()
    return campaign


@pytest.mark.parametrize("source", range(len(SOURCES)))
def test_unmutated_campaigns_load(source: int) -> None:
    assert load_or_refuse(SOURCES[source]) is not None


@pytest.mark.soak(size=100, rounds_in_test=1, rounds_in_soak=500)
def test_mutated_campaigns_load_or_are_refused_with_positions(numbers: range) -> None:
    texts = mutants(Random(numbers.start))
    outcomes = [load_or_refuse(next(texts)) is not None for _ in numbers]
    # Both outcomes must occur, otherwise the mutations are too wild or too tame.
    assert 0.02 < sum(outcomes) / len(numbers) < 0.9


@pytest.mark.soak(size=100, rounds_in_test=1, rounds_in_soak=100)
@settings(max_examples=100)
@given(st.text())
def test_any_text_loads_or_is_refused_with_positions(text: str) -> None:
    load_or_refuse(text)


@pytest.mark.soak(size=100, rounds_in_test=1, rounds_in_soak=100)
@settings(max_examples=100)
@given(st.text(alphabet="{}[]:,-#&*!|>'\"%@`? \n\tab01"))
def test_yaml_punctuation_loads_or_is_refused_with_positions(text: str) -> None:
    load_or_refuse(text)


@pytest.mark.soak(size=25, rounds_in_test=1, rounds_in_soak=200)
@settings(max_examples=25)
@given(st.text(), st.text())
def test_problems_of_any_option_are_printable(key: str, value: str) -> None:
    for option in (
        key,
        f"{key}={value}",
        f"acks={value}",
        f"cluster.{key}={value}",
        f"workload.{key}.{value}=1",
    ):
        problems = problems_of(partial(load_text, EVERYTHING, "mutant.yaml", [option]))
        assert all(str(problem).isprintable() for problem in problems)


@pytest.mark.soak(size=100, rounds_in_test=1, rounds_in_soak=50)
@settings(max_examples=100)
@given(content=st.binary())
def test_problems_of_any_bytes_are_printable(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.mktemp("bytes") / "mutant.yaml"
    path.write_bytes(content)
    problems = problems_of(partial(load_campaign, path))
    assert all(str(problem).isprintable() for problem in problems)
