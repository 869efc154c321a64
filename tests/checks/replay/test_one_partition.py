"""The replay of one partition equals its part of the replay of the whole cluster."""

from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.checks import index
from harrow.checks.index import Index
from tests.scenarios.dense_plan import dense_plan

NAMES = ("acks-1-leader-crash", "divergence-by-hw", "power-loss", "unclean-election")


def sample_runs() -> list[RunResult]:
    return [
        run_plan(dense_plan(power_loss=True), 3),
        *(run_plan(plan, 0) for name in NAMES for plan in load_campaign(resolve(name)[0]).plans),
    ]


def comparable(value: Any, numbers: dict[int, int]) -> Any:
    """Return a state as comparable lists and text that preserve references between objects."""
    if is_dataclass(value):
        if id(value) in numbers:
            return f"see {numbers[id(value)]}"
        numbers[id(value)] = len(numbers)
        return [
            type(value).__name__,
            *((f.name, comparable(getattr(value, f.name), numbers)) for f in fields(value)),
        ]
    if isinstance(value, dict):
        return [(comparable(key, numbers), comparable(item, numbers)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return [comparable(element, numbers) for element in value]
    return repr(value)


def test_a_partition_replayed_alone_equals_its_part_of_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    for result in sample_runs():
        whole = Index(result.evidence)
        together = {name: comparable(whole.partition(name), {}) for name in result.evidence.partitions}
        with monkeypatch.context() as patch:
            patch.setattr(index, "_REPLAYED_AT_ONCE", 0)
            for name, state in together.items():
                assert comparable(Index(result.evidence).partition(name), {}) == state, (result.seed, name)


def test_a_replayed_partition_that_is_still_in_use_is_not_replayed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(index, "_REPLAYED_AT_ONCE", 0)
    monkeypatch.setattr(index, "_REPLAYS_MAX", 2)
    result = run_plan(dense_plan(), 3)
    names = list(result.evidence.partitions)
    assert len(names) > 2
    index_of_run = Index(result.evidence)
    states = {name: index_of_run.partition(name) for name in names}
    assert all(index_of_run.partition(name) is state for name, state in states.items())
    # A partition without events has no replicas.
    assert index_of_run.partition("other-0").replicas == {}
