"""Settings as somebody states them for a history of which nothing else is known."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedSettings:
    """What a promise depends on. Whatever is not stated is as strict as Kafka can be.

    ``acks`` is ``"0"``, ``"1"`` or ``"all"``; ``flushed`` says that no acked record was only in
    memory when a machine lost power; ``idempotence`` is false for releases before 0.11.
    """

    acks: str = "all"
    idempotence: bool = True
    max_in_flight: int = 5
    transactional: bool = True
    read_committed: bool = True
    unclean_leader_election: bool = False
    flushed: bool = True

    def is_strictest(self) -> bool:
        """Return whether nothing was stated that loosens a promise."""
        return self == StatedSettings()


def _acks(text: str) -> dict[str, Any]:
    if text in ("all", "-1"):
        return {"acks": "all"}
    if text in ("0", "1"):
        return {"acks": text}
    raise ValueError("all, -1, 1 or 0")


def _boolean(name: str) -> Callable[[str], dict[str, Any]]:
    def read(text: str) -> dict[str, Any]:
        if text not in ("true", "false"):
            raise ValueError("true or false")
        return {name: text == "true"}

    return read


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise ValueError("a whole number of at least 1")
    return int(text)


def _in_flight(text: str) -> dict[str, Any]:
    return {"max_in_flight": _positive(text)}


def _isolation(text: str) -> dict[str, Any]:
    if text not in ("read_committed", "read_uncommitted"):
        raise ValueError("read_committed or read_uncommitted")
    return {"read_committed": text == "read_committed"}


def _flush(text: str) -> dict[str, Any]:
    return {"flushed": _positive(text) == 1}


def _transactional_id(text: str) -> dict[str, Any]:
    return {"transactional": text not in ("", "null", "none")}


def _min_isr(text: str) -> dict[str, Any]:
    """Accept the setting: by itself it permits nothing, so nothing follows from it."""
    _positive(text)
    return {}


def _release(text: str) -> dict[str, Any]:
    """Read a release; before 0.11 there is neither idempotence nor a transaction (KIP-98)."""
    parts = text.split(".")
    if len(parts) < 2 or not all(part.isascii() and part.isdigit() for part in parts):
        raise ValueError("a release such as 2.4")
    if tuple(map(int, parts[:2])) >= (0, 11):
        return {}
    return {"idempotence": False, "transactional": False}


_READ: Final[Mapping[str, Callable[[str], dict[str, Any]]]] = {
    "acks": _acks,
    "enable.idempotence": _boolean("idempotence"),
    "isolation.level": _isolation,
    "log.flush.interval.messages": _flush,
    "kafka": _release,
    "max.in.flight.requests.per.connection": _in_flight,
    "min.insync.replicas": _min_isr,
    "transactional.id": _transactional_id,
    "unclean.leader.election.enable": _boolean("unclean_leader_election"),
}

STATABLE: Final = tuple(_READ)
"""The Kafka settings that can be stated, and the release as `kafka`."""


def state(settings: StatedSettings, key: str, text: str) -> StatedSettings:
    """Return *settings* with one Kafka setting as stated.

    Raises ``KeyError`` for a setting on which no promise depends, and ``ValueError``, with what
    would be right, for a value that it cannot have.
    """
    changes = _READ[key](text.strip())
    assert changes.keys() <= {item.name for item in fields(settings)}
    return replace(settings, **changes)
