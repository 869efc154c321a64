"""A run that Python code steers records its actions as a script."""

from harrow.campaigns.language.plan import Plan, Step
from harrow.campaigns.run.live_run import LiveRun
from harrow.cluster_model.topology import BrokerSpec, ClusterSpec, ProducerSpec, TopicSpec
from harrow.faults.actions import ElectPreferredLeaders, RestartProducer, Send
from harrow.faults.brokers import BrokerCrash, BrokerRestart
from harrow.faults.injection import At, Injection

SEND = Send(producer="producer-0", value="m0")
PLAN = Plan(
    campaign="live",
    cluster=ClusterSpec(brokers=(BrokerSpec(id=0),), topics=(TopicSpec(name="t"),)),
    producers=(ProducerSpec(name="producer-0"),),
    script=(Step(actions=(SEND,)),),
    faults=(Injection(timing=At(at_us=(1_000, 1_000)), faults=(BrokerCrash(broker=0),)),),
)


def test_a_live_run_ignores_the_script_and_the_faults_of_its_plan() -> None:
    run = LiveRun(PLAN)
    run.advance(5_000_000)
    assert run.is_running(0)
    assert (run.plan().script, run.plan().faults) == ((), ())
    assert not [operation for operation in run.end().evidence.operations if operation.f == "send"]


def test_a_fault_that_finds_nothing_to_do_is_not_recorded() -> None:
    run = LiveRun(PLAN)
    assert not run.inject(BrokerRestart(broker=0))
    assert run.plan().script == ()
    assert run.inject(BrokerCrash(broker=0))
    assert run.plan().script[0].actions == (BrokerCrash(broker=0),)


def test_actions_at_the_same_time_become_one_step() -> None:
    run = LiveRun(PLAN)
    run.send("m0")
    run.restart_producer()
    run.advance(2_000)
    run.elect_preferred_leaders()
    assert run.plan().script == (
        Step(at_us=0, actions=(SEND, RestartProducer(producer="producer-0"))),
        Step(at_us=2_000, actions=(ElectPreferredLeaders(),)),
    )
    assert run.plan().duration_us == 2_000
