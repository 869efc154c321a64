"""What a plan asks a target to show: the conditions that it waits for and asserts."""

from collections.abc import Iterator

from harrow.campaigns.language.plan import Plan
from harrow.cluster_model.fields import ConditionMarker, all_fields_of
from harrow.faults.condition import Condition
from harrow.faults.injection import When


def conditions_of(plan: Plan) -> Iterator[Condition]:
    """Yield every condition of a plan, wherever it stands."""
    found = [step.when for step in plan.script]
    found += [
        item.of(action)
        for step in plan.script
        for action in step.actions
        for item in all_fields_of(type(action))
        if item.kind is ConditionMarker
    ]
    found += [i.timing.condition for i in plan.faults if isinstance(i.timing, When)]
    found += [injection.stop_when for injection in plan.faults]
    found.append(plan.expect.final)
    yield from (condition for condition in found if condition is not None)


def awaited_events(plan: Plan) -> set[str]:
    """Return the events that conditions ask for: those of which there are very many a trace has for them alone."""
    return {pattern.event for condition in conditions_of(plan) for pattern in condition.patterns()}
