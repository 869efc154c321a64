"""Rare states that a run counts when it reaches them, by name.

They are counted from the trace after the run (`harrow.campaigns.run.probes.probe_counter`). A campaign that
never reached what it is meant to test has shown nothing, and can say what it has to reach.
"""

from collections.abc import Collection, Mapping
from typing import Final

PROBES: Final[dict[str, str]] = {
    # Controllers
    "controller-changed": "A broker became controller after virtual time 0.\n\n"
    "It reads everything anew from ZooKeeper and tells all brokers, and takes up what its predecessor left undone.",
    "controller-died": "The broker of the controller died.\n\n"
    "Until its session ends no other broker can be elected, and leaders that die are not replaced.",
    "controller-died-during-election": "The controller died while a partition waited for a leader.\n\n"
    "Its successor has to find that out by itself and finish what was begun.",
    "leader-died-without-controller": "A leader died while there was no controller.\n\n"
    "No broker hears of it. The next controller finds out only by comparing what ZooKeeper has.",
    "controllers-overlapped": "A broker became controller while another one, alive, still took itself for it.\n\n"
    "The former controller was paused or cut off past its session. What it still sends has an older controller epoch.",
    "paused-controller-woke-deposed": "A paused controller went on when another had been elected.\n\n"
    "It goes on where it stopped, perhaps in the middle of an election, before it hears of its successor.",
    "controller-lost-its-session": "ZooKeeper ended the session of a controller that was alive.\n\n"
    "It resigns once it hears of that, and not before.",
    "stale-controller-refused": "A broker refused a control request of a former controller.\n\n"
    "The controller epoch did what it is there for (STALE_CONTROLLER_EPOCH).",
    "stale-broker-epoch-refused": "A broker refused a control request meant for its earlier life.\n\n"
    "Obeyed, a delayed LeaderAndIsr or StopReplica would undo what the broker has learned since (KIP-380).",
    # Brokers and their sessions
    "session-expired": "ZooKeeper ended a broker's session.\n\n"
    "For the rest of the cluster the broker is gone, whether it is or not.",
    "session-expired-alive": "ZooKeeper ended the session of a broker that was running or paused.\n\n"
    "Until it hears of that, the broker acts as leader of partitions that others lead by now.",
    "bounced-broker": "A broker was back before ZooKeeper had noticed that it was gone.\n\n"
    "It has to wait for its former session; before KIP-380 a controller could miss that it had gone at all.",
    "two-brokers-down": "A broker died while another one was down.\n\n"
    "With three replicas and min.insync.replicas=2, partitions on both can no longer take acks=all.",
    "all-replicas-down": "All replicas of a partition were down at once.\n\n"
    "Who leads next depends on who returns first and on who was in the ISR.",
    "last-isr-member-died": "The only member of an ISR died.\n\n"
    "It stays in the ISR, and only it can lead again, unless an unclean election takes another replica.",
    "partition-offline": "A partition was left without a leader.\n\n"
    "No member of its ISR was alive, and an unclean election was not allowed or not possible.",
    # Elections
    "clean-election": "A member of the ISR was elected leader of a partition that had lost its leader.\n\n"
    "It has all that was committed; its high watermark and the other replicas may not show that yet.",
    "unclean-election": "A replica outside the ISR was elected leader.\n\n"
    "What only the ISR had is lost, acknowledged or not.",
    "preferred-leader-elected": "The preferred replica was given the lead back.\n\n"
    "Leadership moves though nothing has failed; requests under way meet a leader that has resigned.",
    "fast-leader-changes": "Another broker became leader before its predecessor had appended anything.\n\n"
    "Its epoch has no records to be known by: what leader epochs got wrong before KIP-279 needs this.",
    "leader-hw-behind": "A new leader began with a high watermark below one that its partition had reached.\n\n"
    "Its own is from its last fetch. Until followers have fetched, what is committed counts as not committed.",
    "leader-restarted-in-its-epoch": "A broker that had died led again in the same leader epoch.\n\n"
    "Its absence went unnoticed. If its log became shorter meanwhile, followers cannot tell by the epoch.",
    "leader-missed-its-deposition": "A leader was elected again before it had heard that another one had led.\n\n"
    "It has been leader all along as far as it knows, and its followers may have truncated for the one in between.",
    # Leaders that have been succeeded
    "zombie-leader-accepted-write": "A broker appended in a leader epoch that had been succeeded.\n\n"
    "The record will be truncated; with acks=1 it has been acknowledged.",
    "zombie-leader-acknowledged": "A broker acknowledged a record when another one had been elected.\n\n"
    "With acks=1 the record is lost; with acks=all every member of the new ISR has to have it.",
    "zombie-leader-served-read": "A consumer read from a broker when another one had been elected.\n\n"
    "It must not see there what the new leader does not have.",
    "zombie-leader-changed-isr": "A leader wrote an ISR when it had been succeeded.\n\n"
    "ZooKeeper refuses that, for the znode has another version: only a mutant gets here.",
    "paused-leader-woke-deposed": "A paused leader went on when another one had been elected.\n\n"
    "It handles waiting requests before it hears of the election, as if it still led.",
    # The ISR
    "isr-shrank": "A leader took a follower out of the ISR.\n\n"
    "What is committed from now on that follower need not have.",
    "isr-shrank-to-one": "An ISR was reduced to the leader alone.\n\n"
    "With min.insync.replicas=1, acks=all is no more than acks=1.",
    "isr-expanded": "A follower came back into an ISR.\n\n"
    "It may be elected from now on, so it has to have all that is committed.",
    "isr-flapped": "A follower was back in an ISR within a second of being taken out.\n\n"
    "What was committed in between was committed without it.",
    "isr-write-refused": "ZooKeeper refused a leader's ISR.\n\n"
    "A controller had written the znode, or the session was over: the leader may have been succeeded.",
    "isr-write-unheard": "Another leader was elected while the former one did not know of an ISR that it had written.\n\n"
    "Whom it had taken in may lead by now, and a leader that goes by the smaller ISR commits without it (KIP-497).",
    "member-restarted-while-joining": "A broker was started again while its leader's request to take it into the ISR was under way.\n\n"
    "What the request goes by was a former life, and its records may be lost (KIP-903).",
    # Followers
    "truncated": "A follower cut its log back.\n\n"
    "What it had from a leader of the past, the present leader has not.",
    "truncated-below-hw": "A follower cut its log below a high watermark that its partition had reached.\n\n"
    "Committed records go here. If it is elected before it has fetched them again, they are lost.",
    "truncated-below-read": "A replica cut off what a consumer had read from its partition.\n\n"
    "If no other replica has it, another record will take its offset.",
    "follower-ahead-of-leader": "A follower cut off what it had beyond the start of its leader's epoch.\n\n"
    "The leader was elected though another replica's log was longer.",
    "follower-truncated-twice": "A follower cut its log twice before it followed.\n\n"
    "The first cut was not enough: the leader did not have its last epoch (KIP-279), or its log is shorter still.",
    "epoch-unknown-to-leader": "A leader was asked for the end of an epoch that it did not have.\n\n"
    "It answers with an earlier epoch; before KIP-279 it could not say with which.",
    "epoch-undefined-answer": "A leader could not say where an epoch ends.\n\n"
    "The follower falls back to its high watermark, as before KIP-101.",
    "follower-gave-up": "A follower gave up a partition: the leader's next batch did not begin where its log ended.\n\n"
    "The two logs have parted in a way that no epoch shows.",
    "fenced-by-leader-epoch": "A fetch was refused for its leader epoch.\n\n"
    "The follower or consumer had not heard of the last election (KIP-320).",
    "leader-epoch-unknown": "A fetch knew of a newer leader epoch than the leader.\n\n"
    "The follower heard of the election first, and has to wait (UNKNOWN_LEADER_EPOCH).",
    "fetch-out-of-range": "A fetch asked for an offset behind the end of the log.\n\n"
    "The follower or consumer is ahead of the leader: something was truncated or lost.",
    "fetch-waited-in-purgatory": "A fetch found nothing to read and waited.\n\n"
    "It answers with the high watermark of when it is woken, not of when it came.",
    "fetch-expired-in-purgatory": "A fetch waited until its time was over.\n\n"
    "Nothing was appended for so long; the high watermark travels with the empty answer.",
    # Disks
    "hw-checkpoint-stale-at-restart": "A replica started with a high watermark below the one that it had when it stopped.\n\n"
    "The checkpoint is written every 5 s. Before KIP-101 the log was cut to it.",
    "unflushed-lost": "Power loss took records that were not flushed.\n\n"
    "Only the other replicas have them now.",
    "committed-unflushed-lost": "Power loss took records below a high watermark that their partition had reached.\n\n"
    "They are safe only as long as another replica keeps its own, unflushed as it may be.",
    "log-lost-with-disk": "A broker lost its disk, and a log that had records.\n\n"
    "Only the other replicas have them now.",
    "last-isr-member-lost-its-disk": "The only member of an ISR lost its disk.\n\n"
    "No other replica can be elected, so it leads with an empty log when it comes back (KIP-966).",
    "corrupt-batch-fetched": "A follower or a consumer got a batch with a wrong CRC.\n\n"
    "It asks again and stays where it is, until another replica leads.",
    "recovery-met-corruption": "A broker that was killed found a batch with a wrong CRC, and cut its log there.\n\n"
    "The good batches behind the bad one go with it.",
    "log-dir-failed": "A broker could not write to a log directory.\n\n"
    "With another one it goes on without the replicas there (KIP-112), else it ends.",
    "request-queue-full": "A broker's threads waited for its disk, and no more requests fitted into the queue.\n\n"
    "Its network threads wait as well then, with answers that are ready.",
    "log-start-raised": "A log begins later than before: retention has deleted what was there.\n\n"
    "A consumer whose next record is gone goes where auto.offset.reset says.",
    "records-deleted-by-request": "An administrator had records deleted.\n\n"
    "The logs begin in the middle of a batch, perhaps; what is at the offset and after it has to stay (KIP-107).",
    "log-started-anew": "A follower dropped its log, and went on where its leader's begins.\n\n"
    "It had been away for longer than its leader keeps records.",
    "log-compacted": "A replica compacted its log.\n\n"
    "Of each key the latest record is left; each replica does that at times of its own.",
    "compacted-above-hw": "A replica compacted what was not committed.\n\n"
    "If the later record of a key is cut off, the earlier one is gone already (KAFKA-13194, up to 3.0).",
    "offset-reset": "A consumer's position was out of range, and it went where auto.offset.reset says.\n\n"
    "With latest, its default, it skips what is still there.",
    "read-replica-preferred": "A leader had a consumer read from a follower.\n\n"
    "What it reads there is committed, but the follower's high watermark is behind the leader's (KIP-392).",
    "read-replica-cleared": "A consumer went back from a follower to the leader.\n\n"
    "The two may have got differently far, so its position may be ahead of what it asks next.",
    # Producers
    "duplicate-batch-suppressed": "A leader recognised a batch that it had already.\n\n"
    "The first ack was lost. Without idempotence it would be there twice.",
    "batch-appended-again": "A batch that had been appended was appended once more.\n\n"
    "The first copy was truncated or lost, or the leader did not recognise it: then it is there twice.",
    "sequence-refused": "A leader refused a batch for its sequence number.\n\n"
    "An earlier batch of the producer is missing, or its state is.",
    "not-enough-replicas": "A leader refused a batch because its ISR was below min.insync.replicas.\n\n"
    "The promise of acks=all is kept by not taking the record.",
    "not-enough-replicas-after-append": "The ISR fell below min.insync.replicas after the append.\n\n"
    "The producer hears of an error, yet the record is in the log and may stay.",
    "produce-timed-out": "A leader gave up waiting for its followers: an acks=all expired in the purgatory.\n\n"
    "The record is in the log all the same.",
    "ack-lost-after-append": "An ack got lost on its way.\n\n"
    "The producer cannot know that the record is there, and sends it again.",
    "retried-after-append": "A producer sent again what had been appended.\n\n"
    "Only a leader that remembers the batch keeps it from being there twice.",
    "producer-retried-to-new-leader": "A producer sent a batch again, to another leader than before.\n\n"
    "Whether the new leader knows the batch depends on what it has copied.",
    "sent-to-former-leader": "A batch was refused by a broker that does not lead its partition.\n\n"
    "The producer's metadata was old (NOT_LEADER_FOR_PARTITION).",
}
"""What each of them is and, after an empty line, what it means."""


def never_reached(
    reached: Collection[Mapping[str, int]], probes: Collection[str] = tuple(PROBES)
) -> tuple[str, ...]:
    """Return those of *probes* that none of several runs reached, in their order."""
    return tuple(probe for probe in probes if not any(counts.get(probe) for counts in reached))
