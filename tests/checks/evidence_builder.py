"""A builder of runs: a test states each step, and the builder records it where rules look.

The builder decides nothing: it writes each step into the history, the trace and the logs.
"""

from collections.abc import Collection
from typing import Any

from harrow.checks.evidence import ConsumerSettings, Evidence, FinalLog, PartitionSettings, ProducerSettings
from harrow.checks.finding import RuleResult
from harrow.checks.index import Index
from harrow.checks.rules.catalogue import RULES
from harrow.cluster_model.events import event_fields
from harrow.cluster_model.history import INVOKE, OK, SEND, TXN, History
from harrow.cluster_model.log.record_batch import ABORT, COMMIT, RecordBatch
from harrow.cluster_model.log.unified_log import HIGH_WATERMARK_TRUNCATION
from harrow.cluster_model.trace import TraceEvent

PARTITION = "t-0"

MARKERS = {"<commit>": COMMIT, "<abort>": ABORT}
REMOVED = "<removed>"
"""Marks the place of a record that compaction removed from a log."""


class RunBuilder:
    """A run of one cluster. Each step takes a tenth of a second; `at` sets the clock."""

    def __init__(
        self,
        brokers: tuple[int, ...] = (0, 1),
        *,
        min_insync_replicas: int = 1,
        unclean_leader_election: bool = False,
        release: str = "2.4",
    ) -> None:
        self.brokers = brokers
        self.release = release
        self.settings = PartitionSettings(
            replicas=brokers,
            min_insync_replicas=min_insync_replicas,
            unclean_leader_election=unclean_leader_election,
            flush_messages=2**63 - 1,
        )
        self.history = History()
        self.trace: list[TraceEvent] = []
        self.now_us = 0
        self.producers: dict[int, ProducerSettings] = {}
        self.logs: dict[str, dict[int, list[tuple[str, int]]]] = {}
        self.high_watermarks: dict[tuple[str, int], int] = {}
        self.epochs: dict[str, int] = {}
        self.read_back: set[str] = set()
        self.consumers: dict[int, ConsumerSettings] = {}
        self.held_up: dict[str, int] = {}
        self.in_transactions: set[str] = set()
        """Values in logs that belong to transactions."""
        self._open_sends: dict[str, int] = {}

    # Clients

    def producer(
        self,
        name: str = "producer-0",
        *,
        acks: str = "all",
        idempotence: bool = False,
        max_in_flight: int = 5,
        retries: int = 3,
        transactional_id: str = "",
    ) -> int:
        process = self.history.new_process(name)
        self.producers[process] = ProducerSettings(
            name=name,
            acks=acks,
            idempotence=idempotence,
            max_in_flight=max_in_flight,
            retries=retries,
            transactional_id=transactional_id,
        )
        return process

    def at(self, seconds: float) -> None:
        self.now_us = round(seconds * 1_000_000)

    def tick(self) -> int:
        self.now_us += 100_000
        return self.now_us

    def send(self, process: int, value: str, partition: str = PARTITION) -> None:
        self.history.record_send(process, partition, value, self.tick())

    def ok(self, process: int, value: str, offset: int | None, partition: str = PARTITION) -> None:
        self.history.record_ack(process, partition, offset, value, self.tick())

    def unknown(self, process: int, value: str, partition: str = PARTITION) -> None:
        self.history.record_failure(
            process, partition, value, self.tick(), "TimeoutException", definite=False
        )

    def transaction(self, process: int, type_: str, *values: str, partition: str = PARTITION) -> None:
        """Record a transaction with its records in the leader's log and its outcome."""
        for value in values:
            self.history.add(process, INVOKE, TXN, ((SEND, partition, value),), self.tick())
            self.append(0, value, partition=partition)
            self.replicate(1, value, partition=partition)
        offsets = {value: offset for offset, (value, _) in enumerate(self._log(0, partition))}
        sent = [(SEND, partition, (offsets[value], value) if type_ == OK else value) for value in values]
        self.history.add(process, type_, TXN, tuple(sent), self.tick())

    def poll(
        self, *pairs: tuple[int, str], partition: str = PARTITION, isolation_level: str | None = None
    ) -> None:
        """Record a poll of a new consumer, which belongs to the workload if it has an isolation
        level.
        """
        process = self.history.new_process("consumer")
        if isolation_level is not None:
            self.consumers[process] = ConsumerSettings(
                name="consumer", read_committed=isolation_level == "read_committed"
            )
        now_us = self.tick()
        self.history.record_poll(process, {partition: list(pairs)}, now_us, now_us)

    def read_to_end(self, broker: int, partition: str = PARTITION) -> None:
        """Let a consumer read every record of *broker* after healing."""
        pairs = [
            (offset, value)
            for offset, (value, _) in enumerate(self._log(broker, partition))
            if value not in MARKERS
        ]
        self.poll(*pairs, partition=partition)
        self.read_back.add(partition)

    # Brokers

    def event(self, name: str, **fields: Any) -> None:
        """Trace an event with its fields by name."""
        assert set(fields) == set(event_fields(name)), name
        self.trace.append((self.tick(), name, *(fields[field] for field in event_fields(name))))

    def elect(
        self,
        leader: int,
        epoch: int,
        isr: tuple[int, ...],
        *,
        unclean: bool = False,
        partition: str = PARTITION,
    ) -> None:
        self.epochs[partition] = epoch
        self.event(
            "election",
            controller=0,
            partition=partition,
            leader=leader,
            leader_epoch=epoch,
            isr=isr,
            unclean=unclean,
            reason="test",
        )
        self.lead(leader, epoch, isr, partition)

    def lead(self, broker: int, epoch: int, isr: tuple[int, ...], partition: str = PARTITION) -> None:
        start = len(self._log(broker, partition))
        self.event(
            "leader", broker=broker, partition=partition, leader_epoch=epoch, start_offset=start, isr=isr
        )

    def _log(self, broker: int, partition: str) -> list[tuple[str, int]]:
        return self.logs.setdefault(partition, {b: [] for b in self.brokers})[broker]

    def append(self, broker: int, *values: str, partition: str = PARTITION) -> None:
        """The leader *broker* appends a batch."""
        self._store("append", broker, values, self.epochs.get(partition, 0), partition)

    def replicate(self, broker: int, *values: str, epoch: int = 0, partition: str = PARTITION) -> None:
        """The follower *broker* copies a batch."""
        self._store("replicate", broker, values, epoch, partition)

    def _store(self, name: str, broker: int, values: tuple[str, ...], epoch: int, partition: str) -> None:
        log = self._log(broker, partition)
        self.event(
            name,
            broker=broker,
            partition=partition,
            base_offset=len(log),
            leader_epoch=epoch,
            producer_id=-1,
            base_sequence=-1,
            values=tuple(value for value in values if value not in MARKERS),
        )
        log.extend((value, epoch) for value in values)

    def raise_hw(self, high_watermark: int, *brokers: int, partition: str = PARTITION) -> None:
        for broker in brokers:
            self.event("hw", broker=broker, partition=partition, hw=high_watermark)
            self.high_watermarks[partition, broker] = high_watermark

    def acknowledge(self, broker: int, base_offset: int, *values: str, partition: str = PARTITION) -> None:
        self.event(
            "acknowledged",
            broker=broker,
            partition=partition,
            base_offset=base_offset,
            acks=-1,
            values=values,
        )

    def truncate(
        self, broker: int, to: int, reason: str = HIGH_WATERMARK_TRUNCATION, partition: str = PARTITION
    ) -> None:
        log = self._log(broker, partition)
        self.event(
            "truncate", broker=broker, partition=partition, from_offset=len(log), to_offset=to, reason=reason
        )
        self._cut(broker, to, partition)

    def lose_power(self, broker: int, flushed: int, partition: str = PARTITION) -> None:
        """Cut the power of *broker*, which keeps its flushed records and restarts at once."""
        log = self._log(broker, partition)
        self.event("broker_stopped", broker=broker, cause="power_loss")
        self.event(
            "unflushed_lost", broker=broker, partition=partition, from_offset=flushed, to_offset=len(log)
        )
        self._cut(broker, flushed, partition)
        self.event(
            "recover",
            broker=broker,
            partition=partition,
            leo=flushed,
            hw=self.high_watermarks.get((partition, broker), 0),
        )

    def lose_disk(self, broker: int, partition: str = PARTITION) -> None:
        """Erase the disk of *broker*, which restarts at once with an empty one."""
        log = self._log(broker, partition)
        self.event("broker_stopped", broker=broker, cause="process")
        self.event("log_lost", broker=broker, partition=partition, from_offset=0, to_offset=len(log))
        self._cut(broker, 0, partition)
        self.event("recover", broker=broker, partition=partition, leo=0, hw=0)

    def recover_with_corruption(
        self, broker: int, to: int, *, torn: bool = False, partition: str = PARTITION
    ) -> None:
        """Kill and restart *broker*, which truncates its log at a bad CRC."""
        log = self._log(broker, partition)
        self.event("broker_stopped", broker=broker, cause="power_loss" if torn else "process")
        self.event(
            "corruption_cut",
            broker=broker,
            partition=partition,
            from_offset=to,
            to_offset=len(log),
            torn=torn,
        )
        self._cut(broker, to, partition)
        self.event("recover", broker=broker, partition=partition, leo=to, hw=0)

    def _cut(self, broker: int, to: int, partition: str) -> None:
        del self._log(broker, partition)[to:]
        high_watermark = self.high_watermarks.get((partition, broker), 0)
        self.high_watermarks[partition, broker] = min(high_watermark, to)

    def compact(self, broker: int, offset: int, partition: str = PARTITION) -> None:
        """Let the replica on *broker* remove one record by compaction."""
        log = self._log(broker, partition)
        self.event(
            "log_cleaned",
            broker=broker,
            partition=partition,
            from_offset=0,
            to_offset=len(log),
            removed=(offset,),
            bytes_left=0,
        )
        log[offset] = (REMOVED, log[offset][1])

    def stop(self, broker: int, cause: str = "process") -> None:
        self.event("broker_stopped", broker=broker, cause=cause)

    # Both

    def write(
        self, process: int, value: str, leader: int, *followers: int, partition: str = PARTITION
    ) -> None:
        """Record a successful send: appended, replicated, committed and acked."""
        self.send(process, value, partition)
        offset = len(self._log(leader, partition))
        self.append(leader, value, partition=partition)
        for broker in followers:
            self.replicate(broker, value, epoch=self.epochs.get(partition, 0), partition=partition)
        self.raise_hw(offset + 1, leader, *followers, partition=partition)
        if self.producers[process].acks == "0":
            self.ok(process, value, None, partition)
        else:
            self.acknowledge(leader, offset, value, partition=partition)
            self.ok(process, value, offset, partition)

    def evidence(self, *, unfinished: tuple[str, ...] = ()) -> Evidence:
        """Return the run as evidence for rules."""
        return Evidence(
            release=self.release,
            operations=self.history.operations,
            trace=self.trace,
            process_names=self.history.process_names,
            producers=self.producers,
            partitions=dict.fromkeys(self.logs or (PARTITION,), self.settings),
            replicas={
                partition: {
                    broker: final_log(
                        log, self.high_watermarks.get((partition, broker), 0), self.in_transactions
                    )
                    for broker, log in logs.items()
                }
                for partition, logs in self.logs.items()
            },
            read_back=frozenset(self.read_back),
            unfinished=unfinished,
            consumers=self.consumers,
            held_up=self.held_up,
        )

    def judge(self, rule: str) -> RuleResult:
        """Judge the run by one rule."""
        evidence = self.evidence()
        return RULES[rule].judge(Index(evidence))


def final_log(
    records: list[tuple[str, int]], high_watermark: int, in_transactions: Collection[str] = ()
) -> FinalLog:
    """Return a log of one batch for each (value, leader epoch)."""
    epochs: dict[int, int] = {}
    for offset, (_, epoch) in enumerate(records):
        epochs.setdefault(epoch, offset)
    return FinalLog(
        leo=len(records),
        hw=high_watermark,
        flushed=len(records),
        epochs=tuple(epochs.items()),
        batches=tuple(
            RecordBatch(
                base_offset=offset,
                leader_epoch=epoch,
                producer_id=-1,
                base_sequence=-1,
                values=() if value in MARKERS else (value,),
                control_type=MARKERS.get(value),
                is_transactional=value in in_transactions,
            )
            for offset, (value, epoch) in enumerate(records)
            if value != REMOVED
        ),
    )
