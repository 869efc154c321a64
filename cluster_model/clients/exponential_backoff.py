"""How long a client waits before it tries again, longer each time (``ExponentialBackoff.java``, KIP-580)."""

from typing import Final

from harrow.cluster_model.sim.choices import Stream

_JITTER_MILLIONTHS: Final = 200_000
"""A fifth more or less (``CommonClientConfigs.RETRY_BACKOFF_JITTER``), so that clients do not come back together."""
_WHOLE: Final = 1_000_000


class ExponentialBackoff:
    """Twice as long with each attempt, up to a maximum; as long as ever where that is no more than the first wait."""

    __slots__ = ("_initial_us", "_max_us", "_stream")

    def __init__(self, initial_us: int, max_us: int, stream: Stream) -> None:
        self._initial_us = min(initial_us, max_us)
        self._max_us = max_us
        self._stream = stream

    def backoff_us(self, attempts: int) -> int:
        """Return how long to wait after so many attempts that have failed before; it is drawn where it grows."""
        if self._max_us <= self._initial_us:
            return self._initial_us
        grown_us = min(self._initial_us << min(attempts, 40), self._max_us)
        factor = _WHOLE - _JITTER_MILLIONTHS + self._stream.below(2 * _JITTER_MILLIONTHS)
        return min(grown_us * factor // _WHOLE, self._max_us)
