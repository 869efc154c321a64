"""Tracks the faults in force at any moment of a run."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Final

from harrow.campaigns.language.literals import bandwidth, duration, duration_range
from harrow.cluster_model import events
from harrow.cluster_model import fields as kinds
from harrow.cluster_model.events import Event
from harrow.cluster_model.fields import all_fields_of, by_kind
from harrow.cluster_model.lazy_dataclass import dataclass, replace
from harrow.cluster_model.topology import node_id
from harrow.cluster_model.trace import TraceEvent, decode
from harrow.faults.catalogue import FAULTS
from harrow.faults.fault import BrokerProcesses, Fault, LastingFault, MessageFault


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultInForce:
    """A fault that struck and has not ended.

    ``fault`` is its name, ``details`` are its fields in the trace, and ``struck`` is the fault
    itself, rebuilt from them. ``number`` is the ``trace.jsonl`` line of the event with which it
    struck. ``strike`` numbers the faults that struck during the run. ``left`` is how many more
    messages the fault will affect; None if it does not end after a number of messages.
    """

    fault: str
    details: tuple[tuple[str, Any], ...]
    at_us: int
    number: int
    strike: int
    struck: LastingFault
    left: int | None = None

    def detail(self, name: str) -> Any:
        """Return the value of a field of the fault; None if the trace has no such field."""
        return dict(self.details).get(name)


class FaultsInForce:
    """The faults in force, updated event by event. *processes* must be updated first."""

    __slots__ = ("_processes", "faults")

    def __init__(self, processes: BrokerProcesses) -> None:
        self._processes = processes
        self.faults: list[FaultInForce] = []

    def advance(self, event: TraceEvent, number: int) -> None:
        """Apply the next event. *number* is its line of ``trace.jsonl``."""
        handler = _HANDLERS.get(event[1])
        if handler is not None:
            handler(self, number, decode(event))

    def _strike(self, number: int, event: events.FaultStruck) -> None:
        struck = struck_fault(event.fault, event.details)
        self._end(lambda other: struck.ends(other.struck))
        if isinstance(struck, LastingFault) and struck.is_lasting():
            self.faults.append(
                FaultInForce(
                    fault=event.fault,
                    details=event.details,
                    at_us=event.at_us,
                    number=number,
                    strike=event.strike,
                    struck=struck,
                    left=struck.messages() if isinstance(struck, MessageFault) else None,
                )
            )

    def _end_strike(self, _: int, event: events.FaultEnded) -> None:
        self._end(lambda other: other.strike == event.strike)

    def _affect_message(self, _: int, event: events.MessageRuleApplied) -> None:
        for position, fault in enumerate(self.faults):
            if fault.strike == event.strike:
                if fault.left == 1:
                    del self.faults[position]
                elif fault.left is not None:
                    self.faults[position] = replace(fault, left=fault.left - 1)
                return

    def _end_with_processes(
        self, _: int, _event: events.BrokerStarted | events.BrokerResumed | events.BrokerStopped
    ) -> None:
        """End the faults that end because a process starts, resumes or stops.

        A pause, for example, ends when the paused process dies.
        """
        self._end(lambda fault: not fault.struck.is_in_force(self._processes))

    def _heal(self, _: int, _event: events.Healed) -> None:
        self.faults.clear()

    def _heal_core(self, _: int, event: events.CoreHealed) -> None:
        outside = frozenset(self._processes.broker_ids()).difference(event.brokers)
        self._end(lambda fault: not outside & brokers_of(fault.struck))

    def _end(self, is_over: Callable[[FaultInForce], bool]) -> None:
        self.faults = [fault for fault in self.faults if not is_over(fault)]

    HANDLERS: ClassVar[Mapping[type[Event], Callable[..., None]]] = {
        events.FaultStruck: _strike,
        events.FaultEnded: _end_strike,
        events.MessageRuleApplied: _affect_message,
        events.BrokerStarted: _end_with_processes,
        events.BrokerResumed: _end_with_processes,
        events.BrokerStopped: _end_with_processes,
        events.Healed: _heal,
        events.CoreHealed: _heal_core,
    }
    """The handler of each kind of event, called with the event's number and the event."""


_HANDLERS: Final = {kind.name: handler for kind, handler in FaultsInForce.HANDLERS.items()}


def struck_fault(name: str, details: Iterable[tuple[str, Any]]) -> Fault:
    """Rebuild a fault from the details that the trace has of it."""
    by_key = {key: value for key, value in details if value is not None}
    values: dict[str, Any] = {}
    for item in all_fields_of(FAULTS[name]):
        key = item.key or item.attribute
        if key in by_key:
            read = by_kind(_READERS, item.kind)
            values[item.attribute] = by_key[key] if read is None else read(by_key[key])
    return FAULTS[name](**values)


def _with_server_ids(value: Any) -> Any:
    """Return brokers, or the ends of links, with each server's name replaced by its id."""
    if isinstance(value, tuple):
        return tuple([_with_server_ids(item) for item in value])
    server = node_id(value) if isinstance(value, str) else None
    return value if server is None else server


_READERS: Final[Mapping[type[Any], Callable[[Any], Any]]] = {
    kinds.BrokerMarker: _with_server_ids,
    kinds.EndpointMarker: _with_server_ids,
    kinds.BandwidthMarker: bandwidth,
    kinds.DurationMarker: duration,
    kinds.DurationRangeMarker: duration_range,
}
"""How to turn a value in a trace back into the value of a fault's field, by kind of field."""


def brokers_of(fault: Fault) -> frozenset[int]:
    """Return the ids of all brokers that a fault names, also as an end of a link."""
    ends: list[Any] = []
    for item in all_fields_of(type(fault)):
        if issubclass(item.kind, (kinds.BrokerMarker, kinds.BrokerIdMarker, kinds.EndpointMarker)):
            value = item.value_in(fault)
            ends += value if isinstance(value, tuple) else (value,)
    return frozenset(broker for broker in ends if isinstance(broker, int))
