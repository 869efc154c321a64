"""Takes the steps of a campaign's script, in order, each when its time and condition have come."""

from campaigns.clients import Clients
from campaigns.fault_injector import FaultInjector
from campaigns.observer import ClusterObserver
from campaigns.plan import Action, ElectPreferredLeaders, Expect, RestartProducer, Send, Step, Wait
from campaigns.run_result import MissedExpectation
from cluster_model.cluster import Cluster


class Script:
    """Where a run is in its script."""

    def __init__(
        self,
        steps: tuple[Step, ...],
        cluster: Cluster,
        clients: Clients,
        injector: FaultInjector,
        observer: ClusterObserver,
    ) -> None:
        self._steps = steps
        self._cluster = cluster
        self._clients = clients
        self._injector = injector
        self._observer = observer
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
                self._act(step, action)
            self._last_step_us = self._cluster.simulator.now_us
            self._observer.step_taken(next_position)

    def _position_after(self, step: Step) -> int:
        """Return from where on the trace counts for the next step.

        From behind the events that this step waited for: what happened in the same
        instant, and what this step does, happens after them.
        """
        matched = None if step.when is None else step.when.matched_position(self._observer)
        return len(self._cluster.trace.events) if matched is None else matched

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
        missing = [] if step.when is None else step.when.mismatches(self._observer)
        where = f"step {self._next + 1} of the script" + (f" (line {step.line})" if step.line else "")
        return f"{where} waited in vain: {'; '.join(missing) or 'its time did not come'}"

    def _is_due(self, step: Step) -> bool:
        due_us = self.due_us()
        if due_us is not None and self._cluster.simulator.now_us < due_us:
            return False
        return step.when is None or step.when.holds(self._observer)

    def _act(self, step: Step, action: Action) -> None:
        if isinstance(action, (RestartProducer, ElectPreferredLeaders)):
            self.operated.append((self._cluster.simulator.now_us, action))
        if isinstance(action, Send):
            self._clients.producers[action.producer].send(action.value, action.partition)
        elif isinstance(action, RestartProducer):
            self._clients.producers[action.producer].restart()
        elif isinstance(action, ElectPreferredLeaders):
            self._cluster.elect_preferred_leaders()
        elif isinstance(action, Expect):
            for message in action.condition.mismatches(self._observer):
                self.missed.append(MissedExpectation(line=step.line, message=message))
        elif not isinstance(action, Wait) and not self._injector.inject(action):
            self.missed.append(
                MissedExpectation(line=step.line, message=f"{action.name} found nothing to act on")
            )
