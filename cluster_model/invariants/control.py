"""Checks the invariants of controllers, and of the brokers that obey their requests."""

from collections.abc import Callable, Mapping
from typing import Final

from harrow.cluster_model import events
from harrow.cluster_model.controller.control_plane import REASSIGNMENT, TOPIC_CREATION
from harrow.cluster_model.invariants import catalogue
from harrow.cluster_model.invariants.checks import Checks
from harrow.cluster_model.protocol import LeaderAndIsr
from harrow.cluster_model.trace import TraceEvent


class ControllerEpochMonotonic:
    """A running broker obeys no older controller epoch than before."""

    def __init__(self, checks: Checks) -> None:
        self._report_broker_breach = checks.report_broker_breach
        self._controller_epochs: dict[int, int] = {}
        checks.trace.subscribe(events.ControlRequestObeyed, self._on_control_request)
        checks.trace.subscribe(events.BrokerStopped, self._on_broker_stopped)

    def _on_control_request(self, broker: int, api: str, controller_epoch: int) -> None:
        obeyed = self._controller_epochs.get(broker, controller_epoch)
        if controller_epoch < obeyed:
            details = f"it obeyed {api} of controller epoch {controller_epoch} after one of {obeyed}"
            self._report_broker_breach(
                catalogue.CONTROLLER_EPOCH_MONOTONIC, broker, "", controller_epoch, -1, details
            )
        else:
            self._controller_epochs[broker] = controller_epoch

    def _on_broker_stopped(self, broker: int, _cause: str) -> None:
        self._controller_epochs.pop(broker, None)


class LeaderEpochMonotonic:
    """A replica's leader epoch never falls while its broker runs."""

    def __init__(self, checks: Checks) -> None:
        self._report_broker_breach = checks.report_broker_breach
        self._leader_epochs: dict[int, dict[str, int]] = {}
        checks.trace.follow(events.LeaderEpochTaken, self._on_leader_epoch)
        checks.trace.subscribe(events.BrokerStopped, self._on_broker_stopped)

    def _on_leader_epoch(self, row: TraceEvent) -> None:
        broker: int = row[2]
        partition: str = row[3]
        leader_epoch: int = row[4]
        leader_epochs = self._leader_epochs.setdefault(broker, {})
        previous = leader_epochs.get(partition, leader_epoch)
        if leader_epoch < previous:
            details = f"its leader epoch fell from {previous} to {leader_epoch}"
            self._report_broker_breach(
                catalogue.LEADER_EPOCH_MONOTONIC, broker, partition, leader_epoch, -1, details
            )
        leader_epochs[partition] = leader_epoch

    def _on_broker_stopped(self, broker: int, _cause: str) -> None:
        self._leader_epochs.pop(broker, None)


class ControllerWritesFenced:
    """Only the current controller writes a new leader epoch into a partition's state."""

    def __init__(self, checks: Checks) -> None:
        self._report_broker_breach = checks.report_broker_breach
        checks.trace.subscribe(events.PartitionStateWritten, self._on_state_written)

    def _on_state_written(
        self,
        broker: int,
        partition: str,
        before: LeaderAndIsr,
        state: LeaderAndIsr,
        controller_epoch: int,
        current_epoch: int,
    ) -> None:
        # A leader that writes its ISR does not change the leader epoch.
        if state.leader_epoch > before.leader_epoch and controller_epoch < current_epoch:
            details = (
                f"as controller of epoch {controller_epoch} it wrote leader epoch {state.leader_epoch}, when the "
                f"controller epoch was {current_epoch}"
            )
            self._report_broker_breach(
                catalogue.CONTROLLER_WRITES_FENCED, broker, partition, state.leader_epoch, -1, details
            )


class RegisteredBeforeControl:
    """A broker obeys no controller before it has registered."""

    def __init__(self, checks: Checks) -> None:
        self._report_broker_breach = checks.report_broker_breach
        self._registered_brokers: set[int] = set()
        checks.trace.subscribe(events.RegistrationLearned, self._on_registration)
        checks.trace.subscribe(events.BrokerStopped, self._on_broker_stopped)
        checks.trace.subscribe(events.ControlRequestObeyed, self._on_control_request)

    def _on_registration(self, broker: int, _broker_epoch: int) -> None:
        self._registered_brokers.add(broker)

    def _on_broker_stopped(self, broker: int, _cause: str) -> None:
        self._registered_brokers.discard(broker)

    def _on_control_request(self, broker: int, api: str, controller_epoch: int) -> None:
        if broker not in self._registered_brokers:
            details = f"it obeyed {api} before it registered, which was meant for its previous process"
            self._report_broker_breach(
                catalogue.REGISTERED_BEFORE_CONTROL, broker, "", controller_epoch, -1, details
            )


class RegistrationsKnown:
    """A controller knows the current registration of each broker."""

    def __init__(self, checks: Checks) -> None:
        self._report_broker_breach = checks.report_broker_breach
        checks.trace.subscribe(events.BrokerChangeProcessed, self._on_broker_change)

    def _on_broker_change(
        self,
        controller: int,
        controller_epoch: int,
        registered: Mapping[int, int],
        cached: Mapping[int, int],
    ) -> None:
        for broker, broker_epoch in registered.items():
            if cached.get(broker) != broker_epoch:
                details = (
                    f"it is registered with broker epoch {broker_epoch}, but controller {controller} uses "
                    f"{cached.get(broker)}"
                )
                self._report_broker_breach(
                    catalogue.REGISTRATIONS_KNOWN, broker, "", controller_epoch, -1, details
                )


class FailoverShrinksIsr:
    """A new controller removes dead brokers from ISRs.

    A broker without a session may still run, and may rejoin an ISR in the meantime, because leaders
    know nothing of sessions.
    """

    def __init__(self, checks: Checks) -> None:
        self._report_broker_breach = checks.report_broker_breach
        self._current_epoch = 0
        self._isr_joins: set[tuple[str, int]] = set()
        checks.trace.subscribe(events.ControllerElected, self._on_election)
        checks.trace.subscribe(events.PartitionStateWritten, self._on_state_written)
        checks.trace.subscribe(events.FailoverCompleted, self._on_failover_completed)

    def _on_election(self, _broker: int, controller_epoch: int) -> None:
        self._current_epoch = max(self._current_epoch, controller_epoch)
        self._isr_joins.clear()

    def _on_state_written(
        self, _broker: int, partition: str, before: LeaderAndIsr, state: LeaderAndIsr, *_: int
    ) -> None:
        self._isr_joins.update((partition, broker) for broker in state.isr if broker not in before.isr)

    def _on_failover_completed(
        self,
        controller: int,
        controller_epoch: int,
        dead: tuple[int, ...],
        leadership: Mapping[str, LeaderAndIsr],
    ) -> None:
        if controller_epoch < self._current_epoch:
            return  # A later controller has replaced this one, and is now responsible for the ISRs.
        for partition, state in leadership.items():
            for broker in state.isr if len(state.isr) > 1 else ():
                if broker in dead and (partition, broker) not in self._isr_joins:
                    details = (
                        f"it was dead when controller {controller} took over (controller epoch "
                        f"{controller_epoch}), but is still in the ISR {list(state.isr)}"
                    )
                    self._report_broker_breach(
                        catalogue.FAILOVER_SHRINKS_ISR, broker, partition, state.leader_epoch, -1, details
                    )


class UncleanReplicaNotElected:
    """A replica that may have lost records leads only if no other replica can (KIP-966).

    A dead broker can be elected while its session lasts. So the check of a broker begins with its
    next registration, from which the controller learns how the broker stopped. Until then, a late
    heartbeat of the previous process may still unfence that process. A process that dies before it
    has registered has not opened its logs, so its stop does not count.
    """

    def __init__(self, checks: Checks) -> None:
        self._report_broker_breach = checks.report_broker_breach
        # For each broker that is back after an unclean stop: the partitions whose ISR it has joined
        # since.
        self._isr_joins: dict[int, set[str]] = {}
        # For each broker: the broker epoch of the process that stopped uncleanly, and of the one
        # that runs.
        self._stopped: dict[int, int] = {}
        self._serving: dict[int, int] = {}
        self._isrs: dict[str, tuple[int, ...]] = {}
        trace = checks.trace
        trace.subscribe(events.BrokerStopped, self._on_broker_stop)
        trace.subscribe(events.CleanShutdownNoted, self._on_clean_shutdown)
        trace.subscribe(events.RegistrationLearned, self._on_registration_learned)
        trace.subscribe(events.BrokerRegistered, self._on_registered)
        trace.subscribe(events.IsrWritten, self._on_isr_written)
        trace.subscribe(events.IsrReduced, self._on_isr_reduced)
        trace.subscribe(events.LeaderElected, self._on_election)

    def _on_broker_stop(self, broker: int, cause: str) -> None:
        if broker not in self._serving:
            return
        broker_epoch = self._serving.pop(broker)
        self._isr_joins.pop(broker, None)
        if cause == events.SHUT_DOWN:
            self._stopped.pop(broker, None)
        else:
            self._stopped[broker] = broker_epoch

    def _on_clean_shutdown(self, broker: int) -> None:
        """Count the stop as clean, even if the process is killed before it has ended."""
        self._on_broker_stop(broker, events.SHUT_DOWN)

    def _on_registration_learned(self, broker: int, broker_epoch: int) -> None:
        self._serving[broker] = broker_epoch

    def _on_registered(self, broker: int, broker_epoch: int) -> None:
        if broker in self._stopped and broker_epoch != self._stopped[broker]:
            self._isr_joins.setdefault(broker, set())

    def _on_isr_written(self, _broker: int, partition: str, _leader_epoch: int, isr: tuple[int, ...]) -> None:
        before = self._isrs.get(partition, ())
        for member in isr:
            if member not in before and member in self._isr_joins:
                self._isr_joins[member].add(partition)
        self._isrs[partition] = isr

    def _on_isr_reduced(
        self,
        _controller: int,
        partition: str,
        _leader: int,
        _leader_epoch: int,
        isr: tuple[int, ...],
    ) -> None:
        self._isrs[partition] = isr

    def _on_election(
        self,
        controller: int,
        partition: str,
        leader: int,
        leader_epoch: int,
        isr: tuple[int, ...],
        unclean: bool,
        reason: str,
    ) -> None:
        if reason in (REASSIGNMENT, TOPIC_CREATION):
            # In KRaft, an ISR that a leader requests may complete a reassignment and elect a new
            # ISR member. The first ISR of a partition lacks no records.
            self._on_isr_written(controller, partition, leader_epoch, isr)
        self._isrs[partition] = isr
        joined = self._isr_joins.get(leader)
        if joined is None or partition in joined:
            return
        # From now on the records of this leader are the committed ones.
        joined.add(partition)
        if not unclean:
            details = f"controller {controller} elected it although it stopped uncleanly and has not rejoined the ISR"
            self._report_broker_breach(
                catalogue.UNCLEAN_REPLICA_NOT_ELECTED, leader, partition, leader_epoch, -1, details
            )


class CommittedMetadataKept:
    """No node truncates committed metadata."""

    def __init__(self, checks: Checks) -> None:
        self._report_broker_breach = checks.report_broker_breach
        checks.trace.subscribe(events.CommittedMetadataCut, self._on_metadata_cut)

    def _on_metadata_cut(self, node: int, offset: int, high_watermark: int) -> None:
        details = f"it lacks offset {offset} of the metadata log, although everything below {high_watermark} was committed"
        self._report_broker_breach(catalogue.COMMITTED_METADATA_KEPT, node, "", -1, -1, details)


class MetadataSnapshotCommitted:
    """A metadata snapshot equals the committed state."""

    def __init__(self, checks: Checks) -> None:
        self._report_broker_breach = checks.report_broker_breach
        checks.trace.subscribe(events.MetadataSnapshotDiffers, self._on_snapshot_difference)

    def _on_snapshot_difference(self, node: int, end_offset: int, committed: int) -> None:
        details = f"its metadata snapshot below {end_offset} differs from the committed records"
        if end_offset > committed:
            details += f", which end at {committed}"
        self._report_broker_breach(catalogue.METADATA_SNAPSHOT_COMMITTED, node, "", -1, -1, details)


CONTROL_CHECKS: Final[Mapping[str, Callable[[Checks], object]]] = {
    catalogue.CONTROLLER_EPOCH_MONOTONIC: ControllerEpochMonotonic,
    catalogue.LEADER_EPOCH_MONOTONIC: LeaderEpochMonotonic,
    catalogue.CONTROLLER_WRITES_FENCED: ControllerWritesFenced,
    catalogue.REGISTERED_BEFORE_CONTROL: RegisteredBeforeControl,
    catalogue.REGISTRATIONS_KNOWN: RegistrationsKnown,
    catalogue.FAILOVER_SHRINKS_ISR: FailoverShrinksIsr,
    catalogue.UNCLEAN_REPLICA_NOT_ELECTED: UncleanReplicaNotElected,
    catalogue.COMMITTED_METADATA_KEPT: CommittedMetadataKept,
    catalogue.METADATA_SNAPSHOT_COMMITTED: MetadataSnapshotCommitted,
}
"""The checks of controllers and of brokers that obey them, by invariant."""
