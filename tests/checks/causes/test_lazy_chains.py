"""A chain is built when it is first read, and is the same as if it had been built at once."""

import copy
import pickle
from collections.abc import Sequence
from typing import Any

import pytest

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.run.runner import run_plan
from harrow.checks.causes import links
from harrow.checks.causes.story import Story, deferred
from harrow.checks.finding import Verdict
from harrow.checks.index import Index
from harrow.checks.link import Link
from tests.checks.evidence_builder import RunBuilder


def story_of_a_run() -> Story:
    run = RunBuilder()
    run.elect(0, 0, (0, 1))
    return Story(Index(run.evidence()), "t-0")


@deferred
def tell_numbers(story: Story, told: list[int], *numbers: int) -> None:
    for number in numbers:
        tell_number(story, told, number)


@deferred
def tell_number(story: Story, told: list[int], number: int) -> None:
    told.append(number)
    story.tell(number, links.paused(number, number))


def test_a_chain_is_built_once_when_it_is_first_read() -> None:
    story, told = story_of_a_run(), list[int]()
    tell_numbers(story, told, 1, 2)
    chain = story.chain()
    assert told == []
    assert [link.actor for link in chain] == [1, 2]
    assert len(chain) == 2
    assert told == [1, 2]


def test_deferred_calls_run_in_order_and_each_before_the_calls_after_it() -> None:
    story, told = story_of_a_run(), list[int]()
    tell_numbers(story, told, 1, 2)
    tell_number(story, told, 3)
    tell_numbers(story, told, 4, 5)
    tuple(story.chain())
    assert told == [1, 2, 3, 4, 5]


def test_a_story_knows_the_links_of_pending_calls() -> None:
    story, told = story_of_a_run(), list[int]()
    tell_number(story, told, 3)
    assert story.has_link_at(3)
    tell_number(story, told, 4)
    assert [number for number, _ in story.links_of("paused")] == [3, 4]


def test_a_chain_that_cannot_be_built_fails_whenever_it_is_read() -> None:
    story, told = story_of_a_run(), list[int]()
    tell_numbers(story, told, 1, 2)
    tell_failure(story)
    tell_numbers(story, told, 3)
    chain = story.chain()
    for _ in range(2):
        with pytest.raises(ValueError, match="no such link"):
            len(chain)
    assert told == [1, 2]


@deferred
def tell_failure(_: Story) -> None:
    raise ValueError("no such link")


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda chain: pickle.loads(pickle.dumps(chain))])
def test_a_copied_chain_is_a_tuple_of_its_links(copied: Any) -> None:
    story = story_of_a_run()
    story.tell(1, links.paused(1, 1))
    chain = story.chain(links.paused(None, 2))
    twin = copied(chain)
    assert type(twin) is tuple
    assert chain == twin
    assert twin == chain
    assert chain[-1:] == twin[-1:]


@pytest.mark.parametrize("name", ["swarm", "swarm-eos", "ack-lost"])
def test_a_chain_does_not_depend_on_when_it_is_built(name: str) -> None:
    plan = load_campaign(resolve(name)[0]).plans[0]
    late, early = (
        [run_plan(plan, seed, chains_later=later).verdict for seed in range(4)] for later in (True, False)
    )
    assert chains_of(late) == chains_of(early)


def chains_of(verdicts: Sequence[Verdict]) -> list[tuple[Link, ...]]:
    chains = [
        tuple(finding.chain)
        for verdict in verdicts
        for result in verdict.rules.values()
        for finding in result.findings
    ]
    assert chains
    return chains
