"""Reads the settings that a user states for a history, because a history does not show them."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Final

from harrow.cluster_model.lazy_dataclass import dataclass, replace

_Reader = Callable[[str], dict[str, Any]]
"""A function that returns the fields of `StatedSettings` that a setting's text implies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedSettings:
    """The settings on which promises depend.

    If the user does not state a setting, it has Kafka's strictest value. ``acks`` is ``"0"``,
    ``"1"`` or ``"all"``. ``flushed`` says that every acked record was flushed to disk.
    ``idempotence`` is false for releases before 0.11.
    """

    acks: str = "all"
    idempotence: bool = True
    max_in_flight: int = 5
    transactional: bool = True
    read_committed: bool = True
    unclean_leader_election: bool = False
    flushed: bool = True

    def is_strictest(self) -> bool:
        """Return whether no stated setting weakens a promise."""
        return self == StatedSettings()


def _choice(changes: Mapping[str, dict[str, Any]]) -> _Reader:
    """Return the reader of a setting that has few values.

    *changes* maps each valid text to the fields that it implies.
    """
    *first, last = changes

    def read(text: str) -> dict[str, Any]:
        if text not in changes:
            raise ValueError(f"{', '.join(first)} or {last}")
        return changes[text]

    return read


def _boolean(name: str) -> _Reader:
    return _choice({"true": {name: True}, "false": {name: False}})


def _number(change: Callable[[int], dict[str, Any]]) -> _Reader:
    """Return the reader of a number of at least 1; *change* returns the fields that it implies."""

    def read(text: str) -> dict[str, Any]:
        if not text.isascii() or not text.isdigit() or int(text) < 1:
            raise ValueError("a whole number of at least 1")
        return change(int(text))

    return read


def _release(text: str) -> dict[str, Any]:
    """Read a release; before 0.11 there are no idempotence and no transactions (KIP-98)."""
    parts = text.split(".")
    if len(parts) < 2 or not all(part.isascii() and part.isdigit() for part in parts):
        raise ValueError("a release such as 2.4")
    if tuple(map(int, parts[:2])) >= (0, 11):
        return {}
    return {"idempotence": False, "transactional": False}


_READERS: Final[Mapping[str, _Reader]] = {
    "acks": _choice({text: {"acks": text.replace("-1", "all")} for text in ("all", "-1", "1", "0")}),
    "enable.idempotence": _boolean("idempotence"),
    "isolation.level": _choice(
        {"read_committed": {"read_committed": True}, "read_uncommitted": {"read_committed": False}}
    ),
    "log.flush.interval.messages": _number(lambda messages: {"flushed": messages == 1}),
    "kafka": _release,
    "max.in.flight.requests.per.connection": _number(lambda requests: {"max_in_flight": requests}),
    # This setting permits no anomaly by itself, so it implies no field.
    "min.insync.replicas": _number(lambda _: {}),
    "transactional.id": lambda text: {"transactional": text not in ("", "null", "none")},
    "unclean.leader.election.enable": _boolean("unclean_leader_election"),
}

STATABLE: Final = tuple(_READERS)
"""The keys that a user can state: Kafka settings, and `kafka` for the release."""


def state(settings: StatedSettings, key: str, text: str) -> StatedSettings:
    """Return *settings* with one stated Kafka setting.

    Raises ``KeyError`` for a setting on which no promise depends. For an invalid value, raises
    ``ValueError`` with the valid values.
    """
    changes = _READERS[key](text.strip())
    assert changes.keys() <= {item.name for item in fields(settings)}
    return replace(settings, **changes)
