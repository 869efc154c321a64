"""A harness for tests of scripts and fault injectors: a small running cluster with both."""

from collections.abc import Sequence

from harrow.campaigns.language.plan import Plan, Step
from harrow.campaigns.run.injection.fault_injector import FaultInjector
from harrow.campaigns.run.script import Script
from harrow.campaigns.run.targets.model_target import ModelTarget
from harrow.cluster_model.invariants.catalogue import INVARIANTS
from harrow.cluster_model.topology import BrokerSpec, ClusterSpec, ProducerSpec, TopicSpec
from tests.recorded_choices import recorded_choices


class ClusterHarness:
    """Three running brokers and a producer. Broker 0 leads t-0 and is the controller."""

    def __init__(
        self,
        *steps: Step,
        draws: Sequence[int] = (),
        brokers: int = 3,
        replication_factor: int = 3,
        controller: int = 0,
        watches_fetches: bool = False,
        kafka: str = "2.4",
        min_isr: int = 1,
        step_limit_us: int | None = None,
    ) -> None:
        spec = ClusterSpec(
            brokers=tuple(BrokerSpec(id=number) for number in range(brokers)),
            topics=(TopicSpec(name="t", replication_factor=replication_factor),),
            controller=controller,
            settings={"min.insync.replicas": min_isr},
            voters=1,  # Several voters with equal choices would always stand for election at the same time.
        )
        plan = Plan(
            campaign="harness",
            cluster=spec,
            kafka=kafka,
            producers=(ProducerSpec(name="producer-0", settings={"acks": "all"}),),
        )
        choices = recorded_choices({"schedule": draws})
        self.target = ModelTarget(plan, choices, tuple(INVARIANTS))
        self.cluster = self.target.cluster
        self.environment = self.target.environment
        self.injector = FaultInjector(self.target, spec, choices.schedule)
        self.script = Script(steps, self.target, self.injector, step_limit_us)
        if watches_fetches:
            self.target.watch_fetches()
        self.target.start()
        self.target.clients.start()

    @property
    def now_us(self) -> int:
        return self.cluster.simulator.now_us

    def run(self, end_us: int) -> None:
        """Run until a time, and check triggers and the script after each event."""
        simulator = self.cluster.simulator
        self.script.advance()
        while self.now_us < end_us:
            next_step_us = self.script.wakes_at_us()
            is_later = next_step_us is not None and next_step_us > self.now_us
            step_end_us = min(end_us, next_step_us) if next_step_us is not None and is_later else end_us
            if not simulator.step(step_end_us):
                simulator.run_until(step_end_us)
            self.injector.check_triggers()
            self.script.advance()

    def events_named(self, name: str) -> list[tuple[object, ...]]:
        """Return the trace's events of one name, with their times but without the name."""
        return [(event[0], *event[2:]) for event in self.cluster.trace.events if event[1] == name]
