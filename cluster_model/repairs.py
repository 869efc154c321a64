"""Single repairs: what a KIP or an issue changed in Kafka that keeps an anomaly from happening, and since when."""

from dataclasses import dataclass
from typing import Any, Final

from harrow.cluster_model.release import Version, history_of, version_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """A repair. ``since`` is the first release that has it; an opt-in one has to be switched on there.

    ``switch`` is the behaviour that it changed, None where that is not modelled; ``needs`` another one without which
    that changes nothing.
    """

    name: str
    since: str
    text: str
    switch: str | None = None
    needs: str | None = None
    is_opt_in: bool = False

    @property
    def version(self) -> Version:
        return version_of(self.since)

    def value(self) -> Any:
        """What the switch is set to since this repair."""
        values = dict(history_of(self.switch or ""))
        return values[self.since]

    def is_missing(self, value: Any) -> bool:
        """Return whether a switch of this *value* is as some release before this repair had it."""
        if self.switch is None:
            return False
        history = history_of(self.switch)
        arrived = [first for first, _ in history].index(self.since)
        return value != self.value() and value in [known for _, known in history[:arrived]]


REPAIRS: Final[dict[str, Repair]] = {
    repair.name: repair
    for repair in (
        Repair(
            name="KIP-101",
            since="0.11",
            switch="follower_truncation",
            text=(
                "a follower asks its leader where its leader epoch ends, instead of truncating to its own high "
                "watermark"
            ),
        ),
        Repair(
            name="KAFKA-5494",
            since="1.0",
            switch="producer_batches_retained",
            text="a leader remembers as many batches of a producer as may be in flight",
        ),
        Repair(
            name="KIP-279",
            since="2.0",
            switch="follower_truncation",
            text="the answer names the epoch, so a follower asks again about one that it does not have",
        ),
        Repair(
            name="KAFKA-6772",
            since="2.0",
            switch="requests_after_registration",
            text="a starting broker handles no request before it is registered in ZooKeeper",
        ),
        Repair(
            name="KAFKA-7128",
            since="2.0.1",
            switch="isr_expansion_checks_epoch_start",
            text="a follower joins the ISR only when it has reached the start of the leader's epoch",
        ),
        Repair(
            name="KAFKA-7415",
            since="2.0.1",
            switch="epoch_entry_on_election",
            text="a new leader notes its epoch when it is elected, and not with its first record",
        ),
        Repair(
            name="KAFKA-7414",
            since="2.0.1",
            switch="out_of_range_follower",
            text="a follower that is ahead of its leader truncates, in place of stopping its broker",
        ),
        Repair(
            name="KIP-320",
            since="2.1",
            switch="fetch_leader_epoch_fencing",
            text="fetches carry the leader epoch, so one of another epoch is refused",
        ),
        Repair(
            name="KAFKA-6082",
            since="2.1",
            switch="controller_writes_fenced",
            text="a controller that has been succeeded cannot write to ZooKeeper",
        ),
        Repair(
            name="KIP-380",
            since="2.2",
            switch="broker_epoch",
            text="control requests carry the broker's epoch, so a broker that went and came back is noticed",
        ),
        Repair(
            name="KAFKA-3143",
            since="2.3",
            switch="failover_takes_out_dead_replicas",
            text="a new controller takes the replicas of dead brokers out of the ISRs",
        ),
        Repair(
            name="KAFKA-9338",
            since="2.5",
            switch="fetch_sessions_keep_epoch",
            needs="fetch_leader_epoch_fencing",
            text="an incremental fetch is held to its leader epoch, which a fetch session had forgotten",
        ),
        Repair(
            name="KIP-497",
            since="2.7",
            switch="maximal_isr",
            text="a follower that a leader has tried to take into the ISR counts, whether or not the leader knows that it joined",
        ),
        Repair(
            name="KAFKA-13194",
            since="3.1",
            switch="cleaner_waits_for_hw",
            text="compaction removes nothing for a later record that is not committed",
        ),
        Repair(
            name="KIP-814",
            since="3.2",
            switch="static_leader_skips_assignment",
            text="a static member that led its group and comes back leads it again, and looks for new partitions (KAFKA-13435)",
        ),
        Repair(
            name="KAFKA-14402",
            since="3.6",
            switch="transaction_verification",
            text="a leader begins a transaction in its log only where the coordinator knows of that, so that what comes late begins none",
        ),
        Repair(
            name="KAFKA-15221",
            since="3.7",
            switch="former_life_fetch_refused",
            needs="replica_epoch_checked",
            text="in KRaft a fetch of a broker's former life is not taken for what its new one has",
        ),
        Repair(
            name="KAFKA-18991",
            since="3.9.1",
            switch="fetch_answers_match_epoch",
            needs="truncation_on_fetch",
            text="a follower ignores the answer to a fetch that it sent in an older leader epoch of the same leader",
        ),
        Repair(
            name="KIP-890",
            since="4.0",
            switch="transactions_v2",
            text="each transaction has an epoch of its own, so that what comes late is not taken for a part of the next one",
        ),
        Repair(
            name="KAFKA-17076",
            since="4.0",
            switch="cleaner_retains_last_batch",
            text="compaction keeps the last batch of what it cleans, so that a log's end is not forgotten",
        ),
        Repair(
            name="KAFKA-15591",
            since="4.5",
            switch="empty_log_begins_at_zero",
            needs="unknown_producer_begins_anywhere",
            text="the first batch in an empty log begins at sequence 0, so none overtakes the first of its producer",
        ),
        Repair(
            name="KIP-966",
            since="4.0",
            is_opt_in=True,
            text="a replica that has stopped uncleanly is elected only when no other can lead",
        ),
    )
}
"""The repairs that findings name, oldest first."""
