"""Declares the switches of producers and consumers, and of the responses of brokers."""

from functools import partial
from typing import Final

from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.release import guards
from harrow.cluster_model.release.subjects import CLIENTS, FOLLOWER_FETCHING, LATE_ERRORS
from harrow.cluster_model.release.switch import Mutant, switch

_switch: Final = partial(switch, subject=CLIENTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSwitches:
    """Each field is a switch. Its default is the value that the default release has."""

    fetch_error_clears_read_replica: bool = _switch(
        "A consumer whose fetch from a follower fails returns to the leader. Before, it returned only if "
        "its position was out of range there, if the broker was missing in its metadata, or if the leader "
        "changed; and always after metadata.max.age.ms.",
        "KAFKA-14379, Fetcher.requestMetadataUpdate",
        subject=FOLLOWER_FETCHING,
        meaning="a consumer leaves a follower whose fetch fails (KAFKA-14379)",
        since="3.4",
        is_repair=False,
    )
    broker_opens_sockets_when_ready: bool = _switch(
        "A starting broker opens its sockets when it is unfenced, with ZooKeeper when it is registered. "
        "Before, it accepted connections at once, and their requests waited.",
        "KAFKA-14658, SocketServer.scala (Acceptor.start)",
        meaning="no client can connect to a starting broker before it is ready (KAFKA-14658)",
        since="3.5",
        is_repair=False,
    )
    idempotence: bool = _switch(
        "The idempotent producer exists.",
        "KIP-98",
        meaning="the idempotent producer (KIP-98)",
        since="0.11",
        guards=guards.SEQUENCES,
    )
    producer_bumps_epoch: bool = _switch(
        "An idempotent producer with a gap in its sequence numbers raises its epoch, and continues that "
        "partition from sequence 0. Before, it failed the batch, and started over in every partition with a "
        "new producer id.",
        "KIP-360 (KAFKA-8710), TransactionManager.bumpIdempotentProducerEpoch",
        meaning="a producer with a gap in its sequence numbers continues in a new epoch (KIP-360)",
        since="2.5",
        is_repair=False,
    )
    abandoned_batch_keeps_sequence: bool = _switch(
        "An idempotent producer that gives up a batch because of an error waits for its other batches to "
        "complete, if the batch may be in the log. No release does: an error that is handled after "
        "delivery.timeout.ms counts as a refusal while fewer than `retries` attempts were made. Up to 2.4 "
        "the next batches get the sequence numbers; from 2.5 on they get others in a new epoch.",
        "KAFKA-14397, Sender.completeBatch, TransactionManager.handleFailedBatch (adjustSequenceNumbers)",
        subject=LATE_ERRORS,
        meaning=(
            "a batch that may be in the log keeps its sequence numbers when the producer gives it up "
            "(KAFKA-14397)"
        ),
        latest=False,
        safe=True,
        guards=guards.SEQUENCES,
        mutant=Mutant(
            "late-error-frees-sequences",
            "A producer that handles an error after delivery.timeout.ms assumes that the batch was refused, "
            "though it may be in the log. Up to 2.4 the next batch gets its sequence number and counts as a "
            "retry; from 2.5 on batches that are in the log are sent again in a new epoch.",
            source="KAFKA-14397; every release since 2.1",
            noticed_by=("duplicate", "lost-write"),
            kafka="4.3",
        ),
    )
    delivery_timeout: bool = _switch(
        "delivery.timeout.ms bounds the time from send to completion, including retries.",
        "KIP-91",
        meaning="a send completes within delivery.timeout.ms (KIP-91)",
        since="2.1",
    )
    expired_batch_keeps_buffer: bool = _switch(
        "The memory of a batch that expires while it is in flight is not reused until its request has "
        "completed.",
        "KAFKA-19012, Sender.failBatch, BufferPool.deallocate (Java clients 2.8.0 to 4.1.1)",
        meaning="a request keeps the memory of its batches (KAFKA-19012)",
        guards=("misrouted",),
        mutant=Mutant(
            "expired-memory-reused",
            "The memory of a batch that expires in flight is given to the next batch, so the request "
            "carries records of another partition. No release of the model has this flaw: real clients have "
            "it only for data that a socket has not accepted yet, and sockets of the model never fill up.",
            source="KAFKA-19012; Java clients 2.8.0 to 4.1.1",
            noticed_by=("misrouted",),
            kafka="4.3",
        ),
    )
    oldest_request_fails_first: bool = _switch(
        "When a connection is lost, the oldest in-flight request fails first. A producer without "
        "idempotence puts each one back at the front of its queue, which reverses their order.",
        "InFlightRequests.clearAll",
        meaning="requests that fail with a connection keep their order",
        since="2.0",
        safe=False,
    )
    current_leader_in_error_response: bool = _switch(
        "A broker that refuses a produce or fetch because it does not lead the partition names the leader, "
        "and the client goes there at once; a batch for another leader skips its backoff. Before, clients "
        "asked for metadata first.",
        "KIP-951 (KAFKA-15868), KAFKA-15415, KafkaApis.getCurrentLeader, Metadata.updatePartitionLeadership",
        meaning="a client learns of a new leader from the former one (KIP-951)",
        since="3.7",
        is_repair=False,
    )
    sticky_partitioner: bool = _switch(
        "Records without a key go to one partition until its batch is sent. Before, they were distributed "
        "round-robin.",
        "KIP-480",
        meaning="records without a key fill the batch of one partition after another (KIP-480)",
        since="2.4",
    )
