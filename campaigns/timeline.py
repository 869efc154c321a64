"""What a plan does at fixed times, as one list: what is scripted and what strikes from outside."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from campaigns.plan import Action, ElectPreferredLeaders, Expect, Plan, RestartProducer, Send, Step, Wait
from faults.injection import At, Injection


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One action at its time; ``scripted`` says where it stands in the plan."""

    at_us: int
    action: Action
    scripted: bool = True

    def is_fault(self) -> bool:
        """Return whether something goes wrong here."""
        return not isinstance(self.action, (Send, RestartProducer, ElectPreferredLeaders, Expect, Wait))


def timeline(plan: Plan) -> tuple[Moment, ...]:
    """Return what has a fixed time; a script that waits for something, and faults that are drawn, have none."""
    found: list[Moment] = []
    if _is_timed(plan):
        for step in plan.script:
            assert step.at_us is not None
            found += [Moment(at_us=step.at_us, action=action) for action in step.actions]
    for injection in plan.faults:
        if _is_single(injection) and isinstance(injection.timing, At):
            found.append(Moment(at_us=injection.timing.at_us, action=injection.faults[0], scripted=False))
    return tuple(sorted(found, key=lambda moment: moment.at_us))


def with_timeline(plan: Plan, moments: Iterable[Moment]) -> Plan:
    """Return the plan with these moments for those that `timeline` gave; what has no fixed time stays."""
    ordered = sorted(moments, key=lambda moment: moment.at_us)
    script = _steps(m for m in ordered if m.scripted) if _is_timed(plan) else plan.script
    faults = tuple(
        Injection(timing=At(at_us=moment.at_us), faults=(moment.action,))  # type: ignore[arg-type]  # not scripted: a fault
        for moment in ordered
        if not moment.scripted
    )
    rest = tuple(injection for injection in plan.faults if not _is_single(injection))
    return replace(plan, script=script, faults=(*faults, *rest))


def _steps(moments: Iterable[Moment]) -> tuple[Step, ...]:
    """Return steps, one for all that happens at the same time."""
    together: dict[int, list[Action]] = {}
    for moment in moments:
        together.setdefault(moment.at_us, []).append(moment.action)
    return tuple(Step(at_us=at_us, actions=tuple(actions)) for at_us, actions in together.items())


def _is_timed(plan: Plan) -> bool:
    return all(step.at_us is not None and step.after_us is None and step.when is None for step in plan.script)


def _is_single(injection: Injection) -> bool:
    return isinstance(injection.timing, At) and len(injection.faults) == 1 and injection.together == 1
