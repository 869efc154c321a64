"""Plants anomalies in the order of a process's polls and sends."""

from tests.properties.correct_log import History
from tests.properties.planting import PlantedHistory, planted, prepare, read_by_others, read_sends
from tests.properties.recorded_history import (
    Draw,
    Operation,
    Pair,
    Recording,
    remove,
    send_lines,
    shift_offsets,
    weave,
)


def successive_polls(recording: Recording) -> list[tuple[str, Operation, Operation, Operation | None]]:
    """Return pairs of successive polls of a key by one process, each with the poll after it."""
    return [
        (key, one, other, third)
        for key, session in recording.sessions()
        for one, other, third in zip(session, session[1:], [*session[2:], None], strict=False)
        if not any(operation and key in operation.rebalanced for operation in (one, other, third))
    ]


def status_of_polls(recording: Recording, process: int) -> str:
    subscribed = any(
        operation.f == "subscribe" and operation.process == process for operation in recording.operations
    )
    return "permitted" if subscribed else "violated"


def plant_poll_skip(history: History, draw: Draw) -> PlantedHistory:
    """Let a poll skip its first records. Other processes read them."""
    recording = prepare(history, draw)
    key, one, other, third = draw(
        [
            (key, one, other, third)
            for key, one, other, third in successive_polls(recording)
            if third is not None or len(other.polled(key)) > 1
        ]
    )
    polled = other.polled(key)
    count = draw(range(1, len(polled) + (third is not None)))
    drop_from(other, key, polled[:count])
    read_by_others(recording, draw, key, polled[:count])
    after = (polled[count:] or (third or other).polled(key))[0]
    values = [pair[1] for pair in (one.polled(key)[-1], *polled[:count], after)]
    return planted(recording, [key], values, status=status_of_polls(recording, one.process))


def drop_from(operation: Operation, key: str, dropped: list[Pair]) -> None:
    for _, pairs in operation.poll_lists(key):
        pairs[:] = [pair for pair in pairs if pair not in dropped]


def plant_nonmonotonic_poll(history: History, draw: Draw) -> PlantedHistory:
    """Let a poll repeat records of the previous poll."""
    recording = prepare(history, draw)
    key, one, other, _ = draw(successive_polls(recording))
    last = recording.places[key, one.polled(key)[-1][1]]
    again = recording.order[key][draw(range(max(0, last - 2), last + 1)) : last + 1]
    pairs = next(pairs for _, pairs in other.poll_lists(key) if pairs)
    pairs[:0] = [list(record) for record in again]
    values = [value for _, value in again]
    return planted(recording, [key], values, status=status_of_polls(recording, one.process))


def polls_of_several(recording: Recording, least: int) -> list[tuple[str, Operation]]:
    return [
        (key, operation)
        for operation in recording.operations
        if operation.type == "ok"
        for key in operation.polled_keys()
        if len(operation.polled(key)) >= least and key not in operation.rebalanced
    ]


def plant_int_poll_skip(history: History, draw: Draw) -> PlantedHistory:
    """Let an operation skip records between those that it polls. Other processes read them."""
    recording = prepare(history, draw)
    key, operation = draw(polls_of_several(recording, 3))
    polled = operation.polled(key)
    start = draw(range(1, len(polled) - 1))
    end = draw(range(start + 1, len(polled)))
    drop_from(operation, key, polled[start:end])
    read_by_others(recording, draw, key, polled[start:end])
    return planted(recording, [key], [pair[1] for pair in polled[start - 1 : end + 1]])


def plant_int_nonmonotonic_poll(history: History, draw: Draw) -> PlantedHistory:
    """Let an operation poll a few records twice."""
    recording = prepare(history, draw)
    key, operation = draw(polls_of_several(recording, 1))
    pairs = draw([pairs for _, pairs in operation.poll_lists(key) if pairs])
    end = draw(range(1, len(pairs) + 1))
    start = draw(range(end))
    again = [list(pair) for pair in pairs[start:end]]
    pairs[end:end] = again
    return planted(recording, [key], [value for _, value in again])


def plant_nonmonotonic_send(history: History, draw: Draw) -> PlantedHistory:
    """Let a process send two records in the opposite order of their offsets.

    Two operations of other processes become operations of this one. Between them it may send a
    record with an unknown outcome.
    """
    recording = prepare(history, draw)
    several = [
        (key, one, other)
        for one in read_sends(recording)
        for other in read_sends(recording)
        if one.only_sends and other.only_sends
        for key in shared_keys(recording, one, other)
    ]
    key, one, other = draw(several)
    earlier, later = one.lines, other.lines
    remove(recording.history, [*earlier, *later])
    process = recording.fresh_process()
    for line in (*earlier, *later):
        line["process"] = process
    unknown = send_lines(process, recording.key_as_sent(key), "other", type_="info")
    weave(recording.history, draw, [*later, *draw(([], unknown)), *earlier])
    values = [v for operation in (one, other) for k, v, _ in operation.sends if k == key]
    return planted(recording, [key], values)


def shared_keys(recording: Recording, one: Operation, other: Operation) -> list[str]:
    """Return the key to which both operations send, *one* at the lower offset.

    Return nothing if they share several keys.
    """
    places = [
        {k: recording.places[k, v] for k, v, _ in operation.sends if (k, v) in recording.places}
        for operation in (one, other)
    ]
    shared = places[0].keys() & places[1].keys()
    return [key for key in shared if len(shared) == 1 and places[0][key] < places[1][key]]


def sends_of_several(recording: Recording) -> list[tuple[str, Operation, list[int]]]:
    """Return operations with several sends to a key, and the indices of the sends."""
    candidates = []
    for operation in read_sends(recording):
        for key in dict.fromkeys(key for key, _, _ in operation.sends):
            places = [
                at for at, micro in enumerate(operation.micros) if micro[0] == "send" and str(micro[1]) == key
            ]
            values = [value for k, value, _ in operation.sends if k == key]
            if len(places) > 1 and all(value in recording.read[key] for value in values):
                candidates.append((key, operation, places))
    return candidates


def plant_int_nonmonotonic_send(history: History, draw: Draw) -> PlantedHistory:
    """Let an operation send its records to a key in the opposite order."""
    recording = prepare(history, draw)
    key, operation, places = draw(sends_of_several(recording))
    for line in operation.lines:
        micros = [line["value"][at] for at in places]
        for at, micro in zip(places, reversed(micros), strict=True):
            line["value"][at] = micro
    return planted(recording, [key], [value for k, value, _ in operation.sends if k == key])


def plant_int_send_skip(history: History, draw: Draw) -> PlantedHistory:
    """Put another record between two records of one operation.

    If an operation sent that record, the two operations would form a cycle (G0). So the record is
    polled, but not sent.
    """
    recording = prepare(history, draw)
    key, operation, _ = draw(sends_of_several(recording))
    values = [value for k, value, _ in operation.sends if k == key]
    successor = draw(values[1:])
    offset, _ = recording.order[key][recording.places[key, successor]]
    shift_offsets(recording, key, offset, 1)
    for reader in recording.operations:
        for _, pairs in reader.poll_lists(key):
            at = next((at for at, pair in enumerate(pairs) if pair[1] == successor), None)
            if at is not None:
                pairs.insert(at, [offset, "other"])
    return planted(recording, [key], values, status="permitted")
