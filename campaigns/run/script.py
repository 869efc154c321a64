"""Runs the steps of a campaign's script in order, each when it is due and its condition holds."""

from typing import NamedTuple

from harrow.campaigns.language.plan import Step
from harrow.campaigns.run.injection.fault_injector import FaultInjector
from harrow.campaigns.run.run_result import MissedExpectation, TimedOutStep
from harrow.campaigns.run.targets.target import Target
from harrow.faults.action import Action
from harrow.faults.actions import Expect
from harrow.faults.condition import Condition
from harrow.faults.facts import Fact, HasNotHappened
from harrow.faults.observer import Observer


class _AwaitedExpectation(NamedTuple):
    """An expectation that a polled target has not met yet, and when to stop polling for it."""

    action: Expect
    line: int
    until_us: int


def _final_contradictions(fact: Fact, observer: Observer) -> list[str]:
    return fact.mismatches(observer) if isinstance(fact, HasNotHappened) else []


class Script:
    """A script in execution. It knows the next step, and performs actions as their `Operator`.

    With *step_limit_us*, a step that has waited that long runs without its condition. So in a trial
    of a remedy (`harrow.campaigns.run.trial`) the faults strike even if the script waits for
    something that the remedy prevents. ``timed_out_steps`` lists the steps that ran like this.
    ``waited_us`` is the longest wait of a step.
    """

    def __init__(
        self,
        steps: tuple[Step, ...],
        target: Target,
        injector: FaultInjector,
        step_limit_us: int | None = None,
    ) -> None:
        self._steps = steps
        self._step_limit_us = step_limit_us
        self.timed_out_steps: list[TimedOutStep] = []
        self.waited_us = 0
        self._target = target
        self.observer = target.observer
        self.sender = target.clients.sender
        self.administrator = target
        self.inject = injector.inject
        self._next = 0
        self._last_step_us = 0
        self.missed: list[MissedExpectation] = []
        self.unseen: list[MissedExpectation] = []
        self._awaited_expectations: list[_AwaitedExpectation] = []
        self.other_actions: list[tuple[int, Action]] = []

    @property
    def steps_taken(self) -> int:
        return self._next

    def is_finished(self) -> bool:
        return self._next == len(self._steps)

    def advance(self) -> None:
        if self._awaited_expectations:
            self._poll_expectations()
        while self._next < len(self._steps) and self._is_due(self._steps[self._next]):
            step = self._steps[self._next]
            if step.when is not None:
                self._note_wait(step, step.when)
            self._next += 1
            next_position = self._position_after(step)
            for action in step.actions:
                self._perform(action, step.line)
            self._last_step_us = self._target.now_us
            self.observer.step_taken(next_position)

    def _position_after(self, step: Step) -> int:
        """Return the position in the trace from which the condition of the next step sees events.

        This position is directly behind the events that *step* waited for. So the next step also
        sees later events of the same instant, and events that *step* causes.
        """
        matched = None if step.when is None else step.when.matched_position(self.observer)
        return len(self._target.trace.events) if matched is None else matched

    def _poll_expectations(self) -> None:
        """Check the expectations that the target has not met yet. No step waits for them."""
        for awaited in list(self._awaited_expectations):
            messages = awaited.action.take(self)
            if not messages or self._target.now_us >= awaited.until_us:
                self._awaited_expectations.remove(awaited)
                self.unseen += [MissedExpectation(line=awaited.line, message=message) for message in messages]

    def is_polling(self) -> bool:
        return bool(self._awaited_expectations)

    def stop_polling(self) -> None:
        """Report each expectation that the target has still not met."""
        for awaited in self._awaited_expectations:
            self.unseen += [
                MissedExpectation(line=awaited.line, message=message) for message in awaited.action.take(self)
            ]
        self._awaited_expectations.clear()

    def is_overdue(self) -> bool:
        """Return whether the next step has waited longer than the target allows."""
        patience = self._target.patience
        if patience is None or self.is_finished():
            return False
        return self._target.now_us > self._waits_since_us() + patience.step_us

    def due_us(self) -> int | None:
        """Return the time at which the next step is due; None if it waits only for a condition."""
        if self.is_finished():
            return None
        step = self._steps[self._next]
        due = []
        if step.at_us is not None:
            due.append(step.at_us)
        if step.after_us is not None:
            due.append(self._last_step_us + step.after_us)
        return max(due) if due else None

    def wakes_at_us(self) -> int | None:
        """Return when to check the next step even if nothing happens; None if never."""
        due_us = self.due_us()
        is_in_future = due_us is not None and due_us > self._target.now_us
        return due_us if is_in_future or self.is_finished() else self._wait_limit_us()

    def unfinished_text(self) -> str:
        """Describe the step that did not run, and say why."""
        where, missing = self._next_step()
        return f"{where} waited in vain: {missing or 'its time did not come'}"

    def waiting_text(self) -> str:
        """Describe the next step, and what it still waits for."""
        where, missing = self._next_step()
        return f"{where}: {missing or 'its time has not come'}"

    def _next_step(self) -> tuple[str, str]:
        step = self._steps[self._next]
        missing = [] if step.when is None else step.when.mismatches(self.observer)
        where = f"step {self._next + 1} of the script" + (f" (line {step.line})" if step.line else "")
        return where, "; ".join(missing)

    def _wait_limit_us(self) -> int | None:
        """Return when the next step stops waiting for its condition; None if it never does."""
        if self._step_limit_us is None:
            return None
        return self._waits_since_us() + self._step_limit_us

    def _waits_since_us(self) -> int:
        return max(self._last_step_us, self.due_us() or 0)

    def _note_wait(self, step: Step, when: Condition) -> None:
        """Record how long a step waited, and whether its condition still does not hold."""
        waited_us = self._target.now_us - self._waits_since_us()
        self.waited_us = max(self.waited_us, waited_us)
        if self._step_limit_us is not None and not when.holds(self.observer):
            missing = "; ".join(when.mismatches(self.observer))
            self.timed_out_steps.append(
                TimedOutStep(number=self._next + 1, line=step.line, waited_us=waited_us, missing=missing)
            )

    def _is_due(self, step: Step) -> bool:
        now_us, due_us = self._target.now_us, self.due_us()
        if due_us is not None and now_us < due_us:
            return False
        if step.when is None or step.when.holds(self.observer):
            return True
        wait_limit_us = self._wait_limit_us()
        return wait_limit_us is not None and now_us >= wait_limit_us

    def act(self, action: Action) -> list[str]:
        """Take an action now, and return a message for each expectation it misses."""
        if not action.is_recorded:
            self.other_actions.append((self._target.now_us, action))
        return action.take(self)

    def _perform(self, action: Action, line: int) -> None:
        messages = self.act(action)
        patience = self._target.patience
        if messages and patience is not None and isinstance(action, Expect):
            # An event that has already happened can never become absent.
            contradicted = [
                message
                for fact in action.condition.facts
                for message in _final_contradictions(fact, self.observer)
            ]
            self.unseen += [MissedExpectation(line=line, message=message) for message in contradicted]
            # What is expected may become visible later, or polling may have missed it.
            self._awaited_expectations.append(
                _AwaitedExpectation(action, line, self._target.now_us + patience.transient_us)
            )
        else:
            self.missed += [MissedExpectation(line=line, message=message) for message in messages]
