"""Plants anomalies of records: lost, unseen, duplicated, read too early, or at a wrong offset."""

from collections.abc import Iterator
from typing import Any

from tests.properties.correct_log import History
from tests.properties.planting import (
    PLANTED,
    PLANTED_TOO,
    PlantedHistory,
    add_poll,
    appendable_keys,
    planted,
    prepare,
    process_polls,
    read_keys,
    read_sends,
)
from tests.properties.recorded_history import (
    Draw,
    Recording,
    drop_polled,
    operation_lines,
    read_lines,
    send_lines,
    weave,
    weave_reads,
)


def plant_inconsistent_offsets(history: History, draw: Draw) -> PlantedHistory:
    """Let a process read another value at an offset: one without a sender, or an acked one.

    The offset of an acked value is not between two records of one transaction, because the sender
    of the value would then come both before and after that transaction (G0).
    """
    recording = prepare(history, draw)
    is_acked = draw((False, True))
    places = [
        (key, at)
        for key in read_keys(recording)
        for at in range(len(recording.read_records(key)))
        if not (is_acked and is_inside_transaction(recording, key, at))
    ]
    key, at = draw(places)
    offset, _ = recording.order[key][at]
    process = recording.fresh_process()
    reads = read_lines(process, key, [(offset, "other")])
    sends = send_lines(process + 1, recording.key_as_sent(key), "other", offset) if is_acked else []
    weave(recording.history, draw, sends, reads)
    return planted(recording, [key], offsets=[offset])


def is_inside_transaction(recording: Recording, key: str, at: int) -> bool:
    sides = [recording.sender.get((key, value)) for _, value in recording.order[key][max(at - 1, 0) : at + 2]]
    return len(sides) == 3 and sides[0] is not None and sides[0] is sides[2]


def plant_duplicate(history: History, draw: Draw) -> PlantedHistory:
    """Append a value to its key again.

    With other values between the two offsets, the operations would form a cycle (G0). So either the
    last value is duplicated, or a value without a sender comes before the second offset. The
    duplicate also counts if only a failed or indeterminate operation polls it.
    """
    recording = prepare(history, draw)
    key = draw(appendable_keys(recording))
    end, process = recording.next_offset(key) + draw(range(3)), recording.fresh_process()
    last = recording.order[key][-1]
    how = draw(("read twice", "read by an abort", "read again"))
    type_ = draw(("fail", "info")) if how == "read by an abort" else "ok"
    records = [(end, last[1])]
    if how == "read twice":
        records = [last, *records]
    elif how == "read again":
        acked = {
            (k, v) for operation in recording.operations for k, v, at in operation.sends if at is not None
        }
        last = draw([record for record in recording.order[key] if (key, record[1]) in acked] or [last])
        records = [(end, "other"), (end + 1, last[1])]
    weave_reads(recording, draw, key, read_lines(process, key, records, type_))
    return planted(recording, [key], [last[1]], each=True)


def plant_lost_write(history: History, draw: Draw) -> PlantedHistory:
    """Remove all polls of a committed record, but not those of later records.

    A process that reads both sides of the record would skip it (poll-skip, int-poll-skip). So the
    record is the first one of its key, or two new consumers replace all readers of the key: one
    reads the records before it, the other the records after it.
    """
    recording = prepare(history, draw)
    key, at = draw(list(removable_records(recording)))
    records = recording.read_records(key)
    _, value = records[at]
    if at == 0 and draw((False, True)):
        drop_polled(recording, key, lambda pair: bool(pair[1] == value))
    else:
        drop_polled(recording, key, lambda _: True)
        process = recording.fresh_process()
        parts = [records[:at], records[at + 1 :]]
        strands = [read_lines(process + at, key, part) for at, part in enumerate(parts) if part]
        weave_reads(recording, draw, key, *strands)
    return planted(recording, [key], [value], each=True)


def removable_records(recording: Recording) -> Iterator[tuple[str, int]]:
    """Yield records that stay in the version order without polls, except the last record."""
    for key in read_keys(recording, least=2):
        for at, (_, value) in enumerate(recording.read_records(key)[:-1]):
            sender = recording.sender.get((key, value))
            if sender is None or (key, value, None) in sender.sends:
                continue
            others = [k_v for *k_v, _ in sender.sends if k_v != [key, value]]
            if sender.type == "ok" or any(v in recording.read[str(k)] for k, v in others):
                yield key, at


def plant_unseen(history: History, draw: Draw) -> PlantedHistory:
    """Remove all polls of an acked record and of all later records."""
    recording = prepare(history, draw)
    how = draw(("end not read", "appended", "offset unknown"))
    if how != "end not read":
        key = draw(read_keys(recording))
        offset = None if how == "offset unknown" else recording.next_offset(key)
        process = recording.fresh_process()
        weave(recording.history, draw, send_lines(process, recording.key_as_sent(key), "other", offset))
        return planted(recording, [key], ["other"], each=True)
    acked = [
        (key, offset)
        for key in read_keys(recording)
        for offset, value in recording.read_records(key)
        if (sender := recording.sender.get((key, value))) is not None and sender.type == "ok"
    ]
    # Without these reads, an operation with an unknown outcome may be left with only some of its
    # records read, which would make it a torn transaction.
    torn = {
        (key, offset)
        for key, offset in acked
        for later, value in recording.read_records(key)
        if later >= offset and (sender := recording.sender.get((key, value))) is not None
        if sender.type == "info" and len(sender.sends) > 1
    }
    key, start = draw([place for place in acked if place not in torn])
    unread = [value for offset, value in recording.read_records(key) if offset >= start]
    drop_polled(recording, key, lambda pair: bool(pair[0] >= start))
    return planted(recording, [key], [v for v in unread if recording.sender[key, v].type == "ok"], each=True)


def plant_torn_transaction(history: History, draw: Draw) -> PlantedHistory:
    """Let one record of an operation with an unknown outcome be polled, and the other never.

    It must not matter which of the two keys is polled.
    """
    recording = prepare(history, draw)
    process = recording.fresh_process()
    polled_key, unpolled_key = draw([(PLANTED, PLANTED_TOO), (PLANTED_TOO, PLANTED)])
    sends = [["send", PLANTED, "half"], ["send", PLANTED_TOO, "half"]]
    keys = [PLANTED, PLANTED_TOO]
    lines = [
        *operation_lines(process, "txn", sends, sends, "info"),
        *operation_lines(process + 1, "assign", keys, keys),
        *read_lines(process + 1, polled_key, [(0, "half")]),
        *operation_lines(process + 1, "poll", [["poll"]], [["poll", {}]]),
    ]
    weave(recording.history, draw, lines)
    return planted(recording, [unpolled_key], ["half"], each=True)


def plant_g1a(history: History, draw: Draw) -> PlantedHistory:
    """Let a polled send fail, or let the value of a failed send be polled.

    An operation that also polls is not used: if it fails, its process has to repeat its polls.
    """
    recording = prepare(history, draw)
    failed = [
        (key, value)
        for operation in recording.operations
        if operation.type == "fail"
        for key, value, _ in operation.sends
        if key in appendable_keys(recording)
    ]
    how = draw(("a read send fails", "a failed send is read"))
    if failed and how == "a failed send is read":
        key, value = draw(failed)
        lines = read_lines(recording.fresh_process(), key, [(recording.next_offset(key), value)])
        weave_reads(recording, draw, key, lines)
        return planted(recording, [key], [value], each=True)
    operation = draw([operation for operation in read_sends(recording) if operation.only_sends])
    assert operation.completion is not None
    operation.completion["type"] = "fail"
    read = [(key, value) for key, value, _ in operation.sends if value in recording.read[key]]
    return planted(recording, [key for key, _ in read], [value for _, value in read], each=True)


def plant_precommitted_read(history: History, draw: Draw) -> PlantedHistory:
    """Let an operation poll its own record.

    The operation's process polls the key nowhere else, because it would then repeat or skip
    records.
    """
    recording = prepare(history, draw)
    operation, key, value = draw(
        [
            (operation, key, value)
            for operation in read_sends(recording)
            for key, value, _ in operation.sends
            if operation.type == "ok" and not process_polls(recording, operation.process, key)
        ]
    )
    add_poll(operation, draw, key, recording.order[key][recording.places[key, value]])
    return planted(recording, [key], [value], each=True)


def plant_misrouted(history: History, draw: Draw) -> PlantedHistory:
    """Let a record of one key be read in another one.

    Values first get their keys as prefixes, because different keys may have equal values.
    """
    copy = prepare(history, draw).history
    for line in copy:
        for micro in line.get("value") or ():
            if isinstance(micro, list):
                _prefix_with_key(micro)
    recording = Recording(copy)
    process = recording.fresh_process()
    value = draw(sorted(str(value) for _, value in recording.sender))
    own = send_lines(process, PLANTED, "own", 3)
    weave(
        recording.history, draw, own, read_lines(process + 1, PLANTED, [(draw(range(3)), value), (3, "own")])
    )
    return planted(recording, [PLANTED], [value], each=True)


def _prefix_with_key(micro: list[Any]) -> None:
    if micro[0] == "send" and isinstance(micro[2], list):
        micro[2][1] = f"{micro[1]}/{micro[2][1]}"
    elif micro[0] == "send":
        micro[2] = f"{micro[1]}/{micro[2]}"
    elif micro[0] == "poll" and len(micro) > 1:
        for key, pairs in micro[1].items():
            pairs[:] = [[offset, f"{key}/{value}"] for offset, value in pairs]
