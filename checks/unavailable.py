"""unavailable: a sufficient core of the brokers was healed, and a partition still did not serve.

A partition can have a leader while a member of its ISR is alive, and with unclean elections while
any replica is. So a core in which every partition has such a replica has to be enough: within the
time that Kafka's timeouts add up to, every partition is led by a broker that knows it, and the
high watermark has passed what the leader had in its log at first, acked or not: its followers
fetch that, or are out of the ISR after ``replica.lag.time.max.ms``. What is no longer in the
leader's log is lost-write's business.

Kafka takes a broker out of ISRs, leadership and control when its ZooKeeper session ends. One that
keeps its session while it cannot reach others (an impaired one) is not taken out, and nothing is
demanded of what it leads, nor, where it is the controller, of what waits for a controller.
"""

from typing import Final

from checks.copies import END
from checks.evidence import (
    DOWN,
    LEADS,
    NOBODY,
    PAUSED,
    Evidence,
    HealedCore,
    PartitionService,
    PartitionSettings,
)
from checks.finding import Finding, RuleResult
from checks.index import Index
from checks.prevention import by_control
from checks.promise import UNAVAILABLE
from checks.rule import Rule, rule_result
from checks.story import Story, brokers, seconds

NO_LEADER: Final = "no-leader"
LEADER_UNAWARE: Final = "leader-unaware"
HW_BEHIND: Final = "hw-behind"
NOT_READABLE: Final = "not-readable"
_ISR_CHANGES: Final = ("isr", "isr_reduced")


def judge(evidence: Evidence, index: Index) -> RuleResult:
    """Look at what each partition lacked when the time was over."""
    core = evidence.core
    if core is None or not core.partitions:
        return rule_result(UNAVAILABLE, evidence, (), inconclusive=True)
    found = []
    for partition, settings in evidence.partitions.items():
        lack = demanded_lack(core, partition, settings)
        if lack is not None:
            found.append(_finding(evidence, index, core, partition, lack))
    return rule_result(UNAVAILABLE, evidence, found)


def demanded_lack(core: HealedCore, partition: str, settings: PartitionSettings) -> str | None:
    """Return what a partition lacks that a healed core has to give it, None when nothing is amiss."""
    service = core.partitions[partition]
    lack = lack_of(service)
    if lack is None or service.leader in core.impaired or core.controller in core.impaired:
        return None
    able = settings.replicas if settings.unclean_leader_election else service.isr
    if lack == NO_LEADER and not any(broker in able for broker in core.brokers):
        # What was on its way when the core was chosen has taken it out of the ISR.
        return None
    return None if lack == HW_BEHIND and _waits_for_an_append(service, settings) else lack


def _waits_for_an_append(service: PartitionService, settings: PartitionSettings) -> bool:
    """Return whether the whole ISR has what is unread, and a replica outside it held the high watermark back.

    A replica that has just been taken out of the ISR still counts for ``replica.lag.time.max.ms``, and
    when that time is over nothing looks again: the leader raises its high watermark when it appends or
    when a follower's LEO moves (`Partition.maybeIncrementLeaderHW` and `updateFollowerFetchState`, 2.4).
    """
    held_back = set(settings.replicas) - set(service.isr)
    return bool(held_back) and all(offset < service.isr_end for offset, _ in service.unread)


def lack_of(service: PartitionService) -> str | None:
    """Return what a partition lacks, whether a core has to give it or not; None when it serves."""
    if service.leader == NOBODY or service.leader_state in (DOWN, PAUSED):
        return NO_LEADER
    if service.leader_state != LEADS:
        return LEADER_UNAWARE
    if any(offset >= service.high_watermark for offset, _ in service.unread):
        return HW_BEHIND
    return NOT_READABLE if service.unread else None


def _finding(evidence: Evidence, index: Index, core: HealedCore, partition: str, lack: str) -> Finding:
    service = core.partitions[partition]
    behind = [pair for pair in service.unread if lack != HW_BEHIND or pair[0] >= service.high_watermark]
    first = behind[0] if behind and lack in (HW_BEHIND, NOT_READABLE) else None
    return Finding(
        partition=partition,
        offset=None if first is None else first[0],
        value=None if first is None else first[1],
        chain=_story(evidence, index, core, partition).chain(_conclusion(core, index, partition, lack)),
        prevented_by=by_control(evidence, unaware=lack == LEADER_UNAWARE),
        details=(
            ("lacks", lack),
            ("core", list(core.brokers)),
            ("within_us", core.within_us),
            ("leader", service.leader),
            ("isr", list(service.isr)),
        ),
    )


def _story(evidence: Evidence, index: Index, core: HealedCore, partition: str) -> Story:
    """Return who was healed, who was not and why, and what became of leader and ISR."""
    copies = index.copies(partition)
    story = Story(evidence, copies, partition)
    healed = copies.events("core_healed")
    position = healed[-1][0] if healed else 0
    verb = "were" if len(core.brokers) > 1 else "was"
    text = f"{brokers(core.brokers)} {verb} healed, the others left as they were"
    if core.impaired:
        text += f", {brokers(core.impaired)} alive with a fault still in force"
    story.tell(position, "core-healed", text, core.healed_us)
    for broker in evidence.partitions[partition].replicas:
        if broker not in core.brokers:
            _tell_end(story, broker, position)
    _tell_last_changes(story, core.looked_us)
    return story


def _tell_last_changes(story: Story, end_us: int) -> None:
    """Tell who was elected last, and who changed the ISR last, until the core was given up."""
    elections = [placed for placed in story.copies.elections if placed[1][0] <= end_us]
    for position, event in elections[-1:]:
        elected = "nobody" if event[4] == NOBODY else f"broker {event[4]}"
        text = f"broker {event[2]}, as controller, elected {elected} (epoch {event[5]})"
        story.tell(position, "elected", text, event[0], event[4])
    changes = story.copies.isr_history(None, END)
    told = [change for change in changes if change[0][1][0] <= end_us and change[0][1][1] in _ISR_CHANGES]
    for (position, event), isr in told[-1:]:
        text = f"broker {event[2]} changed the ISR to {list(isr)}"
        story.tell(position, "isr-changed", text, event[0], event[2])


def _tell_end(story: Story, broker: int, end: int) -> None:
    """Tell how a broker outside the core had gone, if it had."""
    names = ("broker_stopped", "broker_paused", "broker_started", "broker_resumed")
    changes = [placed for name in names for placed in story.copies.events(name)]
    own = sorted(placed for placed in changes if placed[0] < end and placed[1][2] == broker)
    for position, event in own[-1:]:
        if event[1] in names[:2]:
            word = "stopped" if event[1] == names[0] else "paused"
            story.tell(position, word, f"broker {broker} was {word}", event[0], broker)


def _conclusion(core: HealedCore, index: Index, partition: str, lack: str) -> str:
    service = core.partitions[partition]
    after = f"{seconds(core.looked_us - core.healed_us)} later"
    state = f"leader {service.leader}, ISR {list(service.isr)}"
    if lack == NO_LEADER and service.leader == NOBODY:
        return f"{after} {partition} still had no leader, although its ISR was {list(service.isr)}"
    if lack == NO_LEADER:
        return f"{after} the leader of {partition} was still broker {service.leader}, which was {service.leader_state}"
    if lack == LEADER_UNAWARE:
        return f"{after} broker {service.leader} still did not know that it leads {partition}"
    acked = {send.value for send in index.acked.get(partition, ())}
    of_them = sum(value in acked for _, value in service.unread)
    count = f"{len(service.unread)} record{'s' if len(service.unread) > 1 else ''} of {partition}, {of_them} of them acked,"
    if lack == HW_BEHIND:
        return f"{after} {count} could not be read, for the high watermark was still {service.high_watermark} ({state})"
    return f"{after} {count} could not be read, although they stood below the high watermark ({state})"


RULE: Final = Rule(
    name=UNAVAILABLE,
    definition=(
        "While a sufficient core of the brokers was healed and the others were left as they were, a partition that "
        "could have a leader had none that was alive and knew it, or records in its leader's log, acked ones among "
        "them, could not be read, longer than Kafka's timeouts explain."
    ),
    source=(
        "Kafka's documentation, Replication (a committed message stays as long as one in-sync replica is alive; who "
        "is stuck or lags leaves the ISR after replica.lag.time.max.ms); Election.leaderForOffline, "
        "Partition.maybeShrinkIsr; the liveness mode of TigerBeetle's simulator."
    ),
    judge=judge,
)
