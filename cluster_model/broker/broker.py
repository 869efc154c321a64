"""Implements a broker process, which handles requests and takes part in the control plane.

Modelled on ``KafkaServer.scala`` and ``KafkaApis.scala``. A broker handles the requests of a
connection one after the other, as ``SocketServer`` does. In the model a request takes no time, so
requests wait for threads only while the broker or its disk is slow (see `request_channel`).
"""

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from harrow.cluster_model import errors
from harrow.cluster_model.broker.append_locks import Steps
from harrow.cluster_model.broker.auto_topic_creation_manager import AutoTopicCreationManager
from harrow.cluster_model.broker.client_quota_manager import ClientQuotas
from harrow.cluster_model.broker.metadata_cache import MetadataCache
from harrow.cluster_model.broker.partition import Partition
from harrow.cluster_model.broker.replica_manager import ReplicaManager
from harrow.cluster_model.broker.request_channel import RequestChannels, RequestPace
from harrow.cluster_model.controller.administration import (
    ADMINISTRATION_REQUESTS,
    AdministrationRequest,
    AlterTopicSettingsRequest,
    Outcome,
)
from harrow.cluster_model.controller.control_plane import ControlPlane, MetadataDelta
from harrow.cluster_model.controller.node_to_controller_channel import NO_NODE
from harrow.cluster_model.coordinators.coordinator import Coordinator
from harrow.cluster_model.coordinators.groups.group_coordinator import GroupCoordinator
from harrow.cluster_model.coordinators.internal_topics import partition_for
from harrow.cluster_model.coordinators.protocol import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    EndTxnRequest,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ListTransactionsRequest,
    TxnMarker,
    WriteTxnMarkersRequest,
)
from harrow.cluster_model.coordinators.transactions.transaction_coordinator import TransactionCoordinator
from harrow.cluster_model.coordinators.transactions.transaction_markers import write_txn_markers
from harrow.cluster_model.events import (
    KILLED,
    SHUT_DOWN,
    BrokerStarted,
    ClientThrottled,
    ControlRequestObeyed,
    RequestRejected,
)
from harrow.cluster_model.log.disk import Disk
from harrow.cluster_model.protocol import (
    NO_EPOCH,
    NO_LEADER,
    AlterPartitionRequest,
    ControlledShutdownRequest,
    ControlRequest,
    ControlResponse,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DescribeProducersRequest,
    DescribeProducersResponse,
    FetchRequest,
    FetchResponse,
    InitProducerIdRequest,
    LeaderAndIsrRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetsForLeaderEpochRequest,
    ProduceRequest,
    ProduceResponse,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from harrow.cluster_model.release.profiles import Behaviours
from harrow.cluster_model.settings import BrokerConfig
from harrow.cluster_model.sim.connection import Connection, Exchange, Handlers, ServerEndpoint, register
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.message import Body
from harrow.cluster_model.topic_settings import Settings, TopicConfigs, is_of_brokers
from harrow.cluster_model.topology import CONSUMER_OFFSETS, TRANSACTION_STATE


class Broker(ServerEndpoint):
    """One incarnation of a broker: its process, from its start to its end."""

    def __init__(
        self,
        broker: int,
        host: Host,
        disk: Disk,
        config: BrokerConfig,
        topic_configs: TopicConfigs,
        behaviours: Behaviours,
        control_plane: ControlPlane,
        racks: Mapping[int, str] = MappingProxyType({}),
        quotas: ClientQuotas | None = None,
        pace: RequestPace | None = None,
    ) -> None:
        self.id = broker
        self._pace = RequestPace() if pace is None else pace
        self._quotas = quotas
        self._host = host
        self._config = config
        self._behaviours = behaviours
        self._broker_epoch = NO_EPOCH
        self._accepts_requests = not (
            behaviours.zookeeper.requests_wait_for_registration
            or behaviours.clients.broker_opens_sockets_when_ready
        )
        self._early_requests: list[Exchange[Body]] = []
        self._is_shut_down = False
        self._disk = disk
        # The threads and their queues; None while no request has to wait for them.
        self._channels: RequestChannels | None = None
        # Changes of the metadata log that wait for appends. The first of them is in progress.
        self._deltas: deque[MetadataDelta] = deque()
        self.metadata = MetadataCache(racks)
        self._topic_configs = topic_configs
        topic_config = topic_configs.get
        self._lifecycle = control_plane.join(broker, host, config, topic_config, self)
        self._topic_creation = AutoTopicCreationManager(config, self._lifecycle)
        self._open_sockets: Callable[[], None] | None = None
        self.replicas = ReplicaManager(
            broker,
            host,
            disk,
            config,
            topic_config,
            behaviours,
            self._lifecycle.alter_partition_manager,
            self.respond if quotas is None else self._respond_within_quota,
            self.metadata,
            None if quotas is None else quotas.fetch,
        )
        self.replicas.on_unblocked = self._queue_again
        self._transactions = TransactionCoordinator(
            *(broker, host, config, behaviours.transactions, self.replicas, self.metadata),
            self._lifecycle.generate_producer_id,
        )
        self.groups = GroupCoordinator(
            broker, host, config, behaviours.groups, self.replicas, self.respond, self.metadata
        )
        self._coordinators: dict[str, Coordinator] = {
            TRANSACTION_STATE: self._transactions,
            CONSUMER_OFFSETS: self.groups,
        }
        self.replicas.on_leadership_change = self._coordinator_changed
        self.replicas.on_log_dir_failure = self._lifecycle.propagate_log_dir_failure
        self._handlers: Handlers = {**self.groups.handlers}
        # The handlers that can wait, for use while the broker or its disk is slow.
        self._slow_handlers: dict[type[Body], Callable[[Exchange[Any]], Steps]] = {
            ProduceRequest: self.replicas.produce_steps,
            LeaderAndIsrRequest: self._change_steps,
            StopReplicaRequest: self._change_steps,
            UpdateMetadataRequest: self._update_metadata_steps,
        }
        self._register_handlers()

    def _register_handlers(self) -> None:
        handlers, replicas = self._handlers, self.replicas
        register(handlers, ProduceRequest, replicas.handle_produce)
        register(handlers, FetchRequest, replicas.fetching.handle_fetch)
        register(handlers, OffsetsForLeaderEpochRequest, replicas.fetching.handle_offsets_for_leader_epoch)
        register(handlers, ListOffsetsRequest, replicas.fetching.handle_list_offsets)
        register(handlers, MetadataRequest, self._handle_metadata)
        register(handlers, DeleteRecordsRequest, self._handle_delete_records)
        register(handlers, DescribeProducersRequest, self._handle_describe_producers)
        register(handlers, DescribeTransactionsRequest, self._handle_describe_transactions)
        register(handlers, ListTransactionsRequest, self._handle_list_transactions)
        register(handlers, InitProducerIdRequest, self._handle_init_producer_id)
        register(handlers, FindCoordinatorRequest, self._handle_find_coordinator)
        register(handlers, AddPartitionsToTxnRequest, self._handle_add_partitions_to_txn)
        register(handlers, AddOffsetsToTxnRequest, self._handle_add_offsets_to_txn)
        register(handlers, EndTxnRequest, self._handle_end_txn)
        register(handlers, WriteTxnMarkersRequest, self._handle_write_txn_markers)
        register(handlers, LeaderAndIsrRequest, self._handle_leader_and_isr)
        register(handlers, UpdateMetadataRequest, self._handle_update_metadata)
        register(handlers, StopReplicaRequest, self._handle_stop_replica)
        register(handlers, ControlledShutdownRequest, self._handle_controlled_shutdown)
        register(handlers, AlterPartitionRequest, self._handle_alter_partition)
        for kind in ADMINISTRATION_REQUESTS:
            register(handlers, kind, self._handle_administration)

    @property
    def is_active_controller(self) -> bool:
        """Whether this broker considers itself the controller."""
        return self._lifecycle.is_active_controller

    @property
    def exit_us(self) -> int | None:
        """When the broker will exit by itself unless something changes; None if it will not."""
        return self._lifecycle.exit_us

    @property
    def hangs(self) -> bool:
        """Whether the broker is shutting down, but will never finish by itself."""
        return self._is_shut_down and self.replicas.hangs

    def start(self, open_sockets: Callable[[], None]) -> None:
        """Start the broker, and register with the control plane.

        No client can connect before *open_sockets* is called.
        """
        if self._behaviours.clients.broker_opens_sockets_when_ready:
            self._open_sockets = open_sockets
        else:
            open_sockets()
        self._host.emit(BrokerStarted, self.id)
        if self._is_slow():
            self.queue_requests()
        self.replicas.start()
        self._transactions.start()
        self._lifecycle.start()

    @property
    def known_controller(self) -> int:
        """The controller that sent the latest metadata, if that metadata lists it as alive."""
        controller = self.metadata.controller
        return controller if controller in self.metadata.live_brokers else NO_NODE

    def has_failed_log_dirs(self) -> bool:
        return self.replicas.logs.has_failed_dirs()

    def on_registration(self, broker_epoch: int) -> None:
        """Begin to handle requests, unless the sockets are still closed.

        Requests that arrived earlier have waited in the sockets.
        """
        self._broker_epoch = broker_epoch
        if self._open_sockets is None:
            self._accepts_requests = True
            exchanges, self._early_requests = self._early_requests, []
            for exchange in exchanges:
                self.receive_request(exchange)

    def on_unfencing(self) -> None:
        """Open the sockets if they are still closed."""
        if self._open_sockets is not None and not self._is_shut_down:
            open_sockets, self._open_sockets = self._open_sockets, None
            self._accepts_requests = True
            open_sockets()

    def on_metadata_update(self, delta: MetadataDelta) -> None:
        """Apply changes of the metadata log (``BrokerMetadataPublisher.onMetadataUpdate``).

        A change of a partition waits for appends in progress to that partition. Later changes wait
        as well, because one thread applies all changes (the queue of ``MetadataLoader``).
        """
        if not self._deltas and self.replicas.append_locks.are_free:
            self._apply_metadata(delta)
            return
        self._deltas.append(delta)
        if len(self._deltas) == 1:
            self._apply_deltas(self._metadata_steps())

    def _metadata_steps(self) -> Steps:
        while self._deltas:
            yield from self.replicas.change_steps(
                self.replicas.partitions_changed_by(self._deltas[0].partition_states)
            )
            self._apply_metadata(self._deltas[0])
            self.replicas.append_locks.end_change()
            self._deltas.popleft()

    def _apply_deltas(self, steps: Steps) -> None:
        """Run the thread that applies the metadata log until it has to wait."""
        wait_us = next(steps, None)
        if wait_us is not None:
            self._host.set_timer(wait_us, self._apply_deltas, steps)

    def _apply_metadata(self, delta: MetadataDelta) -> None:
        if not self._is_shut_down:
            for topic, settings in delta.topic_settings.items():
                self.configure_topic(topic, settings)
            self.metadata.apply(delta)
            self.replicas.apply_metadata(delta.broker_epoch, delta.partition_states)
            self.replicas.delete_replicas(delta.deleted)
            self.groups.on_partitions_deleted(delta.deleted)

    def configure_topic(self, topic: str, settings: Settings) -> None:
        """Follow the settings of a topic, or of brokers, that an administrator has changed."""
        self._topic_configs.set(topic, settings, self._host.clock.now_us)
        self.replicas.configure(None if is_of_brokers(topic) else topic)

    def delete_records(
        self, partition: str, offset: int, timeout_us: int, respond: Callable[[str, int, int], None]
    ) -> None:
        """Delete records if the broker accepts requests (`ReplicaManager.delete_records`)."""
        if self._accepts_requests:
            self.replicas.delete_records(partition, offset, timeout_us, respond)
        else:
            respond(errors.NOT_LEADER_FOR_PARTITION, offset, -1)

    def stop(self, close_sockets: Callable[[], None], end: Callable[[str], None]) -> None:
        """Shut down cleanly (``KafkaServer.shutdown``); *end* ends the process with a cause.

        The broker stops even if its leaderships cannot be moved. A broker that is still starting
        cannot shut down and halts instead (``KafkaServerStartable.shutdown``).
        """
        if self._broker_epoch == NO_EPOCH:
            end(KILLED)
        elif self._config.controlled_shutdown:
            self.replicas.begin_controlled_shutdown()
            self._lifecycle.request_controlled_shutdown(lambda: self._shut_down(close_sockets, end))
        else:
            self._shut_down(close_sockets, end)

    def _shut_down(self, close_sockets: Callable[[], None], end: Callable[[str], None]) -> None:
        """Stop handling requests, flush the logs, and then leave the cluster.

        Because the broker leaves last, no other leader is elected before the disk has all records.
        A broker that hangs stays registered.
        """
        close_sockets()
        self._accepts_requests = False
        self.replicas.append_locks.close()
        if self._channels is not None:
            self._channels.close()
        self._is_shut_down = True
        self._transactions.close()
        self.replicas.shutdown()
        if not self.replicas.hangs:
            self._lifecycle.close(lambda: end(SHUT_DOWN))

    # Requests

    def receive_request(self, exchange: Exchange[Body]) -> None:
        """Handle a request once earlier requests of its connection are answered."""
        connection = exchange.connection
        if not self._accepts_requests:
            self._early_requests.append(exchange)
        elif connection.muted or connection.waiting:
            if connection.idle is not None:
                connection.idle.wake()
                assert connection.muted, "the connection of an idle fetch must be muted"
            connection.waiting.append(exchange)
        else:
            connection.muted = True
            if self._channels is None:
                self._handle(exchange)
            else:
                self._queue(exchange, self._channels)

    def on_clock_step(self, by_us: int) -> None:
        """Step the machine's wall clock by *by_us*.

        Everything with a timestamp of that clock becomes older or younger.
        """
        self._host.skew_us += by_us
        self.replicas.on_clock_step(by_us)

    def _is_slow(self) -> bool:
        return self._disk.is_slow or self._pace.request_us > 0

    def queue_requests(self) -> None:
        """Queue requests for threads from now on, because the broker or its disk is slow."""
        if self._channels is None:
            self._channels = RequestChannels(self.id, self._host, self._config, self._steps, self._send)
            self.replicas.fetching.repeats_idle_fetches = False

    def _queue(self, exchange: Exchange[Body], channels: RequestChannels) -> None:
        """Queue a request for a thread, or handle it at once if the broker is no longer slow."""
        if self._is_slow() or not channels.are_idle:
            channels.add_request(exchange)
        else:
            self._channels = None
            self.replicas.fetching.repeats_idle_fetches = True
            self._handle(exchange)

    def _queue_again(self, exchange: Exchange[Body]) -> None:
        if self._channels is None:
            self._handle(exchange)
        else:
            self._queue(exchange, self._channels)

    def _steps(self, exchange: Exchange[Body]) -> Steps:
        """Handle a request as a thread does while the broker or its disk is slow."""
        if self._pace.request_us:
            yield self._pace.request_us
        steps = self._slow_handlers.get(type(exchange.request))
        if steps is None:
            self._handle(exchange)
        else:
            yield from steps(exchange)

    def _update_metadata_steps(self, exchange: Exchange[UpdateMetadataRequest]) -> Steps:
        """Wait until no change of partitions is in progress, then update the metadata.

        In Kafka both need ``ReplicaManager.replicaStateChangeLock``.
        """
        if self._control_error(exchange.request) == errors.NONE:
            yield from self.replicas.append_locks.wait_for_change()
        self._handle(exchange)

    def _change_steps(self, exchange: Exchange[LeaderAndIsrRequest | StopReplicaRequest]) -> Steps:
        """Wait for appends to the partitions that a request changes, then handle the request."""
        if self._control_error(exchange.request) != errors.NONE:
            self._handle(exchange)
            return
        yield from self.replicas.change_steps(self.replicas.partitions_changed_by_request(exchange.request))
        self._handle(exchange)
        self.replicas.append_locks.end_change()

    def connection_closed(self, connection: Connection) -> None:
        """Handle a closed connection. Requests that arrived on it are still handled."""
        self.replicas.connection_closed(connection)

    def respond(self, exchange: Exchange[Body], body: Body | None) -> None:
        """Send a response unless *body* is None, and handle the next request of the connection."""
        if not self._accepts_requests or self.replicas.logs.is_halting:
            return  # The sockets are closed, or will close before they send the response.
        if self._channels is None:
            self._send(exchange, body)
        else:
            self._channels.answer(exchange, body)

    def _send(self, exchange: Exchange[Body], body: Body | None) -> None:
        connection = exchange.connection
        if body is not None:
            self._host.send_response(connection, exchange.correlation_id, body)
        connection.muted = False
        if connection.throttle_us:
            self._mute(connection)
        if connection.waiting and not connection.draining:
            self._handle_waiting(connection)

    # Quotas

    def _respond_within_quota(self, exchange: Exchange[Body], body: Body | None) -> None:
        """Answer a produce or a fetch, and throttle a client that exceeds its quota.

        Since KIP-219 the broker sends the response at once, with the throttle time, and mutes the
        connection for that time. Before KIP-219 the broker delayed the response itself, and so also
        the next requests of the connection.
        """
        client = exchange.connection.client.name
        throttle_us = self._throttle_us(client, exchange.request, body)
        if not throttle_us:
            self.respond(exchange, body)
            return
        request = exchange.request
        assert isinstance(request, (ProduceRequest, FetchRequest)), "only produces and fetches have quotas"
        self._host.emit(ClientThrottled, self.id, client, request.api, throttle_us)
        announced_us = throttle_us if self._behaviours.replication.throttled_client_answered_at_once else 0
        if isinstance(body, (ProduceResponse, FetchResponse)):
            body.throttle_us = announced_us
        if announced_us:
            exchange.connection.throttle_us = throttle_us
            self.respond(exchange, body)
        else:
            self._host.set_timer(throttle_us, lambda _: self.respond(exchange, body))

    def _throttle_us(self, client: str, request: object, body: Body | None) -> int:
        if (
            isinstance(request, ProduceRequest)
            and self._quotas is not None
            and self._quotas.produce is not None
        ):
            return self._quotas.produce.record(client, request.record_bytes)
        return body.throttle_us if isinstance(body, FetchResponse) else 0

    def _mute(self, connection: Connection) -> None:
        """Read nothing from a throttled client for a while (``ThrottledChannel``)."""
        throttle_us, connection.throttle_us = connection.throttle_us, 0
        connection.muted = True
        self._host.set_timer(throttle_us, self._unmute, connection)

    def _unmute(self, connection: Connection) -> None:
        connection.muted = False
        if connection.waiting and not connection.draining:
            self._handle_waiting(connection)

    def _handle_waiting(self, connection: Connection) -> None:
        """Handle a connection's waiting requests, until one of them is not answered at once."""
        connection.draining = True
        while connection.waiting and not connection.muted:
            connection.muted = True
            exchange = connection.waiting.popleft()
            if self._channels is None:
                self._handle(exchange)
            else:
                self._queue(exchange, self._channels)
        connection.draining = False

    def _handle(self, exchange: Exchange[Body]) -> None:
        self._handlers[type(exchange.request)](exchange)

    def _handle_metadata(self, exchange: Exchange[MetadataRequest]) -> None:
        """Answer, and create topics that a client names and that do not exist."""
        request = exchange.request
        missing = [topic for topic in request.topics if not self.metadata.has_topic(topic)]
        if not missing:
            self.respond(exchange, self.metadata.response())
            return

        def on_answer(topic_errors: Mapping[str, str]) -> None:
            response = self.metadata.response()
            response.topic_errors = topic_errors
            self.respond(exchange, response)

        self._topic_creation.create_topics(missing, on_answer, is_allowed=request.allow_auto_topic_creation)

    def _handle_delete_records(self, exchange: Exchange[DeleteRecordsRequest]) -> None:
        """Delete records, and answer when all partitions are done."""
        request = exchange.request
        outcome: dict[str, tuple[str, int]] = {}

        def on_deleted(name: str, error: str, _: int, low_watermark: int) -> None:
            outcome[name] = (error, low_watermark)
            if len(outcome) == len(request.partitions):
                self.respond(exchange, DeleteRecordsResponse(outcome))

        for name, offset in request.partitions.items():
            self.replicas.delete_records(name, offset, request.timeout_us, partial(on_deleted, name))
        if not request.partitions:
            self.respond(exchange, DeleteRecordsResponse(outcome))

    def _handle_describe_producers(self, exchange: Exchange[DescribeProducersRequest]) -> None:
        described = {name: self.replicas.producers_of(name) for name in exchange.request.partitions}
        self.respond(exchange, DescribeProducersResponse(described))

    def _handle_describe_transactions(self, exchange: Exchange[DescribeTransactionsRequest]) -> None:
        described = tuple([self._transactions.describe(each) for each in exchange.request.transactional_ids])
        self.respond(exchange, DescribeTransactionsResponse(described))

    def _handle_list_transactions(self, exchange: Exchange[ListTransactionsRequest]) -> None:
        self.respond(exchange, self._transactions.list_transactions(exchange.request))

    def _handle_add_partitions_to_txn(self, exchange: Exchange[AddPartitionsToTxnRequest]) -> None:
        self._transactions.add_partitions(exchange.request, lambda answer: self.respond(exchange, answer))

    def _handle_add_offsets_to_txn(self, exchange: Exchange[AddOffsetsToTxnRequest]) -> None:
        self._transactions.add_offsets(exchange.request, lambda answer: self.respond(exchange, answer))

    def _handle_end_txn(self, exchange: Exchange[EndTxnRequest]) -> None:
        self._transactions.end_transaction(exchange.request, lambda answer: self.respond(exchange, answer))

    def _handle_init_producer_id(self, exchange: Exchange[InitProducerIdRequest]) -> None:
        if exchange.request.transactional_id:
            self._transactions.init_producer_id(
                exchange.request, lambda answer: self.respond(exchange, answer)
            )
        else:
            self._lifecycle.generate_producer_id(lambda answer: self.respond(exchange, answer))

    def _handle_write_txn_markers(self, exchange: Exchange[WriteTxnMarkersRequest]) -> None:
        """End transactions in partitions that this broker leads (``handleWriteTxnMarkersRequest``).

        If a marker ends a transaction in ``__consumer_offsets``, the group coordinator learns
        whether the offsets of that transaction are committed.
        """

        def complete_in_groups(marker: TxnMarker, outcome: dict[str, str]) -> None:
            for name, error in outcome.items():
                topic, _, number = name.rpartition("-")
                if topic == CONSUMER_OFFSETS and error == errors.NONE:
                    self.groups.transaction_completed(
                        int(number), marker.producer_id, committed=marker.committed
                    )

        write_txn_markers(
            exchange.request,
            self.replicas,
            self._host.clock.now_us,
            complete_in_groups,
            lambda answer: self.respond(exchange, answer),
        )

    def _handle_find_coordinator(self, exchange: Exchange[FindCoordinatorRequest]) -> None:
        """Answer with the coordinator of a key: the leader of the key's internal partition."""
        request = exchange.request
        config = self._config
        count = (
            config.offsets_topic_partitions
            if request.topic == CONSUMER_OFFSETS
            else config.transaction_topic_partitions
        )
        leader = self.metadata.live_leader(f"{request.topic}-{partition_for(request.key, count)}")
        error = errors.COORDINATOR_NOT_AVAILABLE if leader == NO_LEADER else errors.NONE
        self.respond(exchange, FindCoordinatorResponse(error, leader))

    def _coordinator_changed(self, partition: Partition, is_leader: bool) -> None:
        """Tell a coordinator whether this broker now leads a partition of its internal topic."""
        topic, _, number = partition.name.rpartition("-")
        coordinator = self._coordinators.get(topic)
        if coordinator is None:
            return
        if is_leader:
            coordinator.on_election(int(number), partition.leader_epoch)
        else:
            coordinator.on_resignation(int(number))

    def _handle_controlled_shutdown(self, exchange: Exchange[ControlledShutdownRequest]) -> None:
        self._lifecycle.handle_controlled_shutdown(
            exchange.request, lambda answer: self.respond(exchange, answer)
        )

    def _handle_alter_partition(self, exchange: Exchange[AlterPartitionRequest]) -> None:
        self._lifecycle.handle_alter_partition(
            exchange.request, lambda answer: self.respond(exchange, answer)
        )

    def _handle_administration(self, exchange: Exchange[AdministrationRequest]) -> None:
        request = exchange.request
        refused: dict[str, Outcome] = {}
        if isinstance(request, AlterTopicSettingsRequest):
            request, refused = request.without_other_brokers(self.id)

        def respond(answer: Any) -> None:
            self.respond(exchange, answer.with_refused(refused) if refused else answer)

        self._lifecycle.administer(request, respond)

    def _handle_leader_and_isr(self, exchange: Exchange[LeaderAndIsrRequest]) -> None:
        if not self._refuse_if_stale(exchange):
            self.replicas.handle_leader_and_isr(exchange)

    def _handle_stop_replica(self, exchange: Exchange[StopReplicaRequest]) -> None:
        if not self._refuse_if_stale(exchange):
            self._obey(exchange.request)
            self.replicas.handle_stop_replica(exchange)

    def _handle_update_metadata(self, exchange: Exchange[UpdateMetadataRequest]) -> None:
        if not self._refuse_if_stale(exchange):
            self._obey(exchange.request)
            self.groups.on_partitions_deleted(self.metadata.update(exchange.request))
            self.respond(exchange, ControlResponse(exchange.request.api, errors.NONE))

    def _obey(self, request: ControlRequest) -> None:
        self._host.publish(ControlRequestObeyed, self.id, request.api, request.controller_epoch)
        self.replicas.controller_epoch = request.controller_epoch

    def _refuse_if_stale(self, exchange: Exchange[ControlRequest]) -> bool:
        """Reject a request that is for a previous incarnation or from a deposed controller."""
        request = exchange.request
        error = self._control_error(request)
        if error == errors.NONE:
            return False
        self._host.emit(RequestRejected, self.id, request.api, "", exchange.connection.client.name, error)
        self.respond(exchange, ControlResponse(request.api, error))
        return True

    def _control_error(self, request: ControlRequest) -> str:
        if (
            self._behaviours.zookeeper.control_requests_carry_broker_epoch
            and request.broker_epoch < self._broker_epoch
        ):
            return errors.STALE_BROKER_EPOCH
        if self.replicas.is_stale_controller(request.controller_epoch):
            return errors.STALE_CONTROLLER_EPOCH
        return errors.NONE
