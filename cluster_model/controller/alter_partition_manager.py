"""Asks the controller to change the ISRs of a leader (``DefaultAlterPartitionManager``, KIP-497).

This is how leaders change ISRs in KRaft, and with ZooKeeper from 2.7 on. Before 2.7 a leader wrote
the znode itself (`zookeeper.alter_partition_manager`).
"""

from collections.abc import Callable, Mapping
from typing import Final

from harrow.cluster_model import errors
from harrow.cluster_model.controller.control_plane import INELIGIBLE, OUTDATED
from harrow.cluster_model.controller.node_to_controller_channel import NodeToControllerChannel
from harrow.cluster_model.protocol import (
    NO_EPOCH,
    AlterPartition,
    AlterPartitionRequest,
    AlterPartitionResponse,
    LeaderAndIsr,
)
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.virtual_time import US_PER_MS

_RETRY_US: Final = 50 * US_PER_MS


class DefaultAlterPartitionManager:
    """The ISR changes of a broker.

    One request is in flight. The next one has all waiting changes.
    """

    def __init__(
        self,
        broker: int,
        host: Host,
        channel: NodeToControllerChannel,
        broker_epoch: Callable[[], int],
    ) -> None:
        self._broker = broker
        self._host = host
        self._channel = channel
        self._broker_epoch = broker_epoch
        self._unsent: dict[str, tuple[AlterPartition, Callable[[int | None], None]]] = {}
        self._is_under_way = False

    def start(self) -> None:
        """Do nothing, because there are no periodic tasks."""

    def submit(
        self,
        partition: str,
        state: LeaderAndIsr,
        controller_epoch: int,
        on_altered: Callable[[int | None], None],
        broker_epochs: Mapping[int, int],
    ) -> None:
        members = tuple((member, broker_epochs.get(member, NO_EPOCH)) for member in state.isr)
        change = AlterPartition(state.leader_epoch, state.partition_epoch, members)
        if partition in self._unsent:
            # A request from before the partition changed has no answer yet. In Kafka the new one
            # fails with OPERATION_NOT_ATTEMPTED.
            on_altered(INELIGIBLE)
            return
        self._unsent[partition] = (change, on_altered)
        self._send()

    def _send(self) -> None:
        if self._is_under_way or not self._unsent:
            return
        self._is_under_way = True
        sent = tuple(self._unsent)
        request = AlterPartitionRequest(
            self._broker, self._broker_epoch(), {name: self._unsent[name][0] for name in sent}
        )

        def on_response(response: AlterPartitionResponse) -> None:
            self._is_under_way = False
            if response.error != errors.NONE:
                # The broker is about to register again. It retries until it has.
                self._host.set_timer(_RETRY_US, lambda _: self._send())
                return
            for name in sent:
                _, on_altered = self._unsent.pop(name)
                on_altered(_outcome(*response.partitions[name]))
            self._send()

        self._channel.send(request, on_response)


def _outcome(error: str, partition_epoch: int) -> int:
    """Return what an answer means for the leader (``Partition.handleAlterPartitionError``).

    If the controller has a newer state of the partition, the leader gets that state from the
    metadata log or from the controller. If the controller has an older state, it is no longer the
    active controller, and the channel sends the request to the next one.
    """
    if error == errors.INELIGIBLE_REPLICA:
        return INELIGIBLE
    return partition_epoch if error == errors.NONE else OUTDATED
