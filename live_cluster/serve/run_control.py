"""Carries out the requests of a program that controls a served cluster."""

from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final

from harrow.campaigns.language.plan import Expectation, Plan, Step
from harrow.campaigns.language.plan_file import UnwritablePlanError, WrittenPlan
from harrow.campaigns.language.problem import CampaignError
from harrow.campaigns.language.units import milliseconds
from harrow.campaigns.record.report import fault_as_mapping
from harrow.campaigns.run.runner import Run
from harrow.cluster_model.lazy_dataclass import replace
from harrow.cluster_model.protocol import NO_LEADER
from harrow.cluster_model.sim.simulator import StepLimitExceeded
from harrow.cluster_model.topology import ProducerSpec
from harrow.faults.action import Action
from harrow.live_cluster.serve.ports.control_port import (
    ControlAnswer,
    ControlRequest,
    Handler,
    RefusedRequestError,
)
from harrow.live_cluster.serve.served_environment import obstacles
from harrow.live_cluster.serve.served_target import ServedTarget

_FILE: Final = "request"
_CLIENTS_MAX: Final = 100
_SHOW: Final = "GET"
_JUDGE: Final = "POST", "/judge"
_REQUESTS: Final = "GET /state, POST /faults, DELETE /faults, DELETE /faults/ID, POST /judge"


def handler_after(verdict: ControlAnswer) -> Handler:
    """Return what handles requests when the run has been judged."""

    def handle(request: ControlRequest) -> ControlAnswer:
        if (request.method, request.path) == _JUDGE:
            return verdict
        raise RefusedRequestError(HTTPStatus.CONFLICT, "the cluster has been judged, and is gone")

    return handle


class RunControl:
    """Strikes and ends faults, and shows the state of a run.

    A request takes effect at once, at the model's time when it arrives. ``is_over`` becomes true
    when a request asks for the verdict.
    """

    def __init__(self, run: Run, plan: Plan, target: ServedTarget, *, has_program: bool) -> None:
        self._run = run
        self._addresses = target.addresses
        self._clients = target.real_clients
        self._has_program = has_program
        self._plan = replace(plan, script=(), faults=(), swarm=None, expect=Expectation())
        # Made by the first request for a fault. Most clusters get none, and start faster.
        self._written: WrittenPlan | None = None
        self.is_over = False

    def handle(self, request: ControlRequest) -> ControlAnswer | None:
        """Carry out a request. Return None if it asks for the verdict.

        Raises:
            RefusedRequestError: There is no such request, or it cannot be carried out now.

        """
        if request.method != _SHOW:
            self._clients.recorder.controlled(request)
        match request.method, request.path.split("/")[1:]:
            case "GET", ["state"]:
                return ControlAnswer(HTTPStatus.OK, self._state())
            case "POST", ["faults"]:
                return ControlAnswer(HTTPStatus.CREATED, {"faults": self._strike(request.body)})
            case "DELETE", ["faults"]:
                return ControlAnswer(
                    HTTPStatus.OK, {"ended": [*map(self._end, self._run.injector.in_force())]}
                )
            case "DELETE", ["faults", number]:
                return ControlAnswer(HTTPStatus.OK, {"ended": [self._end(self._number(number))]})
            case "POST", ["judge"]:
                self.is_over = True
                return None
        raise RefusedRequestError(HTTPStatus.NOT_FOUND, f"there is no such request; there are {_REQUESTS}")

    def _strike(self, text: str) -> list[dict[str, Any]]:
        """Take the actions in *text*, which are written as after ``do``. Return the new faults."""
        if not text.strip():
            example = '{"broker_crash": {"broker": 0}}'
            raise RefusedRequestError(
                HTTPStatus.BAD_REQUEST, f"the body is empty: send a fault, as in {example}"
            )
        try:
            actions = self._read(text)
        except CampaignError as error:
            raise RefusedRequestError(HTTPStatus.BAD_REQUEST, str(error)) from None
        plan = replace(self._plan, script=(Step(actions=actions),))
        if reasons := [*obstacles(plan, has_program=self._has_program)]:
            raise RefusedRequestError(HTTPStatus.BAD_REQUEST, "; ".join(reasons))
        injector = self._run.injector
        first = len(injector.injected)
        try:
            missed = [message for action in actions for message in self._run.script.act(action)]
        except StepLimitExceeded as limit:
            missed = [str(limit)]
        if missed:
            raise RefusedRequestError(HTTPStatus.CONFLICT, "; ".join(missed))
        return [self._fault(number) for number in range(first + 1, len(injector.injected) + 1)]

    def _read(self, text: str) -> tuple[Action, ...]:
        """Read actions, which may name any client that has connected."""
        written = self._written = self._written or WrittenPlan(self._plan)
        try:
            return written.actions(text, _FILE)
        except CampaignError:
            if not self._learn_clients(written):
                raise
        return self._written.actions(text, _FILE)

    def _learn_clients(self, written: WrittenPlan) -> bool:
        """Add clients that have connected to the plan. Return whether there are new ones."""
        known = len(self._plan.producers)
        for name in self._clients.client_names()[:_CLIENTS_MAX]:
            if name in {spec.name for spec in self._plan.clients()}:
                continue
            plan = replace(self._plan, producers=(*self._plan.producers, ProducerSpec(name=name)))
            # A name that no campaign can have stays unknown.
            with suppress(UnwritablePlanError):
                written = self._written = written.succeeded_by(plan)
                self._plan = plan
        return len(self._plan.producers) > known

    def _number(self, text: str) -> int:
        numbers = {str(number): number for number in self._run.injector.in_force()}
        if text not in numbers:
            raise RefusedRequestError(HTTPStatus.NOT_FOUND, "no fault with this id is in force")
        return numbers[text]

    def _end(self, number: int) -> dict[str, Any]:
        self._run.injector.end(number)
        return self._fault(number)

    def _fault(self, number: int) -> dict[str, Any]:
        return {"id": number, **fault_as_mapping(self._run.injector.injected[number - 1])}

    def _state(self) -> dict[str, Any]:
        target = self._run.target
        observer = target.observer
        return {
            "time_ms": milliseconds(target.now_us),
            "bootstrap_servers": ",".join(f"{host}:{port}" for host, port in self._addresses.values()),
            "controller": observer.controller(),
            "brokers": [
                {"id": broker, "address": f"{host}:{port}", "state": observer.broker_state(broker)}
                for broker, (host, port) in self._addresses.items()
            ],
            "partitions": {name: self._partition(name) for name in target.partition_names()},
            "faults": [self._fault(number) for number in self._run.injector.in_force()],
        }

    def _partition(self, name: str) -> dict[str, Any]:
        observer = self._run.target.observer
        leader, leader_epoch, isr = observer.partition_state(name) or (NO_LEADER, -1, ())
        views = {broker: observer.replica(name, broker) for broker in observer.replicas_of(name)}
        return {
            "leader": None if leader == NO_LEADER else leader,
            "leader_epoch": leader_epoch,
            "isr": list(isr),
            "replicas": {
                str(broker): {"role": view.role, "hw": view.hw, "leo": view.leo}
                for broker, view in views.items()
                if view is not None
            },
        }
