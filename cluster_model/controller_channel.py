"""How the controller talks to brokers: a queue and a connection for each.

After ``ControllerChannelManager.scala``: one request at a time to each broker, repeated
until it is answered or the broker is no longer alive.
"""

from collections import deque
from collections.abc import Iterable
from typing import Final

from cluster_model.host import Host
from cluster_model.network_client import NetworkClient
from cluster_model.protocol import (
    ControlRequest,
    ControlResponse,
    LeaderAndIsrRequest,
    PartitionState,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from cluster_model.virtual_time import US_PER_MS

RETRY_BACKOFF_US: Final = 100 * US_PER_MS
CONTROL_LISTENER: Final = "control"


class ControllerChannel:
    """The requests that are on their way to one broker."""

    __slots__ = ("_client", "_closed", "_host", "_queue", "_sending", "broker_epoch")

    def __init__(self, host: Host, broker: int, broker_epoch: int, socket_timeout_us: int) -> None:
        self._host = host
        self.broker_epoch = broker_epoch
        self._client = NetworkClient(host, f"broker-{broker}", CONTROL_LISTENER, socket_timeout_us)
        self._queue: deque[ControlRequest] = deque()
        self._sending = False
        self._closed = False

    def put(self, request: ControlRequest) -> None:
        """Send a request after those before it."""
        self._queue.append(request)
        self._send_next(None)

    def close(self) -> None:
        """The broker, or the controller, is gone: drop what has not been answered."""
        self._closed = True
        self._queue.clear()
        self._client.close()

    def _send_next(self, _: None) -> None:
        if self._queue and not self._sending and not self._closed:
            self._sending = True
            self._client.send(self._queue[0], self._answered)

    def _answered(self, response: ControlResponse | None, _: None) -> None:
        self._sending = False
        if self._closed:
            return
        if response is None:
            self._host.set_timer(RETRY_BACKOFF_US, self._send_next)
        else:
            self._queue.popleft()
            self._send_next(None)


class ControllerChannelManager:
    """The channels to all live brokers."""

    def __init__(self, host: Host, broker: int, socket_timeout_us: int) -> None:
        self._host = host
        self._broker = broker
        self._socket_timeout_us = socket_timeout_us
        self._channels: dict[int, ControllerChannel] = {}

    def add_broker(self, broker: int, broker_epoch: int) -> None:
        """Open a channel."""
        self._channels[broker] = ControllerChannel(self._host, broker, broker_epoch, self._socket_timeout_us)

    def remove_broker(self, broker: int) -> None:
        """Close a channel."""
        channel = self._channels.pop(broker, None)
        if channel is not None:
            channel.close()

    def close(self) -> None:
        """Close all channels."""
        for broker in tuple(self._channels):
            self.remove_broker(broker)

    def channel(self, broker: int) -> ControllerChannel | None:
        """Return the channel to a broker, None when it is not alive."""
        return self._channels.get(broker)


class RequestBatch:
    """What one state change has to tell the brokers (``ControllerBrokerRequestBatch``)."""

    def __init__(self, controller: int, controller_epoch: int, channels: ControllerChannelManager) -> None:
        self._controller = controller
        self._controller_epoch = controller_epoch
        self._channels = channels
        self._leader_and_isr: dict[int, dict[str, PartitionState]] = {}
        self._stop_replica: dict[int, list[str]] = {}
        self._update_metadata: dict[str, PartitionState] = {}

    def add_leader_and_isr(self, brokers: Iterable[int], partition: str, state: PartitionState) -> None:
        """Tell these brokers the new state; everybody gets it as metadata."""
        for broker in brokers:
            self._leader_and_isr.setdefault(broker, {})[partition] = state
        self._update_metadata[partition] = state

    def add_stop_replica(self, broker: int, partition: str) -> None:
        """Tell a broker to stop fetching."""
        self._stop_replica.setdefault(broker, []).append(partition)

    def send(self, live_brokers: tuple[int, ...]) -> None:
        """Queue the requests: LeaderAndIsr, then UpdateMetadata, then StopReplica.

        Only to live brokers: one that bounced has a channel again, but is not told to stop
        while the failure of its earlier life is dealt with (``sendRequestsToBrokers``).
        """
        for broker, states in self._leader_and_isr.items():
            channel = self._channels.channel(broker) if broker in live_brokers else None
            if channel is not None:
                leaders = tuple(
                    sorted({s.leader_and_isr.leader for s in states.values()} & set(live_brokers))
                )
                channel.put(
                    LeaderAndIsrRequest(
                        self._controller, self._controller_epoch, channel.broker_epoch, states, leaders
                    )
                )
        if self._update_metadata:
            self.send_update_metadata(live_brokers, self._update_metadata, live_brokers)
        for broker, partitions in self._stop_replica.items():
            channel = self._channels.channel(broker) if broker in live_brokers else None
            if channel is not None:
                channel.put(
                    StopReplicaRequest(
                        self._controller, self._controller_epoch, channel.broker_epoch, tuple(partitions)
                    )
                )

    def send_update_metadata(
        self, brokers: Iterable[int], states: dict[str, PartitionState], live_brokers: tuple[int, ...]
    ) -> None:
        """Queue an UpdateMetadata to some brokers."""
        for broker in brokers:
            channel = self._channels.channel(broker)
            if channel is not None:
                channel.put(
                    UpdateMetadataRequest(
                        self._controller, self._controller_epoch, channel.broker_epoch, states, live_brokers
                    )
                )
