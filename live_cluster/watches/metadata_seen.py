"""What the control plane of a real cluster says, and what follows from each change of it."""

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
from harrow.live_cluster.links.requests_seen import Report
from harrow.live_cluster.watches.assignments_seen import AssignmentsSeen

NO_BROKER: Final = -1


class SeenPartition(NamedTuple):
    """A partition's leader (-1 for none), leader epoch and ISR."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]


def _no_reason(_controller: int, _partition: str) -> str:
    return ""


class MetadataSeen:
    """The newest that is known of controller, registrations and partitions. The watches say what is so now.

    *election_reason* returns why a controller (-1 for one that is no broker) has changed a partition just now, *logged* what the
    controller has of partitions in its log.
    """

    def __init__(
        self,
        report: Report,
        election_reason: Callable[[int, str], str] = _no_reason,
        logged: Callable[[], Mapping[str, LoggedPartition]] = dict,
        *,
        has_znodes: bool = True,
    ) -> None:
        self._report = report
        self._logged = logged
        self._has_znodes = has_znodes
        self._election_reason = election_reason
        self._lock = threading.Lock()
        self._controller: int | None = None
        self._controller_epoch = -1
        self._registered: frozenset[int] = frozenset()
        self._partitions: dict[str, SeenPartition] = {}
        self._eligible: dict[str, tuple[int, ...]] = {}
        self.assignments = AssignmentsSeen(report)
        self.stopping: set[int] = set()
        """Brokers that have been told to stop: their registrations end with a session that they close themselves."""
        self.elected_cleanly: frozenset[str] = frozenset()
        """Topics whose partitions get no leader from outside their ISR: one that seems so has been in it between two looks."""

    def controller(self) -> int | None:
        """Return the controller, None while there is none."""
        return self._controller

    def registered(self) -> frozenset[int]:
        """Return the brokers that are registered."""
        return self._registered

    def partition_state(self, partition: str) -> SeenPartition | None:
        """Return the state of a partition, None before it has any."""
        return self._partitions.get(partition)

    def electable(self, partition: str) -> tuple[int, ...]:
        """Return who can lead a partition: its ISR; where that is empty who else is eligible, as far as that is known."""
        state = self._partitions.get(partition)
        return () if state is None else state.isr or self._eligible.get(partition, ())

    def set_controller(self, controller: int | None, epoch: int) -> None:
        with self._lock:
            if (controller, epoch) != (self._controller, self._controller_epoch):
                self._controller, self._controller_epoch = controller, epoch
                self._report(ControllerChanged, NO_CONTROLLER if controller is None else controller, epoch)
                if controller is not None:
                    # It has written so itself.
                    self._report(ControllerElected, controller, epoch)

    def set_registered(self, brokers: Iterable[int], epochs: dict[int, int]) -> None:
        """*epochs* are the broker epochs, where they are known."""
        with self._lock:
            before, self._registered = self._registered, frozenset(brokers)
            for broker in sorted(before - self._registered):
                kind = SessionClosed if broker in self.stopping else SessionExpired
                self._report(kind, broker, (f"{BROKER_IDS}/{broker}" if self._has_znodes else REGISTRATION,))
            for broker in sorted(self._registered - before):
                self._report(BrokerRegistered, broker, epochs.get(broker, -1))

    def take_logged(self) -> None:
        """Take over what the controller has logged: where no broker is there to tell, nobody else knows."""
        for partition, told in self._logged().items():
            known = self._partitions.get(partition)
            # Topics that are not the campaign's are not known.
            if known is not None and told.leader_epoch >= known.leader_epoch:
                self.set_partition(
                    partition, SeenPartition(told.leader, told.leader_epoch, told.isr), told.eligible
                )

    def set_partition(self, partition: str, state: SeenPartition, eligible: tuple[int, ...] = ()) -> None:
        """A broker writes an ISR within a leader epoch; with a new one a controller has elected, or taken somebody out.

        *eligible* are those outside the ISR that have all that is committed (KIP-966): their election is clean.
        """
        with self._lock:
            before, self._partitions[partition] = self._partitions.get(partition), state
            could_lead = set(self._eligible.get(partition, ())) | set(() if before is None else before.isr)
            # Who is told of them is behind: a leader that has just been elected is one no more.
            self._eligible[partition] = eligible or (() if state.isr else self._eligible.get(partition, ()))
            if before == state:
                return
            leader, epoch, isr = state
            controller = NO_CONTROLLER if self._controller is None else self._controller
            # Asked of every change: some causes explain one, and must not be left over for the next.
            reason = self._election_reason(controller, partition)
            if before is not None and (leader, epoch) == before[:2]:
                change = "expand" if len(isr) > len(before.isr) else "shrink"
                self._report(IsrWritten, leader, partition, epoch, isr)
                self._report(IsrChanged, leader, partition, epoch, isr, change)
                return
            if before is not None and leader in (before.leader, NO_BROKER) and set(isr) < set(before.isr):
                # Who leads goes with it, where it is the leader (``PartitionStateMachine.removeReplicasFromIsr``).
                self._report(IsrReduced, controller, partition, leader, epoch, isr)
            else:
                is_outside = before is not None and leader >= 0 and leader not in could_lead
                is_unclean = is_outside and partition.rpartition("-")[0] not in self.elected_cleanly
                self._report(LeaderElected, controller, partition, leader, epoch, isr, is_unclean, reason)
