"""A partition that is replayed alone is what it is in the replay of the whole cluster."""

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


def runs() -> list[RunResult]:
    return [
        run_plan(dense_plan(power_loss=True), 3),
        *(run_plan(plan, 0) for name in NAMES for plan in load_campaign(resolve(name)[0]).plans),
    ]


def plain(value: Any, seen: dict[int, int]) -> Any:
    """Return a state as lists and text that can be compared; what refers to what is kept."""
    if is_dataclass(value):
        if id(value) in seen:
            return f"see {seen[id(value)]}"
        seen[id(value)] = len(seen)
        return [type(value).__name__, *((f.name, plain(getattr(value, f.name), seen)) for f in fields(value))]
    if isinstance(value, dict):
        return [(plain(key, seen), plain(found, seen)) for key, found in value.items()]
    if isinstance(value, list | tuple):
        return [plain(one, seen) for one in value]
    return repr(value)


def test_it_is_the_same_alone_and_among_others(monkeypatch: pytest.MonkeyPatch) -> None:
    for result in runs():
        whole = Index(result.evidence)
        together = {name: plain(whole.partition(name), {}) for name in result.evidence.partitions}
        with monkeypatch.context() as alone_only:
            alone_only.setattr(index, "_REPLAYED_AT_ONCE", 0)
            for name, state in together.items():
                assert plain(Index(result.evidence).partition(name), {}) == state, (result.seed, name)


def test_one_that_stories_hold_stays_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "_REPLAYED_AT_ONCE", 0)
    monkeypatch.setattr(index, "_REPLAYS_MAX", 2)
    result = run_plan(dense_plan(), 3)
    names = list(result.evidence.partitions)
    assert len(names) > 2
    once = Index(result.evidence)
    found = {name: once.partition(name) for name in names}
    assert all(once.partition(name) is state for name, state in found.items())
    # Nothing ever happened to one of another name.
    assert once.partition("other-0").replicas == {}
