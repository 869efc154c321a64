"""Declares the switches of transactions: coordinators, producers, and their state in logs."""

from functools import partial
from typing import Final

from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.release import guards
from harrow.cluster_model.release.subjects import TRANSACTIONS, TRANSACTIONS_V1
from harrow.cluster_model.release.switch import Mutant, Repair, switch

_switch: Final = partial(switch, subject=TRANSACTIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSwitches:
    """Each field is a switch. Its default is the value that the default release has."""

    transactional_commits_fenced: bool = _switch(
        "A producer that commits offsets of a group in a transaction sends the member and its generation. "
        "Before, the group coordinator accepted them from anyone, even from a member that had been declared "
        "dead.",
        "KIP-447, TransactionManager.sendOffsetsToTransaction (TxnOffsetCommit v3)",
        meaning="transactions commit offsets only for current members of a group (KIP-447)",
        since="2.5",
        is_repair=False,
        guards=guards.GROUPS,
    )
    init_transactions_times_out: bool = _switch(
        "initTransactions fails with a TimeoutException after max.block.ms. Before, it waited for its "
        "coordinator without limit.",
        "KAFKA-6446, KafkaProducer.initTransactions",
        meaning="initTransactions does not block forever (KAFKA-6446)",
        since="2.0",
        is_repair=False,
    )
    end_transaction_times_out: bool = _switch(
        "commitTransaction and abortTransaction fail with a TimeoutException after max.block.ms, and may be "
        "called again. Before, they waited for the coordinator without limit.",
        "KAFKA-7763, KafkaProducer.commitTransaction",
        meaning="commitTransaction and abortTransaction do not block forever (KAFKA-7763)",
        since="2.3",
        is_repair=False,
    )
    transactional_producer_epoch_checked: bool = _switch(
        "Coordinators and leaders refuse a producer whose transactional.id has a newer epoch.",
        "KIP-98, TransactionCoordinator, ProducerAppendInfo.checkProducerEpoch",
        meaning="a fenced producer writes in no transaction (KIP-98)",
        guards=(*guards.GROUPS, *guards.TRANSACTIONS),
        mutant=Mutant(
            "zombie-producer-accepted",
            "A fenced producer still writes, and the transaction of its successor commits its records.",
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
            kafka="4.3",
        ),
    )
    lso_below_open_transactions: bool = _switch(
        "read_committed reads only below the first offset of the oldest open transaction.",
        "KIP-98, UnifiedLog.fetchLastStableOffsetMetadata",
        meaning="read_committed reads no record of an open transaction (KIP-98)",
        guards=(*guards.GROUPS, *guards.TRANSACTIONS),
        mutant=Mutant(
            "lso-is-hw",
            "Consumers with read_committed receive records of open transactions.",
            noticed_by=("read-above-lso", "G1a"),
            kafka="4.3",
        ),
    )
    markers_written_to_all_partitions: bool = _switch(
        "A coordinator has the end of a transaction written to all of its partitions.",
        "KIP-98, TransactionMarkerChannelManager.addTxnMarkersToSend",
        meaning="a transaction ends in all of its partitions (KIP-98)",
        guards=(*guards.GROUPS, *guards.TRANSACTIONS),
        mutant=Mutant(
            "marker-to-one-partition",
            "A transaction ends in only one of its partitions. In the others read_committed never reads "
            "past it.",
            noticed_by=("hanging-transaction", "lso-stands-still", "torn-transaction", "unseen"),
            kafka="4.3",
        ),
    )
    new_coordinator_completes_commit: bool = _switch(
        "A new coordinator commits a transaction that its predecessor had prepared to commit.",
        "KIP-98, TransactionStateManager.loadTransactionsForTxnTopicPartition",
        meaning="a new coordinator completes a prepared commit (KIP-98)",
        guards=(*guards.GROUPS, *guards.TRANSACTIONS),
        mutant=Mutant(
            "coordinator-forgets-prepare-commit",
            "A coordinator that is elected during a commit aborts the rest of the transaction, though the "
            "producer was told that it is committed.",
            noticed_by=("lost-write", "torn-transaction", "lost-effect", "unseen"),
            kafka="4.3",
        ),
    )
    coordinator_load_waits_for_commit: bool = _switch(
        "A new transaction coordinator answers only after its log is committed up to the end. No release "
        "waits: the coordinator tells a leader that a partition is in the transaction because of a record "
        "that is not committed. If its successor does not have that record, it ends the transaction without "
        "the partition.",
        "TransactionStateManager.loadTransactionMetadata (FetchIsolation.LOG_END)",
        meaning="a new coordinator answers only from committed records",
        latest=False,
        safe=True,
        guards=(*guards.GROUPS, *guards.TRANSACTIONS),
        mutant=Mutant(
            "uncommitted-state-answered",
            "A new coordinator answers from a record that its successor does not have, so that half of a "
            "transaction is committed.",
            source="TransactionStateManager.loadTransactionMetadata; every release",
            noticed_by=("torn-transaction", "hanging-transaction", "doubled-effect"),
            kafka="4.3",
        ),
    )
    producer_fenced_error: bool = _switch(
        "A coordinator answers a producer of an older epoch with PRODUCER_FENCED. Before, with "
        "INVALID_PRODUCER_EPOCH, as leaders do in every release.",
        "KIP-588 (KAFKA-9910), TransactionCoordinator",
        meaning="a coordinator tells a producer that it is fenced (KIP-588)",
        since="2.7",
        is_repair=False,
    )
    empty_transactions_tracked: bool = _switch(
        "The marker of a transaction without records in a partition counts like that of one with records: "
        "read_committed reads it once it is replicated, and an abort enters the index of aborted "
        "transactions. Later releases only append it.",
        "KAFKA-10702, ProducerAppendInfo.appendEndTxnMarker",
        meaning="a marker without a transaction ends nothing (KAFKA-10702)",
        latest=False,
        since="2.8",
        is_repair=False,
    )
    fetch_at_lso_returns_aborted_transactions: bool = _switch(
        "A read_committed fetch from the last stable offset itself gets the aborted transactions behind "
        "that offset, though it reads no records. Later releases send none. Consumers do not notice the "
        "difference.",
        "KAFKA-9838, Log.read",
        meaning="a fetch without records gets no aborted transactions (KAFKA-9838)",
        latest=False,
        since="2.5.1",
        is_repair=False,
    )
    end_txn_with_later_epoch_refused: bool = _switch(
        "A client cannot end a transaction with an epoch that it was never given. Before, such an epoch was "
        "accepted.",
        "KAFKA-9600, TransactionCoordinator.endTransaction (isFromClient)",
        meaning="a client's EndTxn has the epoch of its transactional.id",
        since="2.6",
        is_repair=False,
    )
    transaction_verification: bool = _switch(
        "Before the first append of a transaction to a partition, its leader asks the coordinator whether "
        "the transaction has that partition. Before, a late batch behind the marker began a transaction "
        "that never ended.",
        "KIP-890 (KAFKA-14402, KAFKA-12671), transaction.partition.verification.enable, "
        "AddPartitionsToTxnManager",
        meaning="a leader begins a transaction only if the coordinator confirms it (KIP-890)",
        since="3.6",
        guards=guards.TRANSACTIONS,
        hidden_by=("transactions_v2",),
        repair=Repair(
            "KAFKA-14402",
            "a leader begins a transaction in its log only if the coordinator confirms it, so a late batch "
            "begins none",
        ),
    )
    transactional_commits_verified: bool = _switch(
        "A group coordinator asks the transaction coordinator whether a transaction has the group before it "
        "accepts offsets in it. Before, late offsets behind the marker stayed pending for good.",
        "KIP-890 (KAFKA-15784), GroupCoordinator.handleTxnCommitOffsets",
        meaning="offsets are committed only in a transaction that the coordinator confirms (KIP-890)",
        since="3.7",
        guards=guards.TRANSACTIONS,
        hidden_by=("transactions_v2",),
    )
    transaction_abortable_error: bool = _switch(
        "A producer whose transaction does not have a partition gets TRANSACTION_ABORTABLE, and may abort. "
        "Before, INVALID_TXN_STATE.",
        "KIP-890 (KAFKA-16314), TransactionCoordinator.handleVerifyPartitionsInTransaction",
        subject=TRANSACTIONS_V1,
        meaning="a producer learns that it may abort its transaction (KIP-890)",
        since="3.8",
        is_repair=False,
    )
    transactions_v2: bool = _switch(
        "Each end of a transaction raises the epoch of its producer, which EndTxn returns, and leaders add "
        "their partitions to transactions themselves (transaction.version 2, the default of new clusters). "
        "Before, a late EndTxn ended the producer's next transaction.",
        "KIP-890 (KAFKA-14402), TransactionVersion.TV_2, TransactionMetadata.prepareAbortOrCommit",
        meaning="a transaction has an epoch of its own (KIP-890)",
        since="4.0",
        guards=(*guards.GROUPS, *guards.TRANSACTIONS),
        repair=Repair(
            "KIP-890",
            "each transaction has an epoch of its own, so a late request is not taken as a part of the next "
            "one",
        ),
        mutant=Mutant(
            "delayed-end-txn",
            "A second copy of the request that ended a transaction arrives late, and ends the producer's "
            "next transaction before it is complete.",
            source="KIP-890 (KAFKA-14402); Kafka before 4.0",
            noticed_by=("unasked-commit", "torn-transaction", "G1a"),
            kafka="4.3",
        ),
    )
    ongoing_transaction_checks_epoch: bool = _switch(
        "A leader takes a transaction as open only if its epoch is that of the batch. Before, records that "
        "a producer sent before its last transaction had its marker there became part of that transaction. "
        "This is harmless while all transactions of a producer have one epoch and none begins before the "
        "marker.",
        "KIP-890 (KAFKA-18575), UnifiedLog.hasOngoingTransaction",
        meaning="the next transaction begins after the last one has its marker (KIP-890)",
        since="4.0",
        guards=guards.TRANSACTIONS,
        mutant=Mutant(
            "next-transaction-unverified",
            "Records that a producer sends after a commit, but before a partition has the marker, become "
            "part of the old transaction, even if the new one is aborted.",
            source="KIP-890 (KAFKA-18575)",
            noticed_by=("torn-transaction", "G1a", "unseen", "lost-write"),
            kafka="4.3",
        ),
    )
    transaction_sequence_starts_at_zero: bool = _switch(
        "With transactions v2 the first batch of a producer in a log has sequence number 0. Before, it "
        "could have any, as without transactions (`unknown_producer_sequence_accepted`).",
        "KIP-890 (KAFKA-18202), ProducerAppendInfo.checkSequence (supportsEpochBump)",
        meaning="a producer's first batch in a log has sequence number 0 (KAFKA-18202)",
        since="4.1",
        is_repair=False,
        is_read_in_campaign=False,
        hidden_by=("unknown_producer_sequence_is_zero", "empty_log_requires_sequence_zero"),
    )
    stale_epoch_refused_before_verification: bool = _switch(
        "A leader refuses the first batch of a transaction with an older producer epoch "
        "(INVALID_PRODUCER_EPOCH) without asking the coordinator. Before, it asked, and passed on the "
        "coordinator's error.",
        "KIP-890 (KAFKA-18042), UnifiedLog.maybeStartTransactionVerification",
        meaning="a leader refuses an older epoch before it asks the coordinator",
        since="4.1",
        is_repair=False,
    )
    stale_epoch_reported_before_txn_state: bool = _switch(
        "A producer that is fenced while its transaction is being verified gets INVALID_PRODUCER_EPOCH, "
        "after which it may abort. Before, and in 4.0.0 and 4.1.0, it got INVALID_TXN_STATE, after which it "
        "may not.",
        "KAFKA-19690, UnifiedLog.analyzeAndValidateProducerState",
        meaning="a fenced producer learns of its epoch first (KAFKA-19690)",
        since="3.9.2",
        is_repair=False,
        is_read_in_campaign=False,
    )
