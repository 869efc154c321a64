"""Expires sessions, at ticks (``SessionTrackerImpl.java``).

The end of a timeout is rounded up to a tick, so sessions whose last signs of life are within one
tick expire together. In an ensemble only the leader expires sessions, and followers report which of
their clients are alive.
"""

from collections.abc import Callable, Iterable

from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.zookeeper.service.data_tree import ZooKeeperSession


@dataclass(slots=True, eq=False)
class _TrackedSession:
    """A session. ``owner`` is the server to which its client is connected."""

    timeout_us: int
    expires_us: int
    owner: int


class SessionTracker:
    """Tracks sessions until they expire, and calls *expire* with the id of each expired session.

    Each session starts with its complete timeout.
    """

    __slots__ = ("_expire", "_host", "_is_active", "_sessions", "_tick_us")

    def __init__(
        self,
        host: Host,
        tick_us: int,
        sessions: Iterable[ZooKeeperSession],
        owner: int,
        expire: Callable[[int], None],
    ) -> None:
        self._host = host
        self._tick_us = tick_us
        self._expire = expire
        self._is_active = True
        self._sessions: dict[int, _TrackedSession] = {}
        for session in sessions:
            self.add(session.id, session.timeout_us, owner)

    def start(self) -> None:
        """Start the ticks, at multiples of the tick time."""
        now_us = self._host.clock.now_us
        self._host.set_timer(self._tick_after(now_us) - now_us, self._tick)

    def stop(self) -> None:
        """Stop expiring sessions."""
        self._is_active = False

    def add(self, session_id: int, timeout_us: int, owner: int) -> None:
        self._sessions[session_id] = _TrackedSession(timeout_us, self._deadline(timeout_us), owner)

    def remove(self, session_id: int) -> None:
        self._sessions.pop(session_id, None)

    def touch(self, session_id: int) -> bool:
        """Record that a session's client is alive. Return False if the session is over."""
        session = self._sessions.get(session_id)
        if session is None:
            return False
        session.expires_us = self._deadline(session.timeout_us)
        return True

    def move(self, session_id: int, owner: int) -> bool:
        """Record the server to which a session's client is now connected.

        Return False if the session is over.
        """
        if not self.touch(session_id):
            return False
        self._sessions[session_id].owner = owner
        return True

    def is_owner(self, session_id: int, server: int) -> bool:
        """Return whether a session is alive and *server* owns it (``checkSession``)."""
        session = self._sessions.get(session_id)
        return session is not None and session.owner == server

    def _deadline(self, timeout_us: int) -> int:
        return self._tick_after(self._host.clock.now_us + timeout_us)

    def _tick_after(self, time_us: int) -> int:
        """Return the first tick later than a time (``roundToInterval``)."""
        return (time_us // self._tick_us + 1) * self._tick_us

    def _tick(self, _: None) -> None:
        if not self._is_active:
            return
        now_us = self._host.clock.now_us
        for session_id in [id_ for id_, each in self._sessions.items() if each.expires_us <= now_us]:
            # From now on this server refuses requests in the session. The other servers learn from
            # the transaction that the session has ended.
            self.remove(session_id)
            self._expire(session_id)
        self._host.set_timer(self._tick_us, self._tick)
