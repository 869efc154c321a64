"""Tools to plant anomalies: a history to change, and the expected findings."""

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass

from tests.properties.correct_log import History, Line, Value
from tests.properties.recorded_history import (
    Draw,
    Operation,
    Pair,
    Recording,
    operation_lines,
    read_lines,
    send_lines,
    weave,
    weave_reads,
)

# Keys of the operations that `prepare` adds, and keys of planted operations.
CERTAIN, CERTAIN_TOO = "certain", "certain too"
PLANTED, PLANTED_TOO = "planted", "planted too"


@dataclass(frozen=True)
class PlantedHistory:
    """A history with one anomaly.

    A finding names one of ``keys``, one of ``values`` and one of ``offsets``, unless these are
    empty. With ``each`` there is a finding for every value.
    """

    history: History
    keys: frozenset[str]
    values: frozenset[Value] = frozenset()
    offsets: frozenset[int] = frozenset()
    each: bool = False
    status: str = "violated"


def planted(
    recording: Recording,
    keys: Iterable[str],
    values: Iterable[Value] = (),
    *,
    offsets: Iterable[int] = (),
    each: bool = False,
    status: str = "violated",
) -> PlantedHistory:
    return PlantedHistory(
        recording.history, frozenset(keys), frozenset(values), frozenset(offsets), each=each, status=status
    )


def prepare(history: History, draw: Draw) -> Recording:
    """Copy a history, and add operations that suffice for any anomaly."""
    copy = deepcopy(history)
    first = Recording(copy).fresh_process()
    sends = [["send", CERTAIN, [5, "c2"]], ["send", CERTAIN, [6, "c3"]]]
    records: list[tuple[int, Value]] = [(3, "c0"), (4, "c1"), (5, "c2"), (6, "c3"), (8, "c4"), (9, "c5")]
    everything = {CERTAIN: [list(record) for record in records], CERTAIN_TOO: [[0, "c0"]]}
    polled_and_sent = [["poll", {CERTAIN: [[3, "c0"]]}], ["send", CERTAIN_TOO, [0, "c0"]]]
    strands: list[list[Line]] = [
        [
            *send_lines(first, CERTAIN, "c0", 3),
            *send_lines(first, CERTAIN, "c1", 4),
            *operation_lines(first, "txn", [["send", CERTAIN, "c2"], ["send", CERTAIN, "c3"]], sends),
        ],
        [*send_lines(first + 1, CERTAIN, "c4", 8), *send_lines(first + 1, CERTAIN, "c5", 9)],
        [
            *operation_lines(first + 2, "assign", [CERTAIN], [CERTAIN]),
            *read_lines(first + 2, CERTAIN, records[:2]),
            *read_lines(first + 2, CERTAIN, records[2:]),
        ],
        operation_lines(first + 3, "poll", [["poll"]], [["poll", everything]]),
        operation_lines(first + 4, "txn", [["poll"], ["send", CERTAIN_TOO, "c0"]], polled_and_sent),
    ]
    weave(copy, draw, *strands)
    return Recording(copy)


def read_keys(recording: Recording, least: int = 1) -> list[str]:
    return sorted(key for key in recording.order if len(recording.read_records(key)) >= least)


def appendable_keys(recording: Recording) -> list[str]:
    """Return completely read keys, where an appended record affects no earlier one."""
    return [key for key in read_keys(recording) if recording.is_all_read(key)]


def read_by_others(recording: Recording, draw: Draw, key: str, pairs: Iterable[Pair]) -> None:
    """Let separate readers poll records that another poll skips."""
    process = recording.fresh_process()
    strands = [read_lines(process + at, key, [(pair[0], pair[1])]) for at, pair in enumerate(pairs)]
    weave_reads(recording, draw, key, *strands)


def process_polls(recording: Recording, process: int, key: str) -> bool:
    return any(operation.polled(key) for operation in recording.operations if operation.process == process)


def add_poll(operation: Operation, draw: Draw, key: str, record: tuple[int, Value]) -> None:
    """Add a poll of one record to an operation."""
    assert operation.completion is not None
    at = draw(range(len(operation.micros) + 1))
    operation.invocation["value"].insert(at, ["poll"])
    operation.completion["value"].insert(at, ["poll", {key: [list(record)]}])
    for line in (operation.invocation, operation.completion):
        line["f"] = "txn"


def read_sends(recording: Recording) -> list[Operation]:
    """Return the completed operations that sent at least one record that was polled."""
    return [
        operation
        for operation in recording.operations
        if operation.type in ("ok", "info")
        and operation.completion is not None
        and any(value in recording.read[key] for key, value, _ in operation.sends)
    ]
