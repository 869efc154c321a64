"""Counts from the trace of a run how often it reached each rare state of `campaigns.probes`."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from campaigns.probes import PROBES
from cluster_model import zookeeper_protocol as zk
from cluster_model.trace import TraceEvent
from cluster_model.virtual_time import US_PER_SECOND

_FLAP_US: Final = US_PER_SECOND
_NOBODY: Final = -1

_Replica = tuple[int, str]


def count_probes(trace: Sequence[TraceEvent]) -> dict[str, int]:
    """Return how often each probe was hit; probes that were not are left out."""
    counter = _Counter()
    handlers = counter.handlers()
    for event in trace:
        handler = handlers.get(event[1])
        if handler is not None:
            handler(event)
    return {probe: counter.counts[probe] for probe in PROBES if probe in counter.counts}


class _Counter:
    """The counts so far, and the little that has to be remembered between events.

    A handler is called with each event of its name; its fields are those of `trace.FIELDS`,
    after the time and the name.
    """

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        # Brokers
        self._down: set[int] = set()
        self._registered: set[int] = set()
        self._controllers: set[int] = set()
        self._lives: dict[int, int] = {}
        # Partitions, as ZooKeeper has them
        self._leaders: dict[str, int] = {}
        self._elected_epoch: dict[str, int] = {}
        self._isrs: dict[str, tuple[int, ...]] = {}
        self._taken_out_us: dict[_Replica, int] = {}
        # Partitions, as they are
        self._replicas: dict[str, set[int]] = {}
        self._committed: dict[str, int] = {}
        self._read_end: dict[str, int] = {}
        self._last_leader: dict[str, tuple[int, int]] = {}
        self._leads: dict[_Replica, int] = {}
        self._led: dict[_Replica, tuple[int, int]] = {}
        self._hw: dict[_Replica, int] = {}
        self._truncated: set[_Replica] = set()
        # Batches, by their records
        self._appended: set[Any] = set()
        self._acknowledged: set[Any] = set()
        self._failed_leader: dict[Any, int] = {}

    def handlers(self) -> dict[str, Callable[[TraceEvent], None]]:
        """Return what is called for each event that matters."""
        return {
            "broker_started": self._broker_started,
            "broker_stopped": self._broker_stopped,
            "broker_resumed": self._broker_resumed,
            "broker_registered": self._broker_registered,
            "session_expired": self._session_expired,
            "controller_elected": self._controller_elected,
            "controller_resigned": self._controller_resigned,
            "election": self._election,
            "isr_reduced": self._isr_reduced,
            "leader": self._leader,
            "follower": self._follower,
            "append": self._append,
            "duplicate_batch": self._duplicate_batch,
            "hw": self._high_watermark,
            "isr": self._isr,
            "isr_refused": self._isr_refused,
            "truncate": self._truncate,
            "fetcher_failed": self._fetcher_failed,
            "recover": self._recover,
            "unflushed_lost": self._unflushed_lost,
            "epoch_asked": self._epoch_asked,
            "send_failed": self._send_failed,
            "sent_again": self._sent_again,
            "fetch_waits": self._fetch_waits,
            "fetch_expired": self._fetch_expired,
            "served": self._served,
            "acknowledged": self._acknowledge,
            "rejected": self._rejected,
        }

    def _hit(self, probe: str) -> None:
        self.counts[probe] = self.counts.get(probe, 0) + 1

    # Brokers and their sessions

    def _broker_started(self, event: TraceEvent) -> None:
        broker = event[2]
        self._down.discard(broker)
        self._lives[broker] = self._lives.get(broker, 0) + 1
        if broker in self._registered:
            self._hit("bounced-broker")

    def _broker_stopped(self, event: TraceEvent) -> None:
        broker = event[2]
        led = [partition for partition, leader in self._leaders.items() if leader == broker]
        if broker in self._controllers:
            self._hit("controller-died")
            gone = {*self._down, _NOBODY}
            if any(leader in gone for leader in self._leaders.values()):
                self._hit("controller-died-during-election")
            self._controllers.discard(broker)
        elif led and not self._controllers:
            self._hit("leader-died-without-controller")
        if self._down:
            self._hit("two-brokers-down")
        self._down.add(broker)
        for isr in self._isrs.values():
            if isr == (broker,):
                self._hit("last-isr-member-died")
        for replicas in self._replicas.values():
            if broker in replicas and replicas <= self._down:
                self._hit("all-replicas-down")
        for replica in [replica for replica in self._leads if replica[0] == broker]:
            del self._leads[replica]

    def _broker_resumed(self, event: TraceEvent) -> None:
        broker = event[2]
        for (leader, partition), epoch in self._leads.items():
            if leader == broker and epoch < self._elected_epoch.get(partition, 0):
                self._hit("paused-leader-woke-deposed")
        if broker in self._controllers and len(self._controllers) > 1:
            self._hit("paused-controller-woke-deposed")

    def _broker_registered(self, event: TraceEvent) -> None:
        self._registered.add(event[2])

    def _session_expired(self, event: TraceEvent) -> None:
        _, _, broker, ephemerals = event
        self._hit("session-expired")
        if zk.broker_path(broker) in ephemerals:
            self._registered.discard(broker)
            if broker not in self._down:
                self._hit("session-expired-alive")
        if zk.CONTROLLER in ephemerals and broker in self._controllers:
            self._hit("controller-lost-its-session")

    # Controllers and what they write

    def _controller_elected(self, event: TraceEvent) -> None:
        if event[0] > 0:
            self._hit("controller-changed")
        self._controllers.discard(event[2])
        if self._controllers:
            self._hit("controllers-overlapped")
        self._controllers.add(event[2])

    def _controller_resigned(self, event: TraceEvent) -> None:
        self._controllers.discard(event[2])

    def _election(self, event: TraceEvent) -> None:
        _, _, _, partition, leader, epoch, isr, unclean, reason = event
        if epoch >= self._elected_epoch.get(partition, 0):
            self._elected_epoch[partition] = epoch
            self._leaders[partition] = leader
            self._isrs[partition] = isr
        if unclean:
            self._hit("unclean-election")
        elif reason == "preferred leader":
            self._hit("preferred-leader-elected")
        elif reason != "topic creation":
            self._hit("clean-election")

    def _isr_reduced(self, event: TraceEvent) -> None:
        _, _, _, partition, leader, _, isr = event
        self._leaders[partition] = leader
        self._isrs[partition] = isr
        if leader == _NOBODY and self._registered.isdisjoint(isr):
            self._hit("partition-offline")
        if len(isr) == 1:
            self._hit("isr-shrank-to-one")

    # Leaders

    def _leader(self, event: TraceEvent) -> None:
        _, _, broker, partition, epoch, start_offset, _ = event
        replica = (broker, partition)
        self._replicas.setdefault(partition, set()).add(broker)
        self._truncated.discard(replica)
        life = self._lives.get(broker, 0)
        led_epoch, led_life = self._led.get(replica, (_NOBODY, life))
        if led_epoch == epoch and led_life != life:
            self._hit("leader-restarted-in-its-epoch")
        self._led[replica] = (epoch, life)
        if replica not in self._leads:
            before, before_start = self._last_leader.get(partition, (broker, 0))
            if before != broker and before_start == start_offset:
                self._hit("fast-leader-changes")
            if self._hw.get(replica, 0) < self._committed.get(partition, 0):
                self._hit("leader-hw-behind")
            self._last_leader[partition] = (broker, start_offset)
        self._leads[replica] = epoch

    def _isr(self, event: TraceEvent) -> None:
        at_us, _, _, partition, epoch, isr, change = event
        before = self._isrs.get(partition, ())
        if change == "shrink":
            self._hit("isr-shrank")
            for member in before:
                if member not in isr:
                    self._taken_out_us[member, partition] = at_us
        else:
            self._hit("isr-expanded")
            for member in isr:
                taken_out_us = self._taken_out_us.pop((member, partition), None)
                if taken_out_us is not None and at_us - taken_out_us <= _FLAP_US:
                    self._hit("isr-flapped")
        if len(isr) == 1:
            self._hit("isr-shrank-to-one")
        if epoch < self._elected_epoch.get(partition, 0):
            self._hit("zombie-leader-changed-isr")
        self._isrs[partition] = isr

    def _isr_refused(self, _: TraceEvent) -> None:
        self._hit("isr-write-refused")

    def _append(self, event: TraceEvent) -> None:
        values = event[8]
        if event[5] < self._elected_epoch.get(event[3], 0):
            self._hit("zombie-leader-accepted-write")
        if values in self._appended:
            self._hit("batch-appended-again")
        else:
            self._appended.add(values)

    def _duplicate_batch(self, _: TraceEvent) -> None:
        self._hit("duplicate-batch-suppressed")

    def _high_watermark(self, event: TraceEvent) -> None:
        broker, partition, hw = event[2], event[3], event[4]
        self._hw[broker, partition] = hw
        if hw > self._committed.get(partition, 0):
            self._committed[partition] = hw

    def _served(self, event: TraceEvent) -> None:
        broker, partition, end_offset = event[2], event[3], event[6]
        if end_offset > self._read_end.get(partition, 0):
            self._read_end[partition] = end_offset
        if self._leaders.get(partition, broker) != broker:
            self._hit("zombie-leader-served-read")

    def _acknowledge(self, event: TraceEvent) -> None:
        broker, partition = event[2], event[3]
        self._acknowledged.add(event[6])
        if self._leaders.get(partition, broker) != broker:
            self._hit("zombie-leader-acknowledged")

    def _epoch_asked(self, event: TraceEvent) -> None:
        asked, answered, end_offset = event[5:8]
        if end_offset == _NOBODY:
            self._hit("epoch-undefined-answer")
        elif answered not in (asked, _NOBODY):
            self._hit("epoch-unknown-to-leader")

    def _rejected(self, event: TraceEvent) -> None:
        probe = _PROBE_BY_ERROR.get(event[6])
        if probe is not None:
            self._hit(probe)
        elif event[3] == "Produce" and event[6] == "NOT_LEADER_FOR_PARTITION":
            self._hit("sent-to-former-leader")

    def _fetch_waits(self, _: TraceEvent) -> None:
        self._hit("fetch-waited-in-purgatory")

    def _fetch_expired(self, _: TraceEvent) -> None:
        self._hit("fetch-expired-in-purgatory")

    # Followers and their logs

    def _follower(self, event: TraceEvent) -> None:
        replica = (event[2], event[3])
        self._replicas.setdefault(event[3], set()).add(event[2])
        self._truncated.discard(replica)
        self._leads.pop(replica, None)

    def _truncate(self, event: TraceEvent) -> None:
        _, _, broker, partition, before, offset, _ = event
        replica = (broker, partition)
        self._hit("truncated")
        if offset < self._committed.get(partition, 0):
            self._hit("truncated-below-hw")
        if offset < self._read_end.get(partition, 0):
            self._hit("truncated-below-read")
        if partition in self._last_leader and before > self._last_leader[partition][1]:
            self._hit("follower-ahead-of-leader")
        if replica in self._truncated:
            self._hit("follower-truncated-twice")
        self._truncated.add(replica)
        self._hw[replica] = min(self._hw.get(replica, 0), offset)

    def _fetcher_failed(self, _: TraceEvent) -> None:
        self._hit("follower-gave-up")

    def _recover(self, event: TraceEvent) -> None:
        replica, hw = (event[2], event[3]), event[5]
        if hw < self._hw.get(replica, 0):
            self._hit("hw-checkpoint-stale-at-restart")
        self._hw[replica] = hw

    def _unflushed_lost(self, event: TraceEvent) -> None:
        self._hit("unflushed-lost")
        if event[4] < self._committed.get(event[3], 0):
            self._hit("committed-unflushed-lost")

    # Producers

    def _send_failed(self, event: TraceEvent) -> None:
        leader, error, values = event[4], event[6], event[7]
        self._failed_leader[values] = leader
        if error == "NETWORK_EXCEPTION" and values in self._acknowledged:
            self._hit("ack-lost-after-append")

    def _sent_again(self, event: TraceEvent) -> None:
        leader, values = event[4], event[6]
        if self._failed_leader.get(values, leader) != leader:
            self._hit("producer-retried-to-new-leader")
        if values in self._appended:
            self._hit("retried-after-append")


_PROBE_BY_ERROR: Final = {
    "STALE_CONTROLLER_EPOCH": "stale-controller-refused",
    "STALE_BROKER_EPOCH": "stale-broker-epoch-refused",
    "OUT_OF_ORDER_SEQUENCE_NUMBER": "sequence-refused",
    "UNKNOWN_PRODUCER_ID": "sequence-refused",
    "NOT_ENOUGH_REPLICAS": "not-enough-replicas",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": "not-enough-replicas-after-append",
    "FENCED_LEADER_EPOCH": "fenced-by-leader-epoch",
    "UNKNOWN_LEADER_EPOCH": "leader-epoch-unknown",
    "REQUEST_TIMED_OUT": "produce-timed-out",
    "OFFSET_OUT_OF_RANGE": "fetch-out-of-range",
}
