"""A promise follows the settings that were in force at the moment that it depends on."""

from dataclasses import replace

import pytest

from tests.checks.evidence_builder import PARTITION, RunBuilder

SECOND = 1_000_000


def changed(run: RunBuilder, at_s: float, **earlier: object) -> None:
    """Let settings of the topic have *earlier* values until a time."""
    before = replace(run.settings, **earlier)  # type: ignore[arg-type]
    run.settings = replace(run.settings, earlier=((int(at_s * SECOND), before),))


@pytest.mark.parametrize(
    ("changed_s", "before", "after", "status"),
    [
        (4, False, True, "permitted"),
        (6, False, True, "violated"),
        (4, True, False, "violated"),
        (6, True, False, "permitted"),
    ],
)
def test_an_unclean_election_needs_the_setting_at_the_time_of_the_election(
    changed_s: float, before: bool, after: bool, status: str
) -> None:
    run = RunBuilder(unclean_leader_election=after)
    changed(run, changed_s, unclean_leader_election=before)
    producer = run.producer(acks="all")
    run.elect(0, 0, (0, 1))
    run.write(producer, "m0", 0)
    run.at(5)
    run.elect(1, 1, (1,), unclean=True)
    run.read_to_end(1)
    assert run.judge("lost-write").status == status


@pytest.mark.parametrize(
    ("changed_s", "before", "after", "status"),
    [
        (4, 2, 1, "held"),
        (6, 2, 1, "violated"),
        (4, 1, 2, "violated"),
        (6, 1, 2, "held"),
    ],
)
def test_an_ack_needs_the_in_sync_replicas_that_were_demanded_when_it_was_sent(
    changed_s: float, before: int, after: int, status: str
) -> None:
    run = RunBuilder(min_insync_replicas=after)
    changed(run, changed_s, min_insync_replicas=before)
    run.elect(0, 0, (0, 1))
    run.event("isr", broker=0, partition=PARTITION, leader_epoch=0, isr=(0,), change="shrink")
    run.at(5)
    run.append(0, "a")
    run.raise_hw(1, 0)
    run.acknowledge(0, 0, "a")
    assert run.judge("acked-below-min-isr").status == status
