"""The facts by which links of a chain follow from each other: what kinds of link need, and what they make (`harrow.checks.link`).

A fact that is true or false names whom it is about, so that the event of one broker, client or record never stands for that of
another. Only facts with a value, such as who leads, have no subject: a chain is about one partition.
"""

from typing import Final

from harrow.checks.link import ChainFact

# Of replicas and the control plane

COPY: Final = ChainFact("copy", is_open=True)
"""A broker has a record: of the record and the broker."""
STORED: Final = ChainFact("stored")
"""A leader has appended a record: of the record."""
ISR: Final = ChainFact("isr", is_open=True)
"""What the control plane has as the ISR: of nothing, its value are the members."""
LEADER: Final = ChainFact("leader", is_open=True)
"""Who leads in the latest epoch: of nothing, its value is the broker."""
EPOCH: Final = ChainFact("leader epoch")
"""A leader epoch has begun: of the epoch."""
CONTROLLER: Final = ChainFact("controller")
"""A broker has been elected controller: of the broker."""
GONE: Final = ChainFact("gone")
"""A broker cannot go on as leader, or in the ISR: of the broker. It stopped, lost its session, shuts down, or is to lead no more."""
DOWN: Final = ChainFact("down")
"""A broker is not running, or its log is closed: of the broker."""
PAUSED: Final = ChainFact("paused")
"""A broker's process stands still: of the broker."""
CUT_OFF: Final = ChainFact("cut off")
"""A broker does not reach the control plane: of the broker."""
DAMAGED: Final = ChainFact("damaged")
"""A broker's disk has changed bytes of its log: of the broker."""
UNASSIGNED: Final = ChainFact("unassigned")
"""A broker is no replica of the partition any more: of the broker."""
DELETED: Final = ChainFact("deleted")
"""Retention, compaction or an administrator has deleted a record from a log: of the record."""
LOST: Final = ChainFact("lost")
"""A replica has lost records with its machine's power or its disk: of the broker."""
UNCLEAN: Final = ChainFact("unclean leader")
"""A broker was elected uncleanly: of the broker."""
AHEAD: Final = ChainFact("ahead of its leader")
"""A broker has more than its leader and may not truncate: of the broker."""
CHANGE_ASKED: Final = ChainFact("change of the ISR asked")
"""A leader has asked for an ISR with another member: its subject is the leader."""
CHANGE_PENDING: Final = ChainFact("change of the ISR pending")
"""A leader waits for the followers that it has asked to have in the ISR: its subject is the leader."""

# Of clients

TURNED_AWAY: Final = ChainFact("turned away")
"""A request with a record failed: of the record."""
ACKED: Final = ChainFact("acked")
"""A producer was told that a record is stored: of the record."""
DISTURBED: Final = ChainFact("disturbed")
"""Something keeps a broker from answering, or from fetching what an answer waits for: of the broker."""
SENT_AGAIN: Final = ChainFact("sent again")
"""A record has been sent again, by its producer or by its application: of the record."""
INTERRUPTED: Final = ChainFact("interrupted")
"""A client's work was cut short or taken over: it died or stalled, its group or its position moved. Of the client."""
GIVEN: Final = ChainFact("given")
"""A poll has returned the record to a client: of the client."""
COMMITTED: Final = ChainFact("committed")
"""A coordinator has taken a commit for a partition: of the partition."""

# Of transactions

COMMIT_ASKED: Final = ChainFact("commit asked")
"""An application has asked for a commit: of its producer id."""
ABORT_ASKED: Final = ChainFact("abort asked")
"""An application has asked for an abort, or a coordinator aborts by itself: of the producer id."""
COMMIT_DECIDED: Final = ChainFact("commit decided")
"""A coordinator has written that a transaction commits: of the producer id."""
ABORT_DECIDED: Final = ChainFact("abort decided")
"""A coordinator has written that a transaction aborts: of the producer id."""
