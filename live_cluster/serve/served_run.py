"""Runs a campaign on the model of a cluster while real clients use it, and judges the clients."""

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.run_result import RealTarget, RunResult
from harrow.campaigns.run.runner import Run
from harrow.campaigns.run.swarm import draw_for_seed
from harrow.checks.rules.catalogue import watched_in
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.live_cluster.serve.control_port import ControlPort
from harrow.live_cluster.serve.plain_login import Users
from harrow.live_cluster.serve.record_identity import Identity
from harrow.live_cluster.serve.run_control import RunControl
from harrow.live_cluster.serve.served_brokers import CONNECTIONS_MAX
from harrow.live_cluster.serve.served_environment import StruckProgram
from harrow.live_cluster.serve.served_target import ServedTarget, served_plan
from harrow.live_cluster.wire.codec import Address

KIND: Final = "served"
"""The kind of target in the results of runs."""
_CHECK_US: Final = US_PER_SECOND // 10
_START_FORMAT: Final = "%Y%m%dT%H%M%S.%fZ"


def serve(
    plan: Plan,
    seed: int,
    *,
    host: str,
    ports: Sequence[int],
    time_scale: float,
    on_ready: Callable[[Sequence[Address]], None],
    is_over: Callable[[Run], bool],
    program: StruckProgram | None = None,
    control: ControlPort | None = None,
    identity: Identity | None = None,
    connections_max: int = CONNECTIONS_MAX,
    users: Users | None = None,
) -> RunResult:
    """Serve a plan's cluster until *is_over*, then heal it and judge what real clients saw.

    Brokers listen on *host*, each on one of the *ports*; port 0 stands for any free one. *on_ready*
    is called with their addresses once they listen. In one second *time_scale* seconds pass in the
    cluster. Faults of clients strike *program*, which *on_ready* starts. Requests to *control*
    strike faults and may ask for the verdict, which ends the run too. *identity* returns what
    identifies a record to its application. Connections beyond *connections_max* are closed at once.
    If there are *users*, clients have to log in.

    Raises:
        CannotListenError: A port cannot be used.

    """
    began_s, began = time.monotonic(), datetime.now(UTC).strftime(_START_FORMAT)
    drawn = draw_for_seed(plan, seed)
    served, choices = served_plan(drawn.plan), Choices.from_seed(seed)
    watched = watched_in(served.invariants, served.kafka, served.demand)
    target = ServedTarget(
        *(drawn.plan, choices, watched),
        program=program,
        host=host,
        ports=ports,
        time_scale=time_scale,
        identity=identity,
        connections_max=connections_max,
        users=users,
    )
    with closing(target):
        run = Run(served, seed, choices, target)
        run.begin()
        if control is not None:
            requests = RunControl(run, drawn.plan, target, has_program=program is not None)
            control.handler = requests.handle
            control.listen(target.selector)
            is_over = _either(is_over, requests)
        on_ready([*target.addresses.values()])
        _disturb(run, served, is_over)
        result = run.end()
    return replace(
        result,
        plan=drawn.plan,
        drawn=drawn.values,
        target=RealTarget(kind=KIND, release=plan.kafka, metadata=plan.metadata, began=began),
        wall_ms=round((time.monotonic() - began_s) * 1_000),
    )


def _either(is_over: Callable[[Run], bool], requests: RunControl) -> Callable[[Run], bool]:
    return lambda run: requests.is_over or is_over(run)


def _disturb(run: Run, plan: Plan, is_over: Callable[[Run], bool]) -> None:
    """Let the script and the faults of a plan strike while clients use the cluster."""
    target, injector, script = run.target, run.injector, run.script
    for injection in plan.faults:
        injector.schedule(injection)
    script.advance()
    while not is_over(run):
        end_us = target.now_us + _CHECK_US
        if not target.step(end_us):
            target.advance(end_us)
        if injector.has_triggers():
            injector.check_triggers()
        script.advance()
    injector.stop()
