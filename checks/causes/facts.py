"""The facts by which links of a chain follow from each other: what kinds of link need, and what they make (`harrow.checks.link`)."""

from typing import Final

from harrow.checks.link import ChainFact

# Of replicas and the control plane

COPY: Final = ChainFact("copy", is_open=True)
"""A broker has a record: of the record and the broker."""
ISR: Final = ChainFact("isr", is_open=True)
"""What the control plane has as the ISR: of nothing, its value are the members."""
LEADER: Final = ChainFact("leader", is_open=True)
"""Who leads in the latest epoch: of nothing, its value is the broker."""
GONE: Final = ChainFact("gone")
"""A leader cannot go on: of the broker. It stopped, lost its session, shuts down, or is to lead no more."""
DOWN: Final = ChainFact("down")
"""A broker is not running, or its log is closed: of the broker."""
CUT_OFF: Final = ChainFact("cut off")
"""A broker does not reach the control plane: of the broker."""
DAMAGED: Final = ChainFact("damaged")
"""A broker's disk has changed bytes of its log: of the broker."""
AHEAD: Final = ChainFact("ahead of its leader")
"""A broker has more than its leader and may not truncate: of the broker."""
CHANGE_ASKED: Final = ChainFact("change of the ISR asked")
"""A leader has asked for an ISR with another member: its subject is the leader."""

# Of clients

TURNED_AWAY: Final = ChainFact("turned away")
"""A request failed: of nothing."""
DISTURBED: Final = ChainFact("disturbed")
"""Something keeps a broker from answering, or from fetching what an answer waits for: of the broker."""
SENT_AGAIN: Final = ChainFact("sent again")
"""A record has been sent again, by its producer or by its application: of the record."""
INTERRUPTED: Final = ChainFact("interrupted")
"""Work on a record was cut short or taken over: a process died or stalled, a group or a position moved. Of nothing."""

# Of transactions

COMMIT_ASKED: Final = ChainFact("commit asked")
"""An application has asked for a commit: of its producer id."""
ABORT_ASKED: Final = ChainFact("abort asked")
"""An application has asked for an abort, or a coordinator aborts by itself: of the producer id."""
