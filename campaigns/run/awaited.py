"""Lists the conditions of a plan, and the trace events that they match."""

from collections.abc import Iterator

from harrow.campaigns.language.plan import Plan
from harrow.cluster_model.fields import ConditionMarker, all_fields_of
from harrow.faults.condition import Condition
from harrow.faults.injection import When


def conditions_of(plan: Plan) -> Iterator[Condition]:
    """Yield every condition in a plan: of its steps, actions and faults, and of its end state."""
    conditions = [step.when for step in plan.script]
    conditions += [
        item.value_in(action)
        for step in plan.script
        for action in step.actions
        for item in all_fields_of(type(action))
        if item.kind is ConditionMarker
    ]
    conditions += [i.timing.condition for i in plan.faults if isinstance(i.timing, When)]
    conditions += [injection.stop_when for injection in plan.faults]
    conditions.append(plan.expect.final)
    yield from (condition for condition in conditions if condition is not None)


def awaited_events(plan: Plan) -> set[str]:
    """Return the names of the events that the conditions of a plan can match.

    The trace records some very frequent events only if they are in this set.
    """
    return {pattern.event for condition in conditions_of(plan) for pattern in condition.patterns()}
