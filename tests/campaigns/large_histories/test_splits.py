"""Tasks share the parts of files by their size, not by their number."""

from hypothesis import given
from hypothesis import strategies as st

from harrow.campaigns.large_histories.splits import SPLIT_BYTES, Split, in_tasks
from harrow.campaigns.storage.location import location

TASKS_OF_SMALL_FILES_MAX = 64
"""Two tasks that follow each other have more than a 32nd of all bytes."""


def splits_of(sizes: list[int]) -> list[Split]:
    return [Split(number, "file", location("file"), size) for number, size in enumerate(sizes)]


@given(st.lists(st.integers(0, SPLIT_BYTES) | st.integers(0, 100), min_size=1, max_size=300))
def test_each_part_belongs_to_one_task_and_no_task_reads_more_than_the_largest_part_may_have(
    sizes: list[int],
) -> None:
    tasks = in_tasks(splits_of(sizes))
    assert [number for task in tasks for number in task] == [*range(len(sizes))]
    assert all(sum(sizes[number] for number in task) <= SPLIT_BYTES for task in tasks)


@given(st.lists(st.integers(1, 100_000), min_size=1, max_size=300))
def test_the_number_of_tasks_does_not_grow_with_that_of_small_files(sizes: list[int]) -> None:
    assert len(in_tasks(splits_of(sizes))) <= TASKS_OF_SMALL_FILES_MAX


def test_parts_of_full_size_have_a_task_each() -> None:
    assert len(in_tasks(splits_of([SPLIT_BYTES] * 100))) == 100
