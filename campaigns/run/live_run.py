"""Lets Python code, such as a state machine of Hypothesis, steer a run of the model step by step.

Every action is recorded as a step of a script, so the run can be written as a campaign file.
"""

from harrow.campaigns.language.plan import Plan, Step
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import Run
from harrow.cluster_model.events import InvariantBroken
from harrow.cluster_model.lazy_dataclass import replace
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.trace import select
from harrow.faults.action import Action
from harrow.faults.actions import ElectPreferredLeaders, RestartProducer, Send
from harrow.faults.fault import Fault


class LiveRun:
    """A cluster with its clients, from the start of the run until `end`.

    *plan* describes the cluster and its clients. Its own script and faults are ignored.
    """

    def __init__(self, plan: Plan, seed: int = 0) -> None:
        self._plan = replace(plan, script=(), faults=(), duration_us=0)
        self._seed = seed
        self._run = Run(self._plan, seed, Choices.from_seed(seed))
        self._steps: list[Step] = []
        self._run.begin()

    @property
    def now_us(self) -> int:
        return self._run.target.now_us

    def advance(self, duration_us: int) -> None:
        self._run.target.advance(self.now_us + duration_us)

    def inject(self, fault: Fault) -> bool:
        """Inject a fault. Return False if there was nothing to act on."""
        return not self.take(fault)

    def take(self, action: Action) -> list[str]:
        """Take an action as a script would. Return a text for each expectation that was not met."""
        missed = action.take(self._run.script)
        if not missed:
            self._record(action)
        return missed

    def send(self, value: str, *, producer: str = "producer-0", partition: str | None = None) -> None:
        self.take(Send(producer=producer, value=value, partition=partition))

    def restart_producer(self, producer: str = "producer-0") -> None:
        """Stop a producer's application and start it again."""
        self.take(RestartProducer(producer=producer))

    def elect_preferred_leaders(self) -> None:
        self.take(ElectPreferredLeaders())

    def is_running(self, broker: int) -> bool:
        """Return whether a broker's process exists, paused or not."""
        return self._run.target.environment.is_running(broker)

    def is_paused(self, broker: int) -> bool:
        return self._run.target.environment.is_paused(broker)

    def broken_invariants(self) -> tuple[str, ...]:
        """Return the invariants that were broken (`harrow.cluster_model.invariants.catalogue`)."""
        broken = select(self._run.target.trace.events, InvariantBroken)
        return tuple(dict.fromkeys(event.invariant for event in broken))

    def end(self) -> RunResult:
        """Heal the cluster, let it recover, read every partition back, and judge."""
        return self._run.end()

    def plan(self) -> Plan:
        """Return a plan that repeats every action, and can be written as a campaign file."""
        return replace(self._plan, script=tuple(self._steps), duration_us=max(0, self.now_us))

    def _record(self, action: Action) -> None:
        if self._steps and self._steps[-1].at_us == self.now_us:
            last = self._steps.pop()
            self._steps.append(replace(last, actions=(*last.actions, action)))
        else:
            self._steps.append(Step(at_us=self.now_us, actions=(action,)))
