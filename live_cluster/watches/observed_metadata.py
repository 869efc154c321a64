"""Stores the last observed metadata of a real cluster, and reports events when it changes."""

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from harrow.cluster_model.events import (
    NO_CONTROLLER,
    REGISTRATION,
    BrokerRegistered,
    ControllerChanged,
    ControllerElected,
    IsrChanged,
    IsrReduced,
    IsrWritten,
    LeaderElected,
    SessionClosed,
    SessionExpired,
)
from harrow.cluster_model.zookeeper.service.protocol import BROKER_IDS
from harrow.live_cluster.broker_logs.broker_log import LoggedPartition
from harrow.live_cluster.links.observed_requests import Report
from harrow.live_cluster.watches.observed_assignments import ObservedAssignments

NO_BROKER: Final = -1


class ObservedPartition(NamedTuple):
    """A partition's leader (-1 for none), leader epoch and ISR."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]


def _no_reason(_controller: int, _partition: str) -> str:
    return ""


class ObservedMetadata:
    """The last observed controller, registrations and partitions. Watches update them.

    *election_reason* returns why a controller (-1 if it is not a broker) has just changed a
    partition. *logged_partitions* returns the partitions in the controller's log. *is_active* tells
    whether a leader of the quorum is the active controller in an epoch.
    """

    def __init__(
        self,
        report: Report,
        election_reason: Callable[[int, str], str] = _no_reason,
        logged_partitions: Callable[[], Mapping[str, LoggedPartition]] = dict,
        is_active: Callable[[int, int], bool] = lambda _controller, _epoch: True,
        *,
        has_znodes: bool = True,
    ) -> None:
        self._report = report
        self._logged_partitions = logged_partitions
        self.is_active = is_active
        self._has_znodes = has_znodes
        self._election_reason = election_reason
        self._lock = threading.Lock()
        self._controller: int | None = None
        self._controller_epoch = -1
        self._registered: frozenset[int] = frozenset()
        self._partitions: dict[str, ObservedPartition] = {}
        self._eligible: dict[str, tuple[int, ...]] = {}
        self.assignments = ObservedAssignments(report)
        self.stopping: set[int] = set()
        """Brokers that are shutting down. They close their sessions; other sessions expire."""
        self.elected_cleanly: frozenset[str] = frozenset()
        """Topics without unclean elections. If such a topic gets a leader that was outside the ISR
        at the last poll, the leader must have joined the ISR since."""

    def controller(self) -> int | None:
        return self._controller

    def registered(self) -> frozenset[int]:
        return self._registered

    def partition_state(self, partition: str) -> ObservedPartition | None:
        return self._partitions.get(partition)

    def electable(self, partition: str) -> tuple[int, ...]:
        """Return the replicas that can lead a partition: its ISR, or else eligible ones."""
        state = self._partitions.get(partition)
        return () if state is None else state.isr or self._eligible.get(partition, ())

    def set_controller(self, controller: int | None, epoch: int) -> None:
        with self._lock:
            if (controller, epoch) != (self._controller, self._controller_epoch):
                self._controller, self._controller_epoch = controller, epoch
                self._report(ControllerChanged, NO_CONTROLLER if controller is None else controller, epoch)
                if controller is not None:
                    # Only the new controller itself writes ``/controller``.
                    self._report(ControllerElected, controller, epoch)

    def set_registered(self, brokers: Iterable[int], epochs: dict[int, int]) -> None:
        """Update the registered brokers; *epochs* are their broker epochs, if known."""
        with self._lock:
            before, self._registered = self._registered, frozenset(brokers)
            for broker in sorted(before - self._registered):
                kind = SessionClosed if broker in self.stopping else SessionExpired
                self._report(kind, broker, (f"{BROKER_IDS}/{broker}" if self._has_znodes else REGISTRATION,))
            for broker in sorted(self._registered - before):
                self._report(BrokerRegistered, broker, epochs.get(broker, -1))

    def update_from_log(self) -> None:
        """Update partitions from the controller's log, the only source while no broker runs."""
        for partition, logged in self._logged_partitions().items():
            before = self._partitions.get(partition)
            # Ignore topics that are not the campaign's.
            if before is not None and logged.leader_epoch >= before.leader_epoch:
                state = ObservedPartition(logged.leader, logged.leader_epoch, logged.isr)
                self.set_partition(partition, state, logged.eligible)

    def set_partition(self, partition: str, state: ObservedPartition, eligible: tuple[int, ...] = ()) -> None:
        """Update a partition: a leader changes the ISR, a controller begins a new leader epoch.

        *eligible* replicas outside the ISR have all committed records (KIP-966): their election is
        clean.
        """
        with self._lock:
            before, self._partitions[partition] = self._partitions.get(partition), state
            could_lead = set(self._eligible.get(partition, ())) | set(() if before is None else before.isr)
            # The list of eligible replicas may be late: it may lack a leader that was just elected.
            self._eligible[partition] = eligible or (() if state.isr else self._eligible.get(partition, ()))
            if before == state:
                return
            leader, epoch, isr = state
            controller = NO_CONTROLLER if self._controller is None else self._controller
            # Ask about every change: some reasons explain only one, and must not remain for the
            # next.
            reason = self._election_reason(controller, partition)
            if before is not None and (leader, epoch) == before[:2]:
                change = "expand" if len(isr) > len(before.isr) else "shrink"
                self._report(IsrWritten, leader, partition, epoch, isr)
                self._report(IsrChanged, leader, partition, epoch, isr, change)
                return
            if before is not None and leader in (before.leader, NO_BROKER) and set(isr) < set(before.isr):
                # If the leader leaves the ISR, it also stops leading
                # (``PartitionStateMachine.removeReplicasFromIsr``).
                self._report(IsrReduced, controller, partition, leader, epoch, isr)
            else:
                is_outside = before is not None and leader >= 0 and leader not in could_lead
                is_unclean = is_outside and partition.rpartition("-")[0] not in self.elected_cleanly
                self._report(LeaderElected, controller, partition, leader, epoch, isr, is_unclean, reason)
