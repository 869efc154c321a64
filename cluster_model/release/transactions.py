"""Transactions: their coordinator, their producers, and what a log knows of them."""

from dataclasses import dataclass
from functools import partial
from typing import Final

from harrow.cluster_model.release import guards
from harrow.cluster_model.release.subjects import TRANSACTIONS, TRANSACTIONS_V1
from harrow.cluster_model.release.switch import Mutant, Repair, switch

_switch: Final = partial(switch, of=TRANSACTIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSwitches:
    """The switches; their defaults are what the default release does."""

    transactional_commits_fenced: bool = _switch(
        "A producer that commits offsets of a group in a transaction says as which member of which generation. Before, the coordinator of "
        "the group took them from anybody, from a member too that had been taken for dead.",
        "KIP-447, TransactionManager.sendOffsetsToTransaction (TxnOffsetCommit v3)",
        meaning="transactions commit offsets of current members of a group alone (KIP-447)",
        before=(("2.5", False),),
        is_repair=False,
        guards=guards.GROUPS,
    )
    init_transactions_times_out: bool = _switch(
        "initTransactions ends with a TimeoutException after max.block.ms. Before, it waited for its coordinator for ever.",
        "KAFKA-6446, KafkaProducer.initTransactions",
        meaning="initTransactions does not wait for ever (KAFKA-6446)",
        before=(("2.0", False),),
        is_repair=False,
    )
    end_transaction_times_out: bool = _switch(
        "commitTransaction and abortTransaction end with a TimeoutException after max.block.ms, and may be called again. Before, they "
        "waited for the coordinator for ever.",
        "KAFKA-7763, KafkaProducer.commitTransaction",
        meaning="ending a transaction does not take for ever (KAFKA-7763)",
        before=(("2.3", False),),
        is_repair=False,
    )
    transactional_epoch_checked: bool = _switch(
        "Coordinators and leaders refuse a producer whose transactional id has a newer epoch. Off is a mutant: a producer that was "
        "succeeded goes on writing in its successor's transactions.",
        "KIP-98, TransactionCoordinator, ProducerAppendInfo.checkProducerEpoch",
        meaning="a producer that was succeeded writes in no transaction (KIP-98)",
        guards=(*guards.GROUPS, *guards.TRANSACTIONS),
        mutant=Mutant(
            name="zombie-producer-accepted",
            kafka="4.3",
            doc="A producer that was succeeded by another one with its transactional id still writes, and its successor commits that.",
            source="KIP-98, TransactionCoordinator, ProducerAppendInfo.checkProducerEpoch",
            noticed_by=(
                "fenced-write",
                "unasked-commit",
                "torn-transaction",
                "G1a",
                "lost-write",
                "inconsistent-offsets",
                "poll-skip",
                "int-poll-skip",
            ),
        ),
    )
    lso_below_open_transactions: bool = _switch(
        "read_committed reads below the first offset of the oldest transaction that is open. Off is a mutant: it reads up to the high "
        "watermark.",
        "KIP-98, UnifiedLog.fetchLastStableOffsetMetadata",
        meaning="read_committed reads nothing that is not decided (KIP-98)",
        guards=(*guards.GROUPS, *guards.TRANSACTIONS),
        mutant=Mutant(
            name="lso-is-hw",
            kafka="4.3",
            doc="Consumers with read_committed get what no transaction has committed yet.",
            source="KIP-98, UnifiedLog.fetchLastStableOffsetMetadata",
            noticed_by=("read-above-lso", "G1a"),
        ),
    )
    markers_to_all_partitions: bool = _switch(
        "A coordinator has the end of a transaction written to all partitions of it. Off is a mutant: to the first one alone.",
        "KIP-98, TransactionMarkerChannelManager.addTxnMarkersToSend",
        meaning="a transaction ends in all its partitions (KIP-98)",
        guards=(*guards.GROUPS, *guards.TRANSACTIONS),
        mutant=Mutant(
            name="marker-to-one-partition",
            kafka="4.3",
            doc="A transaction ends in one of its partitions: in the others nothing behind it is ever read with read_committed.",
            source="KIP-98, TransactionMarkerChannelManager.addTxnMarkersToSend",
            noticed_by=("hanging-transaction", "lso-stands-still", "torn-transaction", "unseen"),
        ),
    )
    prepared_commit_finished: bool = _switch(
        "A coordinator that is elected commits what its predecessor had noted as to be committed. Off is a mutant: it aborts it.",
        "KIP-98, TransactionStateManager.loadTransactionsForTxnTopicPartition",
        meaning="a new coordinator commits what was to be committed (KIP-98)",
        guards=(*guards.GROUPS, *guards.TRANSACTIONS),
        mutant=Mutant(
            name="coordinator-forgets-prepare-commit",
            kafka="4.3",
            doc="A coordinator that is elected while a transaction is being committed aborts the rest of it, of which the producer was told that it is.",
            source="KIP-98, TransactionStateManager.loadTransactionsForTxnTopicPartition",
            noticed_by=("lost-write", "torn-transaction", "lost-effect", "unseen"),
        ),
    )
    transactions_loaded_once_committed: bool = _switch(
        "A broker that is elected to coordinate transactions answers once its log of them is committed as far as it goes. No release does: "
        "the coordinator tells a leader that a partition is in the transaction by a record that is not committed. If its successor does not "
        "have that record, it ends the transaction without the partition.",
        "TransactionStateManager.loadTransactionMetadata (FetchIsolation.LOG_END)",
        meaning="a new coordinator answers by committed records only",
        latest=False,
        safe=True,
        guards=(*guards.GROUPS, *guards.TRANSACTIONS),
        mutant=Mutant(
            name="uncommitted-state-answered",
            kafka="4.3",
            doc="A new coordinator answers by a record that its successor does not have: half of a transaction is committed.",
            source="TransactionStateManager.loadTransactionMetadata; every release",
            noticed_by=("torn-transaction", "hanging-transaction", "doubled-effect"),
        ),
    )
    producer_fenced_error: bool = _switch(
        "A coordinator answers PRODUCER_FENCED to a producer of an older epoch. Before, INVALID_PRODUCER_EPOCH, as leaders do in every "
        "release.",
        "KIP-588 (KAFKA-9910), TransactionCoordinator",
        meaning="a coordinator says that a producer was succeeded (KIP-588)",
        before=(("2.7", False),),
        is_repair=False,
    )
    empty_transactions_tracked: bool = _switch(
        "The marker of a transaction that has nothing in a partition counts there like one that has: it is read with read_committed once "
        "it is replicated, and an abort is in the index of aborted transactions. Later, it stands in the log and that is all.",
        "KAFKA-10702, ProducerAppendInfo.appendEndTxnMarker",
        meaning="a marker without a transaction ends nothing (KAFKA-10702)",
        latest=False,
        before=(("2.8", True),),
        is_repair=False,
    )
    aborted_told_at_stable_offset: bool = _switch(
        "A fetch with read_committed from the last stable offset itself is told the aborted transactions behind that, though it reads "
        "nothing. Later it is told none. To a consumer it is the same.",
        "KAFKA-9838, Log.read",
        meaning="a fetch that reads nothing is told no aborted transactions (KAFKA-9838)",
        latest=False,
        before=(("2.5.1", True),),
        is_repair=False,
    )
    later_epoch_cannot_end: bool = _switch(
        "A client cannot end a transaction with an epoch that it was never given. Before, such an epoch was no reason to refuse it.",
        "KAFKA-9600, TransactionCoordinator.endTransaction (isFromClient)",
        meaning="EndTxn of a client has the epoch of its transactional id",
        before=(("2.6", False),),
        is_repair=False,
    )
    transaction_verification: bool = _switch(
        "A leader asks the coordinator whether a transaction has its partition before the first append of it there. Before, what came "
        "late, after the marker, began a transaction that was never ended.",
        "KIP-890 (KAFKA-14402, KAFKA-12671), transaction.partition.verification.enable, AddPartitionsToTxnManager",
        meaning="a leader begins a transaction only where the coordinator knows of it (KIP-890)",
        before=(("3.6", False),),
        guards=guards.TRANSACTIONS,
        hidden_by=("transactions_v2",),
        repair=Repair(
            name="KAFKA-14402",
            since="3.6",
            text="a leader begins a transaction in its log only where the coordinator knows of that, so that what comes late begins none",
        ),
    )
    transactional_commits_verified: bool = _switch(
        "A group coordinator asks the transaction coordinator whether a transaction has the group before it takes offsets in it. Before, "
        "offsets that came late, after the marker, were pending for good.",
        "KIP-890 (KAFKA-15784), GroupCoordinator.handleTxnCommitOffsets",
        meaning="offsets are committed only in a transaction that the coordinator knows of (KIP-890)",
        before=(("3.7", False),),
        guards=guards.TRANSACTIONS,
        hidden_by=("transactions_v2",),
    )
    transaction_abortable_error: bool = _switch(
        "A producer whose transaction does not have a partition gets TRANSACTION_ABORTABLE, and may abort it. Before, INVALID_TXN_STATE.",
        "KIP-890 (KAFKA-16314), TransactionCoordinator.handleVerifyPartitionsInTransaction",
        of=TRANSACTIONS_V1,
        meaning="a producer is told that it may abort its transaction (KIP-890)",
        before=(("3.8", False),),
        is_repair=False,
    )
    transactions_v2: bool = _switch(
        "Each end of a transaction raises the epoch of its producer, which EndTxn answers, and leaders add their partitions to "
        "transactions themselves (transaction.version 2, with which new clusters are made). Before, an EndTxn that came late ended "
        "the producer's next transaction.",
        "KIP-890 (KAFKA-14402), TransactionVersion.TV_2, TransactionMetadata.prepareAbortOrCommit",
        meaning="a transaction has an epoch of its own (KIP-890)",
        before=(("4.0", False),),
        guards=(*guards.GROUPS, *guards.TRANSACTIONS),
        repair=Repair(
            name="KIP-890",
            since="4.0",
            text="each transaction has an epoch of its own, so that what comes late is not taken for a part of the next one",
        ),
        mutant=Mutant(
            name="delayed-end-txn",
            kafka="4.3",
            doc="The request that ended a transaction comes once more, late, and ends the producer's next one before that is complete.",
            source="KIP-890 (KAFKA-14402); Kafka before 4.0",
            noticed_by=("unasked-commit", "torn-transaction", "G1a"),
        ),
    )
    next_transaction_verified: bool = _switch(
        "A leader takes a transaction for open only if it has the epoch of what is to be appended. Before, what a producer sent while its "
        "last transaction had no marker there yet went with that one: harmless while all transactions of a producer have one epoch "
        "and none begins before that.",
        "KIP-890 (KAFKA-18575), UnifiedLog.hasOngoingTransaction",
        meaning="the next transaction begins when the last one has its marker (KIP-890)",
        before=(("4.0", False),),
        guards=guards.TRANSACTIONS,
        mutant=Mutant(
            name="next-transaction-unverified",
            kafka="4.3",
            doc="What a producer sends after a commit, and before a partition has the marker of that, goes with it, be it aborted.",
            source="KIP-890 (KAFKA-18575)",
            noticed_by=("torn-transaction", "G1a", "unseen", "lost-write"),
        ),
    )
    transaction_begins_at_zero: bool = _switch(
        "With transactions v2 the first batch of a producer in a log has sequence number 0. Before, any, as without transactions "
        "(`unknown_producer_begins_anywhere`).",
        "KIP-890 (KAFKA-18202), ProducerAppendInfo.checkSequence (supportsEpochBump)",
        meaning="a producer's first batch in a log has sequence number 0 (KAFKA-18202)",
        before=(("4.1", False),),
        is_repair=False,
        is_met=False,
        hidden_by=("unknown_producer_begins_at_zero", "empty_log_begins_at_zero"),
    )
    stale_epoch_refused_unverified: bool = _switch(
        "A leader refuses what begins a transaction with an epoch before its producer's last one (INVALID_PRODUCER_EPOCH), and asks no "
        "coordinator. Before, it asked, and told the producer what that had answered.",
        "KIP-890 (KAFKA-18042), UnifiedLog.maybeStartTransactionVerification",
        meaning="a leader refuses an earlier epoch before it asks the coordinator",
        before=(("4.1", False),),
        is_repair=False,
    )
    stale_epoch_told_first: bool = _switch(
        "A producer that was fenced while the coordinator was asked about its transaction is told INVALID_PRODUCER_EPOCH, after which it "
        "may abort it. Before, and in 4.0.0 and 4.1.0, INVALID_TXN_STATE, after which it may not.",
        "KAFKA-19690, UnifiedLog.analyzeAndValidateProducerState",
        meaning="a fenced producer is told of its epoch first (KAFKA-19690)",
        before=(("3.9.2", False),),
        is_repair=False,
        is_met=False,
    )
