"""Producers and consumers, and how brokers answer them."""

from dataclasses import dataclass
from functools import partial
from typing import Final

from harrow.cluster_model.release import guards
from harrow.cluster_model.release.subjects import CLIENTS, FOLLOWER_FETCHING, LATE_ERRORS
from harrow.cluster_model.release.switch import Mutant, switch

_switch: Final = partial(switch, of=CLIENTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSwitches:
    """The switches; their defaults are what the default release does."""

    errors_clear_read_replica: bool = _switch(
        "A consumer whose fetch from a follower fails goes back to the leader. Before, it did so if its position was out of range there, the "
        "broker was missing in its metadata, or there was another leader; and after metadata.max.age.ms in any case.",
        "KAFKA-14379, Fetcher.requestMetadataUpdate",
        of=FOLLOWER_FETCHING,
        meaning="a consumer leaves a follower that fails it (KAFKA-14379)",
        before=(("3.4", False),),
        is_repair=False,
    )
    sockets_opened_last: bool = _switch(
        "A starting broker opens its sockets when it is unfenced, with ZooKeeper when it is registered. Before, connections were accepted at once, and "
        "requests waited for that.",
        "KAFKA-14658, SocketServer.scala (Acceptor.start)",
        meaning="no client can connect to a starting broker before it is ready (KAFKA-14658)",
        before=(("3.5", False),),
        is_repair=False,
    )
    idempotence: bool = _switch(
        "The idempotent producer exists.",
        "KIP-98",
        meaning="the idempotent producer (KIP-98)",
        before=(("0.11", False),),
        guards=guards.SEQUENCES,
    )
    producer_bumps_epoch: bool = _switch(
        "An idempotent producer that has a gap in its sequences raises its epoch, and goes on with the batches of that partition from "
        "sequence 0. Before, it failed the batch, and began again in every partition with a new producer id.",
        "KIP-360 (KAFKA-8710), TransactionManager.bumpIdempotentProducerEpoch",
        meaning="a producer with a gap in its sequences goes on in another epoch (KIP-360)",
        before=(("2.5", False),),
        is_repair=False,
    )
    given_up_batch_unresolved: bool = _switch(
        "An idempotent producer that gives up a batch because of an error waits for the answers to its other batches where the batch "
        "may be in the log. No release does: an error that is handled after delivery.timeout.ms counts as a refusal while fewer than "
        "`retries` attempts were made. Up to 2.4 the sequence numbers go to the next batches; from 2.5 on those get others in a new epoch.",
        "KAFKA-14397, Sender.completeBatch, TransactionManager.handleFailedBatch (adjustSequenceNumbers)",
        of=LATE_ERRORS,
        meaning="a batch that may be in the log keeps its sequence numbers when it is given up (KAFKA-14397)",
        latest=False,
        safe=True,
        guards=guards.SEQUENCES,
        mutant=Mutant(
            name="late-error-frees-sequences",
            kafka="4.3",
            doc=(
                "A producer that handles an error after delivery.timeout.ms takes the batch for refused, though it may be in the log: up to 2.4 "
                "the next batch gets its sequence number and is taken for a retry, from 2.5 on batches that are in the log are sent in a new epoch."
            ),
            source="KAFKA-14397; every release since 2.1",
            noticed_by=("duplicate", "lost-write"),
        ),
    )
    delivery_timeout: bool = _switch(
        "delivery.timeout.ms bounds the time from send to report, retries included.",
        "KIP-91",
        meaning="a send is reported within delivery.timeout.ms (KIP-91)",
        before=(("2.1", False),),
    )
    expired_memory_kept: bool = _switch(
        "The memory of a batch that expires while a request carries it is given to no other batch before the request is over. Off is "
        "a mutant: the next batch is written over it, and goes to the leader of the batch that has expired.",
        "KAFKA-19012, Sender.failBatch, BufferPool.deallocate (Java clients 2.8.0 to 4.1.1)",
        meaning="a request keeps the memory of its batches (KAFKA-19012)",
        guards=("misrouted",),
        mutant=Mutant(
            name="expired-memory-reused",
            doc=(
                "A batch expires while a request carries it, and its memory is given to the next batch: the request goes on with records "
                "of another partition. A mutant alone, in no release of the model: real clients do this only to what a socket has not "
                "taken yet, and the model has no sockets that are full."
            ),
            source="KAFKA-19012; Java clients 2.8.0 to 4.1.1",
            noticed_by=("misrouted",),
            kafka="4.3",
        ),
    )
    oldest_request_fails_first: bool = _switch(
        "When a connection is lost, the oldest of the requests in flight fails first. A producer without "
        "idempotence puts each back to the front of its queue, and so turns their order round.",
        "InFlightRequests.clearAll",
        meaning="requests that were lost with a connection keep their order",
        safe=False,
        before=(("2.0", False),),
    )
    leader_in_answer: bool = _switch(
        "A broker that does not lead a partition names the leader when it refuses a produce or a fetch, and a client goes there at once; a "
        "batch does not wait for its backoff when it has another leader. Before, clients asked for metadata first.",
        "KIP-951 (KAFKA-15868), KAFKA-15415, KafkaApis.getCurrentLeader, Metadata.updatePartitionLeadership",
        meaning="a client is told of a new leader by the former one (KIP-951)",
        before=(("3.7", False),),
        is_repair=False,
    )
    sticky_partitioner: bool = _switch(
        "Records without a key stay with one partition until its batch is sent; before, round robin.",
        "KIP-480",
        meaning="records without a key fill one partition's batch after the other (KIP-480)",
        before=(("2.4", False),),
    )
