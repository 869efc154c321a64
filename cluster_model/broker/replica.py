"""Models what a leader knows about one follower (``Replica.scala``)."""

from typing import Final, final

from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.sim.idle_fetch import IdleFetch

UNKNOWN_OFFSET: Final = -1
NOT_FETCHED: Final = -2
"""The broker epoch of a follower that has not fetched yet.

`NO_EPOCH` is the broker epoch of a follower whose fetches do not carry one.
"""


class CountedSession:
    """A fetch session. Each fetch of it may count for a replica.

    ``last_fetch_us`` is the time of the last fetch that counted for the ISR. An ``idle`` fetch,
    which repeats itself, advances it. ``counted_us`` is the time of the last such fetch that the
    broker handled itself.
    """

    __slots__ = ("counted_us", "idle")

    counted_us: int
    idle: IdleFetch | None

    @property
    def last_fetch_us(self) -> int:
        return self.counted_us if self.idle is None else self.idle.since_us

    def mark_news(self, partition: str) -> None:
        """Check a partition with the next fetch."""
        raise NotImplementedError


@final
@dataclass(slots=True, eq=False)
class Replica:
    """A remote replica: its log start and end, and when it was last caught up."""

    broker: int
    log_end_offset: int = UNKNOWN_OFFSET
    log_start_offset: int = UNKNOWN_OFFSET
    last_caught_up_us: int = 0
    last_fetch_leader_leo: int = 0
    last_fetch_us: int = 0
    # The leader's high watermark at the last fetch, which the follower therefore knows (KIP-392,
    # 2.4 and 2.5).
    last_sent_hw: int = 0
    # The broker epoch of its last fetch, if fetches name it (KIP-903).
    broker_epoch: int = NOT_FETCHED
    # Set while each fetch of this session implies a fetch from the leader's LEO.
    session: CountedSession | None = None

    @property
    def caught_up_us(self) -> int:
        """When the replica was last caught up."""
        session = self.session
        return self.last_caught_up_us if session is None else session.last_fetch_us

    @property
    def fetched_us(self) -> int:
        """When the replica last fetched."""
        session = self.session
        return self.last_fetch_us if session is None else session.last_fetch_us

    def follow_session(self, session: CountedSession) -> None:
        """Count each further fetch of a session as a fetch from the leader's LEO."""
        self.session = session

    def leave_session(self) -> None:
        """Count fetches one by one again. The session's fetches have counted until now."""
        if self.session is not None:
            self.last_caught_up_us = self.last_fetch_us = self.session.last_fetch_us
            self.session = None

    def reset(
        self, leader_leo: int, now_us: int, *, in_isr: bool, forgets_positions: bool, counts_as_fetch: bool
    ) -> None:
        """Begin a leader epoch. Members of the ISR count as caught up now.

        With *counts_as_fetch* other replicas count as having fetched now. Kafka's leader drops
        positions only if it did not lead before (``resetReplicaState``). A leader that missed its
        deposition therefore keeps the old position of a follower that has truncated its log for
        another leader in between.
        """
        self.session = None
        self.last_fetch_leader_leo = leader_leo
        self.last_fetch_us = now_us if in_isr or counts_as_fetch else _LONG_AGO_US
        self.last_caught_up_us = now_us if in_isr else _LONG_AGO_US
        if forgets_positions:
            self.log_end_offset = UNKNOWN_OFFSET
            self.log_start_offset = UNKNOWN_OFFSET
            self.last_fetch_leader_leo = UNKNOWN_OFFSET
            self.last_fetch_us = _LONG_AGO_US
            self.last_sent_hw = 0
            self.broker_epoch = NOT_FETCHED

    def on_clock_step(self, by_us: int) -> None:
        """Move the times of its fetches back, because the leader's clock has jumped ahead."""
        self.last_fetch_us -= by_us
        self.last_caught_up_us -= by_us

    def forget_fetches(self) -> None:
        """Drop the position after a failed fetch. The time when it was last caught up stays."""
        self.leave_session()
        self.log_end_offset = UNKNOWN_OFFSET
        self.last_fetch_leader_leo = UNKNOWN_OFFSET
        self.last_fetch_us = _LONG_AGO_US

    def update_fetch_state(self, fetch_offset: int, leader_leo: int, now_us: int) -> None:
        """Record a fetch.

        A follower is caught up now if it fetches from the leader's LEO. It was caught up at its
        previous fetch if it has now reached the LEO of that moment.
        """
        self.leave_session()
        if fetch_offset >= leader_leo:
            self.last_caught_up_us = max(self.last_caught_up_us, now_us)
        elif fetch_offset >= self.last_fetch_leader_leo:
            self.last_caught_up_us = max(self.last_caught_up_us, self.last_fetch_us)
        self.log_end_offset = fetch_offset
        self.last_fetch_leader_leo = leader_leo
        self.last_fetch_us = now_us


# Kafka uses time 0 of the epoch; virtual time starts below zero, so this is further back.
_LONG_AGO_US: Final = -(10**15)
