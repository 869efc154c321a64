"""Models what a leader knows about one follower (``Replica.scala``)."""

from typing import Final, final

from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.sim.idle_fetch import IdleFetch

UNKNOWN_OFFSET: Final = -1
NOT_FETCHED: Final = -2
"""The broker epoch of a follower that has not fetched yet.

If a follower's fetches carry no broker epoch, its broker epoch is `NO_EPOCH` instead.
"""


class CountedSession:
    """A fetch session whose fetches count for the follower's replicas, even without news of them.

    ``last_fetch_us`` is the time of the last fetch that counted for the ISR. An ``idle`` fetch
    advances that time whenever it repeats itself. ``counted_us`` is the time of the last such fetch
    that the broker handled itself.
    """

    __slots__ = ("counted_us", "idle")

    counted_us: int
    idle: IdleFetch | None

    @property
    def last_fetch_us(self) -> int:
        return self.counted_us if self.idle is None else self.idle.since_us

    def mark_news(self, partition: str) -> None:
        """Let the next fetch of the session check a partition."""
        raise NotImplementedError


@final
@dataclass(slots=True, eq=False)
class Replica:
    """A remote replica as its leader sees it: log start and end, and when it was last caught up."""

    broker: int
    log_end_offset: int = UNKNOWN_OFFSET
    log_start_offset: int = UNKNOWN_OFFSET
    last_caught_up_us: int = 0
    last_fetch_leader_leo: int = 0
    last_fetch_us: int = 0
    # The leader's high watermark at the last fetch. The follower knows it from the answer (KIP-392,
    # used in 2.4 and 2.5).
    last_sent_hw: int = 0
    # The broker epoch in the last fetch, if fetches carry one (KIP-903).
    broker_epoch: int = NOT_FETCHED
    # The session, while each of its fetches counts as a fetch from the leader's LEO.
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
        """From now on, count each fetch of a session as a fetch from the leader's LEO."""
        self.session = session

    def leave_session(self) -> None:
        """Stop counting each fetch of the session. Its fetches until now still count."""
        if self.session is not None:
            self.last_caught_up_us = self.last_fetch_us = self.session.last_fetch_us
            self.session = None

    def reset(
        self, leader_leo: int, now_us: int, *, in_isr: bool, forgets_positions: bool, counts_as_fetch: bool
    ) -> None:
        """Begin a leader epoch. A member of the ISR counts as caught up now.

        With *counts_as_fetch* a replica outside of the ISR counts as having fetched now. Kafka's
        leader forgets positions only if it did not lead before (``resetReplicaState``). A leader
        that was deposed and elected again without noticing keeps the old position of a follower,
        even if the follower has truncated its log for the leader in between.
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
        """Move the times of fetches back, because the leader's clock has jumped *by_us* ahead."""
        self.last_fetch_us -= by_us
        self.last_caught_up_us -= by_us

    def forget_fetches(self) -> None:
        """Forget the position after a failed fetch, but not when the replica was last caught up."""
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


# Kafka uses 0, the start of Unix time. Virtual time starts below zero, so the model uses less.
_LONG_AGO_US: Final = -(10**15)
