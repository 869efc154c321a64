"""Plants cycles of operations, each of which has to come before the other."""

from tests.properties.correct_log import History, Value
from tests.properties.planting import PLANTED, PlantedHistory, add_poll, planted, prepare, process_polls
from tests.properties.recorded_history import Draw, Operation, reachable, read_lines, weave


def plant_g0(history: History, draw: Draw) -> PlantedHistory:
    """Give two operations opposite orders in different keys.

    The operations belong to two processes, because a single process would have sent in the wrong
    order (nonmonotonic-send). The second operation depends on the first only through sends, because
    a read would turn the cycle into a G1c.
    """
    recording = prepare(history, draw)
    edges = recording.edges()
    by_number = recording.operations
    first, second = draw(
        [
            (one, by_number[other])
            for one in by_number
            if one.completion is not None
            for other in sorted(reachable(edges, one.number, ["ww"]))
            if by_number[other].completion is not None
            and by_number[other].process != one.process
            and not depends_by_reading(edges, one.number, other)
        ]
    )
    cycle = reachable(edges, first.number, ["ww"]) | {first.number}
    keys = {key for at in cycle for key, _, _ in by_number[at].sends}
    for offset, operation, value in ((0, second, "other"), (1, first, "another")):
        add_send(operation, draw, PLANTED, value, offset)
    reader = read_lines(recording.fresh_process(), PLANTED, [(0, "other"), (1, "another")])
    weave(recording.history, draw, reader)
    return planted(recording, {*keys, PLANTED}, status="permitted")


def depends_by_reading(edges: dict[int, list[tuple[int, str]]], start: int, end: int) -> bool:
    """Return whether a path from one operation to another contains a read."""
    both = ("ww", "wr")
    before = reachable(edges, start, both) | {start}
    return any(
        kind == "wr" and (target == end or end in reachable(edges, target, both))
        for at in before
        for target, kind in edges.get(at, ())
    )


def add_send(operation: Operation, draw: Draw, key: str, value: Value, offset: int) -> None:
    at = draw(range(len(operation.micros) + 1))
    invocation, completion = operation.lines
    invocation["value"].insert(at, ["send", key, value])
    completion["value"].insert(at, ["send", key, [offset, value]])
    if operation.f == "poll":
        invocation["f"] = completion["f"] = "txn"


def plant_g1c(history: History, draw: Draw) -> PlantedHistory:
    """Let an operation poll a record of an operation that depends on it.

    The operation's process polls that key nowhere else, because it would then repeat or skip
    records. Kafka permits the cycle unless it consists of reads only.
    """
    recording = prepare(history, draw)
    edges = recording.edges()
    by_number = recording.operations
    kinds = draw((["wr"], ["ww", "wr"]))
    first, second, key, value = draw(
        [
            (one, by_number[other], key, value)
            for one in by_number
            if one.type == "ok"
            for other in sorted(reachable(edges, one.number, kinds) - {one.number})
            for key, value, _ in by_number[other].sends
            if value in recording.read[key] and not process_polls(recording, one.process, key)
        ]
    )
    is_read_only = second.number in reachable(edges, first.number, ["wr"])
    cycle = reachable(edges, first.number, ["ww", "wr"]) | {first.number}
    keys = {k for at in cycle for k, _, _ in by_number[at].sends}
    keys.update(k for at in cycle for k in by_number[at].polled_keys())
    add_poll(first, draw, key, recording.order[key][recording.places[key, value]])
    return planted(recording, keys, status="violated" if is_read_only else "permitted")
