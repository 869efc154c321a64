"""From 2.1 on a fetch with a wrong leader epoch is refused, which an event records (KIP-320)."""

from dataclasses import replace
from itertools import chain

from harrow.campaigns.run.runner import run_plan
from harrow.cluster_model import errors
from harrow.cluster_model.events import FetchFenced, RequestRejected
from harrow.cluster_model.trace import TraceEvent, select
from tests.library_swarm import library_swarm

SEEDS = 40


def trace(release: str, seed: int) -> list[TraceEvent]:
    return list(run_plan(replace(library_swarm(), kafka=release), seed).evidence.trace)


def test_each_fetch_refused_for_its_epoch_has_an_event() -> None:
    for seed in range(SEEDS):
        events = trace("2.4", seed)
        fenced = list(select(events, FetchFenced))
        by_epoch = (errors.FENCED_LEADER_EPOCH, errors.UNKNOWN_LEADER_EPOCH)
        refused = [e for e in select(events, RequestRejected) if e.api == "Fetch" and e.error in by_epoch]
        assert [(e.at_us, e.broker, e.partition, e.sender) for e in fenced] == [
            (e.at_us, e.broker, e.partition, e.sender) for e in refused
        ]
        assert all(event.leader_epoch != event.fetch_epoch for event in fenced)
        if fenced:
            return
    raise AssertionError("no fetch was fenced")


def test_before_2_1_no_fetch_is_fenced() -> None:
    assert not list(chain.from_iterable(select(trace("2.0", seed), FetchFenced) for seed in range(3)))
