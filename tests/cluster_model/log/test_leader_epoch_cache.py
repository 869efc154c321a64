"""Leader epochs of a log (KIP-101), with the cases of Kafka's LeaderEpochFileCacheTest (2.4)."""

import pytest

from harrow.cluster_model.log.leader_epoch_cache import (
    UNDEFINED_EPOCH,
    UNDEFINED_EPOCH_OFFSET,
    LeaderEpochCache,
)

UNDEFINED = (UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET)

Entries = list[tuple[int, int]]


def cache_of(*entries: tuple[int, int]) -> LeaderEpochCache:
    cache = LeaderEpochCache()
    for epoch, start_offset in entries:
        cache.assign(epoch, start_offset)
    return cache


@pytest.mark.parametrize(
    ("entries", "requested", "leo", "answer"),
    [
        # As in the campaign epoch-answer: the follower's last epoch is 1, epoch 2 starts at 80.
        ([(1, 20), (2, 80), (3, 120)], 1, 200, (1, 80)),
        ([(1, 20), (2, 80), (3, 120)], 2, 200, (2, 120)),
        ([(1, 20), (2, 80), (3, 120)], 3, 200, (3, 200)),  # the latest: the LEO
        ([(1, 20), (2, 80), (3, 120)], 4, 200, UNDEFINED),  # above all
        ([(1, 20), (2, 80), (3, 120)], 0, 200, (0, 20)),  # below the first
        ([(1, 20), (2, 80), (3, 120)], UNDEFINED_EPOCH, 200, UNDEFINED),
        ([], 0, 73, UNDEFINED),
        ([], UNDEFINED_EPOCH, 73, UNDEFINED),
        ([(2, 11)], 2, 14, (2, 14)),
        ([(2, 100)], 3, 100, UNDEFINED),
        # No entry for the requested epoch: the largest smaller one, and the start of the next.
        ([(0, 10), (2, 13), (4, 17)], 1, 20, (0, 13)),
        ([(0, 10), (2, 13), (4, 17)], 2, 20, (2, 17)),
        ([(0, 10), (2, 13), (4, 17)], 3, 20, (2, 17)),
        ([(5, 11), (6, 12), (7, 13)], 4, 20, (4, 11)),
        ([(0, 0), (1, 3), (2, 6)], 0, 9, (0, 3)),
        ([(0, 0), (1, 3), (2, 6)], 1, 9, (1, 6)),
        # A latest epoch without records ends where it starts.
        ([(0, 0), (1, 5)], 1, 5, (1, 5)),
    ],
)
def test_an_epoch_ends_where_the_next_one_starts(
    entries: Entries, requested: int, leo: int, answer: tuple[int, int]
) -> None:
    cache = cache_of(*entries)
    assert cache.entries == entries
    assert cache.end_offset_for(requested, leo) == answer


@pytest.mark.parametrize(
    ("below", "entries", "together"),
    [
        ([(0, 0), (1, 3)], [(2, 5)], [(0, 0), (1, 3), (2, 5)]),
        ([(0, 0), (1, 3)], [(1, 5), (2, 7)], [(0, 0), (1, 3), (2, 7)]),  # the first entry was cut
        ([(0, 0), (1, 3)], [], [(0, 0), (1, 3)]),
        ([], [(1, 5)], [(1, 5)]),
        (
            [(0, 0), (3, 3)],
            [(1, 5), (4, 7)],
            [(0, 0), (3, 3), (4, 7)],
        ),  # epochs of batches replace prepended ones
    ],
)
def test_prepended_entries_come_before_the_first(below: Entries, entries: Entries, together: Entries) -> None:
    cache = cache_of(*entries)
    cache.prepend(cache_of(*below))
    assert cache.entries == together


def test_before_kafka_7415_an_epoch_before_the_first_has_no_end() -> None:
    cache = cache_of((5, 11), (6, 12))
    assert cache.end_offset_for(4, 20, answers_below_first=False) == (-1, -1)
    assert cache.end_offset_for(5, 20, answers_below_first=False) == (5, 12)


@pytest.mark.parametrize(
    ("assigned", "entries"),
    [
        ([(2, 10)], [(2, 10)]),
        ([(0, 0), (1, 5), (2, 9)], [(0, 0), (1, 5), (2, 9)]),
        # An epoch keeps its start unless an earlier one is assigned.
        ([(2, 9), (2, 10)], [(2, 9)]),
        ([(2, 6), (2, 6)], [(2, 6)]),
        ([(5, 11), (6, 12), (7, 13), (7, 12)], [(5, 11), (7, 12)]),
        # An epoch without records loses its entry to the next one.
        ([(2, 9), (3, 9)], [(3, 9)]),
        ([(0, 0), (1, 0)], [(1, 0)]),
        ([(0, 0), (1, 4), (2, 4), (3, 4)], [(0, 0), (3, 4)]),
        # The last assignment drops entries that contradict it.
        ([(1, 5), (2, 6), (1, 7)], [(1, 7)]),
        ([(2, 6), (3, 5)], [(3, 5)]),
        ([(0, 0), (1, 5), (3, 9), (2, 7)], [(0, 0), (1, 5), (2, 7)]),
        ([(0, 0), (1, 5), (3, 9), (4, 5)], [(0, 0), (4, 5)]),
        # An epoch may start after all records of the previous one, with a gap in the numbers.
        ([(0, 0), (7, 100)], [(0, 0), (7, 100)]),
    ],
)
def test_a_new_entry_drops_entries_that_would_not_rise(assigned: Entries, entries: Entries) -> None:
    cache = cache_of(*assigned)
    assert cache.entries == entries
    assert cache.latest_epoch() == entries[-1][0]


@pytest.mark.parametrize(
    ("end_offset", "entries"),
    [
        (12, [(2, 6), (3, 8), (4, 11)]),
        (11, [(2, 6), (3, 8)]),  # inclusive: an entry at the end is dropped
        (10, [(2, 6), (3, 8)]),
        (8, [(2, 6)]),
        (6, []),
        (0, []),
    ],
)
def test_a_truncation_drops_entries_that_start_at_or_after_the_end(end_offset: int, entries: Entries) -> None:
    cache = cache_of((2, 6), (3, 8), (4, 11))
    cache.truncate_from_end(end_offset)
    assert cache.entries == entries
    assert cache.latest_epoch() == (entries[-1][0] if entries else UNDEFINED_EPOCH)


def test_the_epoch_cache_writes_through_to_its_checkpoint() -> None:
    checkpoint: Entries = [(0, 0), (1, 5)]
    cache = LeaderEpochCache()
    cache.entries = checkpoint
    cache.assign(2, 7)
    cache.truncate_from_end(7)
    cache.assign(3, 5)
    assert checkpoint == [(0, 0), (3, 5)]
