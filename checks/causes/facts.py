"""The facts by which links of a chain follow from each other: what kinds of link need, and what they make (`harrow.checks.link`)."""

from typing import Final

from harrow.checks.link import Fact

# Of replicas and the control plane

COPY: Final = Fact("copy", is_open=True)
"""A broker has a record: of the record and the broker."""
ISR: Final = Fact("isr", is_open=True)
"""What the control plane has as the ISR: of nothing, its value are the members."""
LEADER: Final = Fact("leader", is_open=True)
"""Who leads in the latest epoch: of nothing, its value is the broker."""
GONE: Final = Fact("gone")
"""A leader cannot go on: of the broker. It stopped, lost its session, shuts down, or is to lead no more."""
DOWN: Final = Fact("down")
"""A broker is not running, or its log is closed: of the broker."""
CUT_OFF: Final = Fact("cut off")
"""A broker does not reach the control plane: of the broker."""
DAMAGED: Final = Fact("damaged")
"""A broker's disk has changed bytes of its log: of the broker."""
AHEAD: Final = Fact("ahead of its leader")
"""A broker has more than its leader and may not truncate: of the broker."""
CHANGE_ASKED: Final = Fact("change of the ISR asked")
"""A leader has asked for an ISR with another member: its subject is the leader."""

# Of clients

TURNED_AWAY: Final = Fact("turned away")
"""A request failed: of nothing."""
DISTURBED: Final = Fact("disturbed")
"""Something keeps requests or answers from arriving in time: of nothing."""
SENT_AGAIN: Final = Fact("sent again")
"""A record has been sent again, by its producer or by its application: of the record."""
INTERRUPTED: Final = Fact("interrupted")
"""Work on a record was cut short or taken over: a process died or stalled, a group or a position moved. Of nothing."""

# Of transactions

COMMIT_ASKED: Final = Fact("commit asked")
"""An application has asked for a commit: of its producer id."""
ABORT_ASKED: Final = Fact("abort asked")
"""An application has asked for an abort, or a coordinator aborts by itself: of the producer id."""
