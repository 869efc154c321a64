"""Runs a campaign on the model of a cluster while real clients use it, and judges the clients."""

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from typing import Final

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.run_result import SERVED, RealTarget, RunResult
from harrow.campaigns.run.runner import Run
from harrow.campaigns.run.swarm import draw_for_seed
from harrow.checks.rules.catalogue import watched_in
from harrow.cluster_model.lazy_dataclass import replace
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.live_cluster.serve.answers.plain_login import Users
from harrow.live_cluster.serve.contents.record_identity import parse_identity
from harrow.live_cluster.serve.ports.control_port import ControlPort
from harrow.live_cluster.serve.recording.recorder import Recorder
from harrow.live_cluster.serve.recording.request_recording import RecordedTerms, RequestRecording
from harrow.live_cluster.serve.run_control import RunControl
from harrow.live_cluster.serve.served_brokers import CONNECTIONS_MAX, ServedBrokers
from harrow.live_cluster.serve.served_environment import RunProgram, StruckProgram
from harrow.live_cluster.serve.served_target import ClientInputs, ServedTarget, served_plan
from harrow.live_cluster.wire.codec import Address

_CHECK_US: Final = US_PER_SECOND // 10
_START_FORMAT: Final = "%Y%m%dT%H%M%S.%fZ"


class ServedRun:
    """A run whose clients are real or recorded.

    *unique* says what identifies a record to its application (`parse_identity`).
    """

    def __init__(
        self,
        plan: Plan,
        seed: int,
        inputs: ClientInputs,
        *,
        program: RunProgram | None,
        unique: str | None,
        users: Users | None,
        recorder: Recorder | None,
    ) -> None:
        self._plan, choices = served_plan(plan), Choices.from_seed(seed)
        watched = watched_in(self._plan.invariants, plan.kafka, plan.demand)
        self.target = ServedTarget(
            *(plan, choices, watched, inputs),
            program=program,
            identity=None if unique is None else parse_identity(unique),
            users=users,
            recorder=recorder,
        )
        self.run = Run(self._plan, seed, choices, self.target)
        self.control = RunControl(self.run, plan, self.target, has_program=program is not None)

    def disturb(self, check: Callable[[], None] = lambda: None) -> None:
        """Let the script and the faults of the plan strike while clients use the cluster.

        *check* is called after each event, and may end the time of the clients.
        """
        target, injector, script = self.target, self.run.injector, self.run.script
        for injection in self._plan.faults:
            injector.schedule(injection)
        script.advance()
        while not target.real_clients.has_ended:
            check()
            target.trace.pack()
            end_us = target.now_us + _CHECK_US
            if not target.step(end_us):
                target.advance(end_us)
            if injector.has_triggers():
                injector.check_triggers()
            script.advance()
        injector.stop()


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
    unique: str | None = None,
    connections_max: int = CONNECTIONS_MAX,
    note_limit: Callable[[int], None] = lambda _: None,
    users: Users | None = None,
    recording: RequestRecording | None = None,
) -> RunResult:
    """Serve a plan's cluster until *is_over*, then heal it and judge what real clients saw.

    Brokers listen on *host*, each on one of the *ports*; port 0 stands for any free one. *on_ready*
    is called with their addresses once they listen. In one second *time_scale* seconds pass in the
    cluster. Faults of clients strike *program*, which *on_ready* starts. Requests to *control*
    strike faults and may ask for the verdict, which ends the run too. *unique* says what identifies
    a record to its application (`parse_identity`). Connections beyond *connections_max* are closed
    at once, and *note_limit* is called with that limit when it happens first. If there are *users*,
    clients have to log in. *recording* gets what `replay_served` needs to repeat the run.

    Raises:
        CannotListenError: A port cannot be used.

    """
    began_s, began = time.monotonic(), datetime.now(UTC).strftime(_START_FORMAT)
    drawn = draw_for_seed(plan, seed)
    names = [broker.id for broker in drawn.plan.running_cluster().brokers]
    brokers = ServedBrokers(names, host, ports, time_scale, connections_max, note_limit)
    served = ServedRun(
        *(drawn.plan, seed, brokers),
        program=None if program is None else RunProgram(program),
        unique=unique,
        users=users,
        recorder=recording,
    )

    def check() -> None:
        if served.control.is_over or is_over(served.run):
            brokers.end()

    with closing(served.target):
        served.run.begin()
        if recording is not None:
            recording.begin(
                RecordedTerms(
                    addresses=brokers.addresses,
                    clock=served.target.real_clients.clock,
                    unique=unique,
                    has_login=users is not None,
                    has_program=program is not None,
                )
            )
        if control is not None:
            control.handler = served.control.handle
            control.listen(brokers.selector)
        on_ready([*brokers.addresses.values()])
        result = served.run.end(partial(served.disturb, check))
    return replace(
        result,
        plan=drawn.plan,
        drawn=drawn.values_without_workload,
        target=RealTarget(kind=SERVED, release=plan.kafka, metadata=plan.metadata, began=began),
        wall_ms=round((time.monotonic() - began_s) * 1_000),
    )
