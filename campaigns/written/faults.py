"""The section ``faults``, and faults wherever they stand."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, fields
from typing import Any, Final

from campaigns.generated_sections import fault_fields
from campaigns.literal_texts import duration_range_text, duration_text, probability_text, rate_text
from campaigns.written.conditions import condition_map
from campaigns.yaml_text import Items, Rows, Word
from faults import fields as markers
from faults.fault import Fault
from faults.injection import At, Every, Injection, When

_TEXTS: Final[dict[type | None, Callable[[Any], str]]] = {
    markers.DurationMarker: duration_text,
    markers.DurationRangeMarker: duration_range_text,
    markers.ProbabilityMarker: probability_text,
}


def fault_entry(fault: Fault) -> Any:
    """Return a fault: its name, with the fields that are not as by default."""
    known: tuple[Field[Any], ...] = fields(fault)  # type: ignore[arg-type]  # every fault is a dataclass
    defaults = {item.name: item.default for item in known}
    given: dict[str, Any] = {}
    for item in fault_fields(type(fault)):
        value = getattr(fault, item.attribute)
        if value != defaults[item.attribute]:
            text = _TEXTS.get(item.marker)
            given[item.key] = value if text is None else Word(text(value))
    return {fault.name: given} if given else fault.name


def injection_rows(injection: Injection, duration_us: int) -> Rows:
    """Return an entry of ``faults``."""
    rows = _timing(injection, duration_us)
    entries = [fault_entry(fault) for fault in injection.faults]
    if injection.together != 1:
        rows["together"] = injection.together
    rows |= {"do": entries[0]} if len(entries) == 1 else {"any_of": listed(entries)}
    return rows


def listed(entries: Iterable[Any]) -> Items:
    """Return actions or faults for a list in which each stands on a line, behind its name."""
    return Items(Rows(entry) if isinstance(entry, Mapping) else entry for entry in entries)


def _timing(injection: Injection, duration_us: int) -> Rows:
    timing = injection.timing
    if isinstance(timing, At):
        return Rows(at=Word(duration_text(timing.at_us)))
    if isinstance(timing, When):
        times = {} if timing.times == 1 else {"times": timing.times}
        return Rows(when=condition_map(timing.condition), **times)
    rows = Rows()
    if isinstance(timing, Every):
        rows["every"] = Word(duration_text(timing.period_us))
    else:
        rows["rate"] = Word(rate_text(timing.mean_us))
    if timing.start_us:
        rows["from"] = Word(duration_text(timing.start_us))
    if timing.stop_us != duration_us:
        rows["until"] = Word(duration_text(timing.stop_us))
    return rows
