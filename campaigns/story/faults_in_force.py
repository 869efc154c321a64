"""Tracks the faults in force at any moment of a run."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final

from harrow.campaigns.language.literals import bandwidth, duration, duration_range
from harrow.cluster_model import events
from harrow.cluster_model import fields as kinds
from harrow.cluster_model.events import Event
from harrow.cluster_model.fields import all_fields_of, by_kind
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.topology import node_id
from harrow.cluster_model.trace import TraceEvent, decode
from harrow.faults.catalogue import FAULTS
from harrow.faults.fault import BrokerProcesses, Fault, LastingFault, MessageFault


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultInForce:
    """A fault that struck and has not ended.

    ``details`` come from the trace. ``number`` is the number of its event, ``strike`` its own
    number among the faults that struck. ``left`` is how many more messages it affects, None if no
    number ends it. ``struck`` is the fault itself.
    """

    fault: str
    details: tuple[tuple[str, Any], ...]
    at_us: int
    number: int
    strike: int
    struck: LastingFault
    left: int | None = None

    def detail(self, name: str) -> Any:
        """Return the value of a field, None if the trace has none."""
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

    def _processes_changed(
        self, _: int, _event: events.BrokerStarted | events.BrokerResumed | events.BrokerStopped
    ) -> None:
        """End faults that a change of a process ends, such as a pause when the process dies."""
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
        events.BrokerStarted: _processes_changed,
        events.BrokerResumed: _processes_changed,
        events.BrokerStopped: _processes_changed,
        events.Healed: _heal,
        events.CoreHealed: _heal_core,
    }
    """The handler of each kind of event, called with the event's number and the event."""


_HANDLERS: Final = {kind.name: handler for kind, handler in FaultsInForce.HANDLERS.items()}


def struck_fault(name: str, details: Iterable[tuple[str, Any]]) -> Fault:
    """Rebuild a fault from the details of its strike."""
    by_key = {key: value for key, value in details if value is not None}
    values: dict[str, Any] = {}
    for item in all_fields_of(FAULTS[name]):
        key = item.key or item.attribute
        if key in by_key:
            read = by_kind(_UNITS, item.kind)
            values[item.attribute] = by_key[key] if read is None else read(by_key[key])
    return FAULTS[name](**values)


def _ends(value: Any) -> Any:
    """Return brokers and ends of links with the ids of servers in place of their names."""
    if isinstance(value, tuple):
        return tuple([_ends(item) for item in value])
    server = node_id(value) if isinstance(value, str) else None
    return value if server is None else server


_UNITS: Final[Mapping[type[Any], Callable[[Any], Any]]] = {
    kinds.BrokerMarker: _ends,
    kinds.EndpointMarker: _ends,
    kinds.BandwidthMarker: bandwidth,
    kinds.DurationMarker: duration,
    kinds.DurationRangeMarker: duration_range,
}


def brokers_of(fault: Fault) -> frozenset[int]:
    ends: list[Any] = []
    for item in all_fields_of(type(fault)):
        if issubclass(item.kind, (kinds.BrokerMarker, kinds.BrokerIdMarker, kinds.EndpointMarker)):
            value = item.value_in(fault)
            ends += value if isinstance(value, tuple) else (value,)
    return frozenset(broker for broker in ends if isinstance(broker, int))
