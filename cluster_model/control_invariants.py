"""The invariants of control: whom brokers obey, and what a controller knows and writes."""

from collections.abc import Callable, Collection, Mapping
from typing import Final

from cluster_model.invariant_checks import Checks
from cluster_model.invariants import (
    CONTROLLER_EPOCH_MONOTONIC,
    CONTROLLER_WRITES_FENCED,
    FAILOVER_SHRINKS_ISR,
    LEADER_EPOCH_MONOTONIC,
    REGISTERED_BEFORE_CONTROL,
    REGISTRATIONS_KNOWN,
)
from cluster_model.protocol import LeaderAndIsr
from cluster_model.zookeeper_protocol import TopicPartitionState


class ControllerEpochMonotonic:
    """What a broker obeys has no older controller epoch than what it has obeyed in this life."""

    def __init__(self, checks: Checks) -> None:
        self._broken_at = checks.broken_at
        self._obeyed: dict[int, int] = {}
        checks.on_control_request.append(self._obeys)
        checks.on_stop.append(self._stopped)

    def _obeys(self, broker: int, api: str, controller_epoch: int) -> None:
        obeyed = self._obeyed.get(broker, controller_epoch)
        if controller_epoch < obeyed:
            details = f"it obeyed {api} of controller epoch {controller_epoch} after one of {obeyed}"
            self._broken_at(CONTROLLER_EPOCH_MONOTONIC, broker, "", controller_epoch, -1, details)
        else:
            self._obeyed[broker] = controller_epoch

    def _stopped(self, broker: int) -> None:
        self._obeyed.pop(broker, None)


class LeaderEpochMonotonic:
    """The leader epoch of a replica does not go back while its broker runs."""

    def __init__(self, checks: Checks) -> None:
        self._broken_at = checks.broken_at
        self._taken: dict[int, dict[str, int]] = {}
        checks.on_leader_epoch.append(self._takes)
        checks.on_stop.append(self._stopped)

    def _takes(self, broker: int, partition: str, leader_epoch: int) -> None:
        of_broker = self._taken.setdefault(broker, {})
        taken = of_broker.get(partition, leader_epoch)
        if leader_epoch < taken:
            details = f"its leader epoch went from {taken} to {leader_epoch}"
            self._broken_at(LEADER_EPOCH_MONOTONIC, broker, partition, leader_epoch, -1, details)
        of_broker[partition] = leader_epoch

    def _stopped(self, broker: int) -> None:
        self._taken.pop(broker, None)


class ControllerWritesFenced:
    """Only the present controller puts a new leader epoch into a partition's znode."""

    def __init__(self, checks: Checks) -> None:
        self._broken_at = checks.broken_at
        checks.on_state_written.append(self._written)

    def _written(
        self,
        broker: int,
        partition: str,
        before: TopicPartitionState,
        state: TopicPartitionState,
        present_epoch: int,
    ) -> None:
        # A leader that writes its ISR leaves the leader epoch as it is.
        if state.leader_epoch > before.leader_epoch and state.controller_epoch < present_epoch:
            details = (
                f"as controller of epoch {state.controller_epoch} it wrote leader epoch {state.leader_epoch}, when the "
                f"controller epoch was {present_epoch}"
            )
            self._broken_at(CONTROLLER_WRITES_FENCED, broker, partition, state.leader_epoch, -1, details)


class RegisteredBeforeControl:
    """A broker that is not registered yet obeys nobody."""

    def __init__(self, checks: Checks) -> None:
        self._broken_at = checks.broken_at
        self._registered: set[int] = set()
        checks.on_registered.append(self._registered.add)
        checks.on_stop.append(self._registered.discard)
        checks.on_control_request.append(self._obeys)

    def _obeys(self, broker: int, api: str, controller_epoch: int) -> None:
        if broker not in self._registered:
            details = f"it obeyed {api} before it had registered, so that it was meant for a former life"
            self._broken_at(REGISTERED_BEFORE_CONTROL, broker, "", controller_epoch, -1, details)


class RegistrationsKnown:
    """A controller goes by the present registrations of brokers."""

    def __init__(self, checks: Checks) -> None:
        self._broken_at = checks.broken_at
        checks.on_broker_change.append(self._processed)

    def _processed(
        self, controller: int, controller_epoch: int, registered: Mapping[int, int], known: Mapping[int, int]
    ) -> None:
        for broker, broker_epoch in registered.items():
            if known.get(broker) != broker_epoch:
                details = (
                    f"it is registered with broker epoch {broker_epoch}, controller {controller} goes by "
                    f"{known.get(broker)}"
                )
                self._broken_at(REGISTRATIONS_KNOWN, broker, "", controller_epoch, -1, details)


class FailoverShrinksIsr:
    """A new controller takes the dead out of the ISRs.

    One without a session may be running all the same, and join an ISR again meanwhile: its leader
    knows nothing of sessions.
    """

    def __init__(self, checks: Checks) -> None:
        self._broken_at = checks.broken_at
        self._present_epoch = 0
        self._joined: set[tuple[str, int]] = set()
        checks.on_controller.append(self._elected)
        checks.on_state_written.append(self._written)
        checks.on_failover.append(self._completed)

    def _elected(self, _: int, controller_epoch: int) -> None:
        self._present_epoch = max(self._present_epoch, controller_epoch)
        self._joined.clear()

    def _written(
        self, _: int, partition: str, before: TopicPartitionState, state: TopicPartitionState, __: int
    ) -> None:
        self._joined.update((partition, broker) for broker in state.isr if broker not in before.isr)

    def _completed(
        self,
        controller: int,
        controller_epoch: int,
        dead: Collection[int],
        leadership: Mapping[str, LeaderAndIsr],
    ) -> None:
        if controller_epoch < self._present_epoch:
            return  # It has been succeeded meanwhile: ISRs are no longer its business.
        for partition, state in leadership.items():
            for broker in state.isr if len(state.isr) > 1 else ():
                if broker in dead and (partition, broker) not in self._joined:
                    details = (
                        f"it was dead when controller {controller} took over (controller epoch "
                        f"{controller_epoch}), and is in the ISR {list(state.isr)} still"
                    )
                    self._broken_at(FAILOVER_SHRINKS_ISR, broker, partition, state.leader_epoch, -1, details)


CONTROL_CHECKS: Final[Mapping[str, Callable[[Checks], object]]] = {
    CONTROLLER_EPOCH_MONOTONIC: ControllerEpochMonotonic,
    LEADER_EPOCH_MONOTONIC: LeaderEpochMonotonic,
    CONTROLLER_WRITES_FENCED: ControllerWritesFenced,
    REGISTERED_BEFORE_CONTROL: RegisteredBeforeControl,
    REGISTRATIONS_KNOWN: RegistrationsKnown,
    FAILOVER_SHRINKS_ISR: FailoverShrinksIsr,
}
"""The checks of controllers and of those who obey them, by invariant."""
