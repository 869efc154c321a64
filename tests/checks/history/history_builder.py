"""Builders of histories: each call returns the invocation and the completion of an operation."""

import json
from typing import Any

from harrow.campaigns.record.history_file import read_history
from harrow.checks.finding import Verdict
from harrow.checks.history.judge import FINDINGS_MAX, judge_history
from harrow.checks.stated_settings import StatedSettings

Line = dict[str, Any]
Operation = list[Line]
Micro = list[Any]


def send(key: str | int, value: str | int, offset: int | None = None) -> Micro:
    return ["send", key, value if offset is None else [offset, value]]


def poll(key: str, *records: tuple[int, str | int]) -> Micro:
    return ["poll", {key: [list(record) for record in records]}]


def invoked(micro: Micro) -> Micro:
    if micro[0] == "poll":
        return ["poll"]
    written = micro[2]
    return ["send", micro[1], written[1] if isinstance(written, list) else written]


def operation(process: int, type_: str, *micros: Micro, rebalanced: tuple[str, ...] = ()) -> Operation:
    """Return an invocation and its completion; an operation that mixes sends and polls is a
    transaction.
    """
    kinds = {micro[0] for micro in micros}
    f = kinds.pop() if len(kinds) == 1 and (type_ == "ok" or "poll" not in kinds) else "txn"
    lines: Operation = [
        {"process": process, "type": "invoke", "f": f, "value": [invoked(micro) for micro in micros]},
        {"process": process, "type": type_, "f": f, "value": list(micros)},
    ]
    if rebalanced:
        lines[1]["rebalance-log"] = [{"keys": [key]} for key in rebalanced]
    return lines


def ok(process: int, *micros: Micro, rebalanced: tuple[str, ...] = ()) -> Operation:
    return operation(process, "ok", *micros, rebalanced=rebalanced)


def fail(process: int, *micros: Micro) -> Operation:
    return operation(process, "fail", *micros)


def info(process: int, *micros: Micro) -> Operation:
    return operation(process, "info", *micros)


def assign(process: int, *keys: str | int, f: str = "assign", type_: str = "ok") -> Operation:
    return [{"process": process, "type": kind, "f": f, "value": list(keys)} for kind in ("invoke", type_)]


def subscribe(process: int, *keys: str | int) -> Operation:
    return assign(process, *keys, f="subscribe")


def judge(
    *operations: Operation, findings_max: Any = FINDINGS_MAX, demanded: Any = (), **settings: Any
) -> Verdict:
    """Judge a history; *settings* are those of `harrow.checks.stated_settings`."""
    lines = [line for lines in operations for line in lines]
    numbered = [{"index": at, **line, "time": at * 1_000} for at, line in enumerate(lines)]
    history = read_history([json.dumps(line).encode() + b"\n" for line in numbered], "history")
    return judge_history(history, StatedSettings(**settings), demanded=demanded, findings_max=findings_max)


def anomalies(*operations: Operation) -> dict[str, list[tuple[str, str | int | None]]]:
    """Return the partitions and values of all findings, by anomaly."""
    return {
        name: [(finding.partition, finding.value) for finding in result.findings]
        for name, result in judge(*operations).rules.items()
        if result.findings
    }


# The consumer that reads everything, including records that the history does not send.
ALL = 99
