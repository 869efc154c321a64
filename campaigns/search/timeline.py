"""The timeline of a plan: one list of all actions of its script and its faults at fixed times."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from harrow.campaigns.language.plan import Plan, Step
from harrow.cluster_model.fields import fields_of, with_fields
from harrow.cluster_model.lazy_dataclass import dataclass, replace
from harrow.faults.action import Action
from harrow.faults.fault import Fault
from harrow.faults.injection import At, Injection

A = TypeVar("A")
Markers = tuple[type[Any], ...]
"""Kinds of fields (`harrow.cluster_model.fields`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """An action at a time, from the plan's script if ``scripted``, otherwise from its faults."""

    at_us: int
    action: Action
    scripted: bool = True

    def is_fault(self) -> bool:
        return isinstance(self.action, Fault)


def timeline(plan: Plan) -> tuple[Moment, ...]:
    """Return the actions at fixed times. A script with conditions, or a random fault, has none."""
    moments: list[Moment] = []
    if _is_timed(plan):
        for step in plan.script:
            assert step.at_us is not None
            moments += [Moment(at_us=step.at_us, action=action) for action in step.actions]
    for injection in plan.faults:
        if _is_single(injection) and isinstance(injection.timing, At):
            moments.append(
                Moment(at_us=injection.timing.at_us[0], action=injection.faults[0], scripted=False)
            )
    return tuple(sorted(moments, key=lambda moment: moment.at_us))


def with_timeline(plan: Plan, moments: Iterable[Moment]) -> Plan:
    """Return the plan with these moments in place of its timeline.

    Actions without a fixed time remain as they are.
    """
    ordered = sorted(moments, key=lambda moment: moment.at_us)
    script = _steps(m for m in ordered if m.scripted) if _is_timed(plan) else plan.script
    faults = tuple(
        Injection(timing=At(at_us=(moment.at_us, moment.at_us)), faults=(moment.action,))  # type: ignore[arg-type]  # not scripted: a fault
        for moment in ordered
        if not moment.scripted
    )
    rest = tuple(injection for injection in plan.faults if not _is_single(injection))
    return replace(plan, script=script, faults=(*faults, *rest))


def with_actions(plan: Plan, change: Callable[[Action], Action]) -> Plan:
    return with_timeline(plan, [replace(moment, action=change(moment.action)) for moment in timeline(plan)])


def with_one_fault(plan: Plan, simpler: Callable[[Fault], Iterable[Fault]]) -> Iterator[Plan]:
    """Yield plans in which a simpler fault replaces one of the plan's faults."""
    moments = timeline(plan)
    for place, moment in enumerate(moments):
        if isinstance(moment.action, Fault):
            for fault in simpler(moment.action):
                changed = replace(moment, action=fault)
                yield with_timeline(plan, (*moments[:place], changed, *moments[place + 1 :]))


def values_of(action: Action, markers: Markers) -> Iterator[Any]:
    """Yield the values of an action's fields of these kinds."""
    for item in fields_of(type(action)):
        if issubclass(item.kind, markers):
            value = item.value_in(action)
            yield from value if isinstance(value, tuple) else (value,)


def with_values(action: A, markers: Markers, change: Callable[[Any], Any]) -> A:
    """Return an action with changed values in fields of these kinds."""
    changed: dict[str, Any] = {}
    for item in fields_of(type(action)):
        if issubclass(item.kind, markers):
            value = item.value_in(action)
            changed[item.attribute] = tuple(map(change, value)) if isinstance(value, tuple) else change(value)
    return with_fields(action, changed)


def _steps(moments: Iterable[Moment]) -> tuple[Step, ...]:
    """Return one step for all actions at the same time."""
    together: dict[int, list[Action]] = {}
    for moment in moments:
        together.setdefault(moment.at_us, []).append(moment.action)
    return tuple(Step(at_us=at_us, actions=tuple(actions)) for at_us, actions in together.items())


def _is_timed(plan: Plan) -> bool:
    return all(step.at_us is not None and step.after_us is None and step.when is None for step in plan.script)


def _is_single(injection: Injection) -> bool:
    timing = injection.timing
    is_fixed = isinstance(timing, At) and timing.at_us[0] == timing.at_us[1]
    is_one = len(injection.faults) == 1 and injection.together == 1
    return is_fixed and is_one and not injection.is_sequence() and injection.stop_when is None
