"""Checks the format of an operation in a recorded history, which is that of Jepsen.

An operation has a ``process``, a ``type`` (it is invoked, or how it completed), a function ``f``
such as ``send``, and a ``value``. The value of a ``send``, ``poll`` or ``txn`` is a list of
micro-operations: ``["send", key, value]`` and ``["poll", {key: [[offset, value], ...]}]``. A key is
a partition.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from harrow.campaigns.language.spelling import suggestion
from harrow.cluster_model.history import (
    ASSIGN,
    COMMIT,
    FAIL,
    INFO,
    INVOKE,
    OK,
    POLL,
    SEND,
    STORE,
    SUBSCRIBE,
    TXN,
)

TYPES: Final = frozenset({INVOKE, OK, FAIL, INFO})
JUDGED: Final = frozenset({SEND, POLL, TXN})
"""The operations that send or poll."""
ASSIGNING: Final = frozenset({ASSIGN, SUBSCRIBE})
NUMBER_END: Final = 2**63
"""The exclusive upper bound of times and indices."""

_NAMED: Final = (SEND, POLL, TXN, ASSIGN, SUBSCRIBE, "crash", COMMIT, STORE)
_OTHERS: Final = frozenset({"crash", COMMIT, STORE, "debug-topic-partitions"})
"""Operations that the rules ignore. Only Jepsen's own tests write the last one."""
_SHOWN_MAX: Final = 60
_SEND_LENGTH: Final = 3


class MalformedOperation(Exception):
    """A malformed operation. ``field`` is the wrong field; empty if it is the whole operation."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(reason)
        self.field = field
        self.reason = reason


def check_operation(operation: Any) -> None:
    """Raise `MalformedOperation` with the first mistake in an operation."""
    if not isinstance(operation, dict):
        raise MalformedOperation("", f"an operation is an object, not {_kind(operation)}")
    for field in ("index", "time"):
        number = operation.get(field)
        if number is not None and (not _is_count(number) or number >= NUMBER_END):
            raise MalformedOperation(
                field, f"`{field}` is a whole number from 0 to 2^63 - 1, not {_shown(number)}"
            )
    if _is_of_client(operation):
        _check_word(operation, "type", sorted(TYPES))
        _check_word(operation, "f", _NAMED)
        _check_value(operation)


def offsets(value: Iterable[Any]) -> Iterator[int]:
    """Yield the offsets that the micro-operations of an operation name."""
    for micro in value:
        if micro[0] == SEND:
            if isinstance(micro[2], list) and micro[2][0] is not None:
                yield micro[2][0]
        elif len(micro) > 1:
            for pairs in micro[1].values():
                yield from (offset for offset, _ in pairs)


def _is_of_client(operation: Mapping[str, Any]) -> bool:
    """Return whether a client did an operation. Processes other than clients have names."""
    if "process" not in operation:
        raise MalformedOperation("", "an operation needs a field `process`")
    process = operation["process"]
    if not isinstance(process, str) and not (_is_count(process) and process < NUMBER_END):
        raise MalformedOperation(
            "process",
            f"`process` is a whole number from 0 on, or a name if it is not a client, not {_shown(process)}",
        )
    return isinstance(process, int)


def _check_value(operation: Mapping[str, Any]) -> None:
    f, value = operation["f"], operation.get("value")
    if f in JUDGED | ASSIGNING and not isinstance(value, list):
        raise MalformedOperation("value", f"the `value` of `{f}` is a list, not {_shown(value)}")
    if f in ASSIGNING:
        _check_names("value", value)
    elif f in JUDGED:
        for micro in value or ():
            _check_micro(f, micro)
        _check_rebalance_log(operation.get("rebalance-log"))


def _check_word(operation: Mapping[str, Any], field: str, words: Iterable[str]) -> None:
    if field not in operation:
        raise MalformedOperation("", f"an operation needs a field `{field}`")
    word = operation[field]
    choices = tuple(words)
    if not isinstance(word, str):
        raise MalformedOperation(field, f"`{field}` is one of {', '.join(choices)}, not {_shown(word)}")
    if word not in choices and word not in _OTHERS:
        raise MalformedOperation(field, f"unknown `{field}` {_shown(word)}{suggestion(word, choices)}")


def _check_micro(f: str, micro: Any) -> None:
    if not isinstance(micro, list) or not micro:
        raise MalformedOperation(
            "value", f'a micro-operation is a list such as ["send", ...], not {_shown(micro)}'
        )
    kind = micro[0]
    if kind not in (SEND, POLL):
        raise MalformedOperation("value", f"a micro-operation is a `send` or a `poll`, not {_shown(kind)}")
    if f not in (kind, TXN):
        raise MalformedOperation("value", f"`{f}` cannot contain `{kind}`; an operation with both is a `txn`")
    if kind == SEND:
        if len(micro) != _SEND_LENGTH:
            raise MalformedOperation("value", f'a send is ["send", key, value], not {_shown(micro)}')
        _check_names("value", [micro[1]])
        pair = micro[2] if isinstance(micro[2], list) else [None, micro[2]]
        _check_pair(pair, must_have_offset=False)
    elif len(micro) > 2 or (len(micro) == 2 and not isinstance(micro[1], dict)):
        raise MalformedOperation(
            "value", f'a poll is ["poll"] or ["poll", {{key: pairs}}], not {_shown(micro)}'
        )
    else:
        for pairs in micro[1].values() if len(micro) == 2 else ():
            if not isinstance(pairs, list):
                raise MalformedOperation("value", f"polled records are a list of pairs, not {_shown(pairs)}")
            for pair in pairs:
                _check_pair(pair, must_have_offset=True)


def _check_pair(pair: Any, *, must_have_offset: bool) -> None:
    if not isinstance(pair, list) or len(pair) != 2:
        raise MalformedOperation("value", f"a record is a pair [offset, value], not {_shown(pair)}")
    offset, value = pair
    if not _is_count(offset) and (must_have_offset or offset is not None):
        raise MalformedOperation("value", f"an offset is a whole number from 0 on, not {_shown(offset)}")
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise MalformedOperation(
            "value", f"a record's value is a string or a whole number, not {_shown(value)}"
        )


def _check_names(field: str, keys: Any) -> None:
    if not isinstance(keys, list):
        raise MalformedOperation(field, f"keys are a list, not {_shown(keys)}")
    for key in keys:
        if isinstance(key, bool) or not isinstance(key, (str, int)):
            raise MalformedOperation(field, f"a key is a string or a whole number, not {_shown(key)}")


def rebalances(log: Any) -> list[Any]:
    """Return the rebalances in an operation's log. Older Jepsen tests split it into lists."""
    if isinstance(log, dict):
        return [event for part in log.values() for event in part or ()]
    return log or []


def _check_rebalance_log(log: Any) -> None:
    if log is None:
        return
    parts = log.values() if isinstance(log, dict) else [log]
    if not all(part is None or isinstance(part, list) for part in parts):
        raise MalformedOperation("rebalance-log", f"`rebalance-log` is a list, not {_shown(log)}")
    for event in rebalances(log):
        if not isinstance(event, dict) or "keys" not in event:
            raise MalformedOperation(
                "rebalance-log", f'a rebalance is {{"keys": [...]}}, not {_shown(event)}'
            )
        _check_names("rebalance-log", event["keys"])


def _is_count(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 0


def _kind(value: Any) -> str:
    names = {list: "a list", str: "a string", int: "a number", float: "a number", bool: "true or false"}
    return names.get(type(value), "null")


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."
