"""unavailable: a sufficient core of the brokers was healed, but a partition did not serve clients.

At its end, a run may heal only some of the brokers, its core, and leave the others as the faults
have left them. A partition can have a leader while a member of its ISR is alive; with unclean
elections, while any replica is alive. With eligible leader replicas (KIP-966) an ISR may be empty,
and an unclean shutdown disqualifies a member; in that case, `PartitionService.recovery_sets` lists
the brokers that an election needs. A core with such a replica of every partition must be
sufficient: within the sum of Kafka's timeouts, each partition must have a leader that knows that it
leads, and the high watermark must pass all records that the leader had in its log when it was first
observed. Followers fetch these records, or leave the ISR after ``replica.lag.time.max.ms``. The
rule lost-write judges records that are no longer in the leader's log.

Kafka removes a broker from ISRs, leadership and control when its session ends, in ZooKeeper or with
the KRaft controller. An impaired broker keeps its session although it cannot reach others, so it
stays in all three. This rule demands nothing of the partitions that such a broker leads, and
nothing at all if such a broker is the controller.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from harrow.checks import evidence
from harrow.checks.causes.background import election_operands, tell_refused_isr
from harrow.checks.causes.catalogue import damaged_on_leader
from harrow.checks.causes.links import chosen, isr_text
from harrow.checks.causes.story import Story, brokers, seconds
from harrow.checks.finding import Finding
from harrow.checks.index import Index
from harrow.checks.link import NOTHING_HAPPENED, Link, cause, link
from harrow.checks.permission import Promise
from harrow.checks.promise import (
    BY_DAMAGED_LEADER,
    DISK_FAILURE,
    LIVE_IN_SYNC_REPLICA,
    UNAVAILABLE,
    UNCLEAN_ELECTION,
)
from harrow.checks.replay.partition_state import LogEntry
from harrow.checks.rule import Rule
from harrow.cluster_model import events
from harrow.cluster_model.trace import TraceLine

NO_LEADER: Final = "no-leader"
LEADER_UNAWARE: Final = "leader-unaware"
HW_BEHIND: Final = "hw-behind"
NOT_READABLE: Final = "not-readable"
"""What a partition lacks."""


@link("core-healed", events.CoreHealed, impersonal=True, needs_nothing_because="harrow heals the core itself")
def core_healed(*, core: events.Brokers, impaired: events.Brokers) -> str:
    """A core was healed; ``impaired`` are the brokers outside it that ran with a fault in force."""
    verb = "were" if len(core) > 1 else "was"
    text = f"{brokers(core)} {verb} healed, the others left as they were"
    return f"{text}, {brokers(impaired)} alive with a fault still in force" if impaired else text


@link("broker-stopped", events.BrokerStopped, event="stopped", is_fault=True)
def broker_stopped() -> str:
    return "was stopped"


@link("broker-paused", events.BrokerPaused, event="paused", is_fault=True)
def broker_paused() -> str:
    return "was paused"


@link(
    "isr-changed",
    events.IsrChanged,
    events.IsrReduced,
    events.LeaderElected,
    events.BecameLeader,
    is_turn=True,
    needs_nothing_because="it shows the state when the time for the core was over",
)
def isr_changed(*, isr: events.Brokers) -> str:
    return f"changed the ISR to {isr_text(isr)}"


@cause("still-no-leader", needs_nothing_because=NOTHING_HAPPENED)
def still_no_leader(*, after_us: events.Number, partition: events.PartitionName, isr: events.Brokers) -> str:
    return f"{seconds(after_us)} later {partition} still had no leader, although its ISR was {isr_text(isr)}"


@cause("eligible-not-elected", needs_nothing_because=NOTHING_HAPPENED)
def eligible_not_elected(
    *, after_us: events.Number, partition: events.PartitionName, eligible: events.Brokers
) -> str:
    return f"{seconds(after_us)} later {partition} still had no leader, although {brokers(eligible)} could lead it"


@cause("leader-not-replaced", needs_nothing_because=NOTHING_HAPPENED)
def leader_not_replaced(
    *, after_us: events.Number, partition: events.PartitionName, leader: events.BrokerId, state: events.Text
) -> str:
    return f"{seconds(after_us)} later the leader of {partition} was still broker {leader}, which was {state}"


@cause("leader-not-told", needs_nothing_because=NOTHING_HAPPENED)
def leader_not_told(
    *, after_us: events.Number, partition: events.PartitionName, leader: events.BrokerId
) -> str:
    return f"{seconds(after_us)} later broker {leader} still did not know that it leads {partition}"


def _unread(partition: str, records: int, acked: int) -> str:
    return f"{records} record{'s' if records > 1 else ''} of {partition}, {acked} of them acked,"


@cause("hw-stuck", needs_nothing_because=NOTHING_HAPPENED)
def hw_stuck(
    *,
    after_us: events.Number,
    partition: events.PartitionName,
    records: events.Number,
    acked: events.Number,
    hw: events.Offset,
    leader: events.BrokerId,
    isr: events.Brokers,
) -> str:
    return (
        f"{seconds(after_us)} later {_unread(partition, records, acked)} could not be read, "
        f"because the high watermark was still {hw} (leader {leader}, ISR {isr_text(isr)})"
    )


@cause("committed-not-served", needs_nothing_because=NOTHING_HAPPENED)
def committed_not_served(
    *,
    after_us: events.Number,
    partition: events.PartitionName,
    records: events.Number,
    acked: events.Number,
    leader: events.BrokerId,
    isr: events.Brokers,
) -> str:
    return (
        f"{seconds(after_us)} later {_unread(partition, records, acked)} could not be read, "
        f"although they were below the high watermark (leader {leader}, ISR {isr_text(isr)})"
    )


def find(index: Index) -> Iterator[Finding]:
    """Check what each partition lacked when the time for the core was over."""
    core = index.evidence.core
    if core is None or not core.partitions:
        return
    for partition in core.partitions:
        lack = demanded_lack(core, partition, index.evidence.partitions[partition])
        if lack is not None:
            yield _finding(index, core, partition, lack)


def _is_undecided(index: Index) -> bool:
    """Return whether the run ended before the time for a core was over."""
    return index.evidence.core is None or not index.evidence.core.partitions


def demanded_lack(
    core: evidence.HealedCore, partition: str, settings: evidence.PartitionSettings
) -> str | None:
    """Return what a partition lacks that a healed core has to provide, None if it lacks nothing."""
    service = core.partitions[partition]
    lack = lack_of(service)
    if lack is None or service.leader in core.impaired or core.controller in core.impaired:
        return None
    needed = (
        (settings.replicas,)
        if settings.allows_unclean_election(core.controller)
        else service.recovery_sets or (service.isr,)
    )
    if lack == NO_LEADER and not all(any(broker in core.brokers for broker in each) for each in needed):
        # The core had a member of the ISR when it was chosen; a request in flight removed this
        # member.
        return None
    return None if lack == HW_BEHIND and _waits_for_an_append(service, settings) else lack


def _waits_for_an_append(service: evidence.PartitionService, settings: evidence.PartitionSettings) -> bool:
    """Return whether the ISR has all unread records, and another replica holds back the watermark.

    A replica that has just left the ISR still counts for ``replica.lag.time.max.ms``. The end of
    that time triggers no check: the leader raises its high watermark only when it appends or when a
    follower's LEO moves (`Partition.maybeIncrementLeaderHW` and `updateFollowerFetchState`, 2.4).
    """
    held_back = set(settings.replicas) - set(service.isr)
    return bool(held_back) and all(offset < service.isr_end for offset, _ in service.unread)


def lack_of(service: evidence.PartitionService) -> str | None:
    """Return what a partition lacks, None if it serves, whether a core must provide it or not."""
    if service.leader == evidence.NO_BROKER or service.leader_state in (evidence.DOWN, evidence.PAUSED):
        return NO_LEADER
    if service.leader_state != evidence.LEADS:
        return LEADER_UNAWARE
    if service.unread and service.unread[-1][0] >= service.high_watermark:
        return HW_BEHIND
    return NOT_READABLE if service.unread else None


def _finding(index: Index, core: evidence.HealedCore, partition: str, lack: str) -> Finding:
    service = core.partitions[partition]
    behind = [pair for pair in service.unread if lack != HW_BEHIND or pair[0] >= service.high_watermark]
    first = behind[0] if behind and lack in (HW_BEHIND, NOT_READABLE) else None
    story = _story(index, core, partition)
    damage = None
    if first is not None and lack == NOT_READABLE:
        damage = _damage(story, core, service.leader, first[0])
    because = () if damage is None else (damage,)
    return Finding(
        partition=partition,
        offset=None if first is None else first[0],
        value=None if first is None else first[1],
        chain=story.chain(_conclusion(core, index, partition, lack), *because),
        permitted_by=DISK_FAILURE if because else None,
        details=(
            ("lacks", lack),
            ("core", list(core.brokers)),
            ("within_us", core.within_us),
            ("leader", service.leader),
            ("isr", list(service.isr)),
        ),
    )


def _story(index: Index, core: evidence.HealedCore, partition: str) -> Story:
    """Tell which brokers were healed, what the others were doing, and the last leader and ISR."""
    story = Story(index, partition)
    healed = story.last(events.CoreHealed)
    begin = 0 if healed is None else healed.number
    story.tell(begin, core_healed(core.healed_us, None, core=core.brokers, impaired=core.impaired))
    for broker in story.settings.replicas:
        if broker not in core.brokers:
            _tell_end(story, broker, begin)
    elections = [line for line in story.elections if line.event.at_us <= core.looked_us]
    for number, event in elections[-1:]:
        choice = chosen(
            event.at_us,
            event.controller,
            leader=event.leader,
            leader_epoch=event.leader_epoch,
            **election_operands(story, TraceLine(number, event)),
        )
        story.tell(number, choice, decides=True)
    changes: Sequence[TraceLine[events.IsrChanged | events.IsrReduced]] = story.events(
        events.IsrChanged, events.IsrReduced
    )
    for number, change in [line for line in changes if line.event.at_us <= core.looked_us][-1:]:
        broker = change.broker if isinstance(change, events.IsrChanged) else change.controller
        story.tell(number, isr_changed(change.at_us, broker, isr=change.isr))
    refused = [line for line in story.events(events.IsrRefused) if line.event.at_us <= core.looked_us]
    for refusal in refused[-1:]:
        tell_refused_isr(story, refusal)
    return story


def _damage(story: Story, core: evidence.HealedCore, leader: int, first_unread: int) -> Link | None:
    """Return the link about a damaged batch of the leader that blocks readers, or None.

    The batch is at or before the first unread record. The leader sends it with a wrong CRC. A
    reader notices this, and cannot pass the batch.
    """
    state, trace = story.index.partition(story.partition), story.evidence.trace
    damaged = [
        copy
        for copies in state.by_value.values()
        for copy in copies
        if copy.broker == leader
        and copy.offset <= first_unread
        and copy.damaged is not None
        and trace[copy.damaged - 1][0] <= core.looked_us
        and _is_there(copy, core.looked_us)
    ]
    if not damaged:
        return None
    worst = max(damaged, key=lambda copy: copy.offset)
    having = [
        copy.broker
        for copy in story.copies(worst.value, worst.offset)
        if copy.damaged is None and _is_there(copy, core.looked_us)
    ]
    return damaged_on_leader.conclude(leader=leader, value=worst.value, having=tuple(sorted(having)))


def _is_there(copy: LogEntry, at_us: int) -> bool:
    return copy.at_us <= at_us and (copy.removed is None or copy.removed.at_us > at_us)


def _tell_end(story: Story, broker: int, before: int) -> None:
    """Tell how a broker outside the core had stopped or paused, if it had."""
    change: (
        TraceLine[events.BrokerStopped | events.BrokerPaused | events.BrokerStarted | events.BrokerResumed]
        | None
    )
    change = story.last(
        events.BrokerStopped,
        events.BrokerPaused,
        events.BrokerStarted,
        events.BrokerResumed,
        before=before,
        broker=broker,
    )
    match change:
        case TraceLine(number, events.BrokerStopped(at_us=at_us)):
            story.tell(number, broker_stopped(at_us, broker))
        case TraceLine(number, events.BrokerPaused(at_us=at_us)):
            story.tell(number, broker_paused(at_us, broker))


def _conclusion(core: evidence.HealedCore, index: Index, partition: str, lack: str) -> Link:
    service = core.partitions[partition]
    leader, isr = service.leader, service.isr
    when: dict[str, Any] = {"after_us": core.looked_us - core.healed_us, "partition": partition}
    if lack == NO_LEADER and leader == evidence.NO_BROKER:
        eligible = tuple(dict.fromkeys(broker for needed in service.recovery_sets for broker in needed))
        if not isr and eligible:
            return eligible_not_elected.conclude(**when, eligible=eligible)
        return still_no_leader.conclude(**when, isr=isr)
    if lack == NO_LEADER:
        return leader_not_replaced.conclude(**when, leader=leader, state=service.leader_state)
    if lack == LEADER_UNAWARE:
        return leader_not_told.conclude(**when, leader=leader)
    acked = {send.value for send in index.acked.get(partition, ())}
    when |= {"records": len(service.unread), "acked": sum(value in acked for _, value in service.unread)}
    if lack == HW_BEHIND:
        return hw_stuck.conclude(**when, hw=service.high_watermark, leader=leader, isr=isr)
    return committed_not_served.conclude(**when, leader=leader, isr=isr)


RULE: Final = Rule(
    name=UNAVAILABLE,
    definition=(
        "A sufficient core of the brokers was healed and the others were left as they were. Still, for longer than Kafka's "
        "timeouts explain, a partition that could have a leader had none that was alive and knew it, or records in its "
        "leader's log, acked ones among them, could not be read."
    ),
    source=(
        "Kafka's documentation, Replication (a committed message stays while one in-sync replica is alive; a replica that "
        "is stuck or lags leaves the ISR after replica.lag.time.max.ms); Election.leaderForOffline, "
        "Partition.maybeShrinkIsr; the liveness mode of TigerBeetle's simulator."
    ),
    promise=Promise(
        promised_by=(LIVE_IN_SYNC_REPLICA, f"any live replica with {UNCLEAN_ELECTION}"),
        permissions=(BY_DAMAGED_LEADER,),
    ),
    find=find,
    is_undecided=_is_undecided,
    verb="a healed core did not serve",
    is_about_place=True,
)
