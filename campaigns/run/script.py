"""Takes the steps of a campaign's script, in order, each when its time and condition have come."""

from harrow.campaigns.language.plan import Step
from harrow.campaigns.run.fault_injector import FaultInjector
from harrow.campaigns.run.run_result import MissedExpectation
from harrow.campaigns.run.target import Target
from harrow.faults.action import Action


class Script:
    """Where a run is in its script, and who takes its actions (`harrow.faults.action.Operator`)."""

    def __init__(self, steps: tuple[Step, ...], target: Target, injector: FaultInjector) -> None:
        self._steps = steps
        self._target = target
        self.observer = target.observer
        self.sender = target.clients.sender
        self.elect_preferred_leaders = target.elect_preferred_leaders
        self.inject = injector.inject
        self._next = 0
        self._last_step_us = 0
        self.missed: list[MissedExpectation] = []
        self.operated: list[tuple[int, Action]] = []

    def is_finished(self) -> bool:
        """Return whether every step has been taken."""
        return self._next == len(self._steps)

    def advance(self) -> None:
        """Take the steps whose time and condition have come."""
        while self._next < len(self._steps) and self._is_due(self._steps[self._next]):
            step = self._steps[self._next]
            self._next += 1
            next_position = self._position_after(step)
            for action in step.actions:
                self._take(action, step.line)
            self._last_step_us = self._target.now_us
            self.observer.step_taken(next_position)

    def _position_after(self, step: Step) -> int:
        """Return from where on the trace counts for the next step.

        From behind the events that this step waited for: what happened in the same
        instant, and what this step does, happens after them.
        """
        matched = None if step.when is None else step.when.matched_position(self.observer)
        return len(self._target.trace.events) if matched is None else matched

    def due_us(self) -> int | None:
        """Return when the next step is due by the clock; None when it waits for a condition only."""
        if self.is_finished():
            return None
        step = self._steps[self._next]
        due = []
        if step.at_us is not None:
            due.append(step.at_us)
        if step.after_us is not None:
            due.append(self._last_step_us + step.after_us)
        return max(due) if due else None

    def waits_for(self) -> str:
        """Return in words which step has not been taken, and what is missing for it."""
        step = self._steps[self._next]
        missing = [] if step.when is None else step.when.mismatches(self.observer)
        where = f"step {self._next + 1} of the script" + (f" (line {step.line})" if step.line else "")
        return f"{where} waited in vain: {'; '.join(missing) or 'its time did not come'}"

    def _is_due(self, step: Step) -> bool:
        due_us = self.due_us()
        if due_us is not None and self._target.now_us < due_us:
            return False
        return step.when is None or step.when.holds(self.observer)

    def _take(self, action: Action, line: int) -> None:
        if not action.is_noted:
            self.operated.append((self._target.now_us, action))
        self.missed += [MissedExpectation(line=line, message=message) for message in action.take(self)]
