"""Defines the facts that connect the links of a chain: links need facts, and make facts true.

A fact that is true or false has a subject, so that an event of one broker, client or record never
counts as an event of another one. Facts with a value, such as the leader, have no subject, because
a chain is about one partition.
"""

from typing import Final

from harrow.checks.link import ChainFact

# Replicas and the control plane

COPY: Final = ChainFact("copy", is_open=True)
"""A broker has a copy of a record. Subject: the record and the broker."""
STORED: Final = ChainFact("stored")
"""A leader has appended a record. Subject: the record."""
ISR: Final = ChainFact("isr", is_open=True)
"""The ISR in the control plane. No subject; the value is its members."""
LEADER: Final = ChainFact("leader", is_open=True)
"""The leader in the latest epoch. No subject; the value is the broker."""
EPOCH: Final = ChainFact("leader epoch")
"""A leader epoch has begun. Subject: the epoch."""
CONTROLLER: Final = ChainFact("controller")
"""A broker has been elected controller. Subject: the broker."""
OUT_OF_SERVICE: Final = ChainFact("out of service")
"""A broker cannot lead or stay in the ISR: it stopped, lost its session, shuts down, or was
deposed. Subject: the broker."""
DOWN: Final = ChainFact("down")
"""A broker is not running, or its log is closed. Subject: the broker."""
PAUSED: Final = ChainFact("paused")
"""A broker's process is suspended. Subject: the broker."""
CUT_OFF: Final = ChainFact("cut off")
"""A broker does not reach the control plane. Subject: the broker."""
DAMAGED: Final = ChainFact("damaged")
"""A broker's disk has changed bytes of its log. Subject: the broker."""
UNASSIGNED: Final = ChainFact("unassigned")
"""A broker is no longer a replica of the partition. Subject: the broker."""
DELETED: Final = ChainFact("deleted")
"""Retention, compaction or an administrator has deleted a record from a log. Subject: the
record."""
LOST: Final = ChainFact("lost")
"""A replica has lost records in a power loss or with its disk. Subject: the broker."""
UNCLEAN: Final = ChainFact("unclean leader")
"""A broker was elected uncleanly. Subject: the broker."""
AHEAD: Final = ChainFact("ahead of its leader")
"""A broker has more records than its leader, and is not allowed to truncate them. Subject: the
broker."""
CHANGE_ASKED: Final = ChainFact("change of the ISR asked")
"""A leader has requested an ISR with another member. Subject: the leader."""
CHANGE_PENDING: Final = ChainFact("change of the ISR pending")
"""A leader has requested a larger ISR, and its commits wait for the new members. Subject: the
leader."""

# Clients

SEND_FAILED: Final = ChainFact("send failed")
"""A request with a record failed. Subject: the record."""
ACKED: Final = ChainFact("acked")
"""A producer has an acknowledgement for a record. Subject: the record."""
DISTURBED: Final = ChainFact("disturbed")
"""Something keeps a broker from answering a request, or from fetching the records for which an
answer waits. Subject: the broker."""
RESENT: Final = ChainFact("resent")
"""A producer or its application has sent a record again. Subject: the record."""
INTERRUPTED: Final = ChainFact("interrupted")
"""A client's work was cut short or taken over: it died or stalled, or its group or position moved.
Subject: the client."""
DELIVERED: Final = ChainFact("delivered")
"""A poll has returned the record to a client. Subject: the client."""
COMMITTED: Final = ChainFact("committed")
"""A coordinator has accepted a commit for a partition. Subject: the partition."""

# Transactions

COMMIT_ASKED: Final = ChainFact("commit asked")
"""An application has requested a commit. Subject: its producer id."""
ABORT_ASKED: Final = ChainFact("abort asked")
"""An application has requested an abort, or a coordinator aborts by itself. Subject: the producer
id."""
COMMIT_DECIDED: Final = ChainFact("commit decided")
"""A coordinator has written that a transaction commits. Subject: the producer id."""
ABORT_DECIDED: Final = ChainFact("abort decided")
"""A coordinator has written that a transaction aborts. Subject: the producer id."""
