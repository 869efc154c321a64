"""Computes growing delays between a client's attempts (``ExponentialBackoff.java``, KIP-580)."""

from typing import Final

from harrow.cluster_model.sim.choices import Stream

_JITTER_MILLIONTHS: Final = 200_000
"""Delays vary by up to a fifth, so that clients do not retry at the same time.

Modelled on ``CommonClientConfigs.RETRY_BACKOFF_JITTER``.
"""
_MILLION: Final = 1_000_000


class ExponentialBackoff:
    """A delay that doubles with each failure, up to a maximum.

    The delay is constant if the maximum is not above the first delay.
    """

    __slots__ = ("_initial_us", "_max_us", "_stream")

    def __init__(self, initial_us: int, max_us: int, stream: Stream) -> None:
        self._initial_us = min(initial_us, max_us)
        self._max_us = max_us
        self._stream = stream

    def backoff_us(self, attempts: int) -> int:
        """Return the delay after a failure that follows *attempts* earlier failures.

        Only growing delays have jitter.
        """
        if self._max_us <= self._initial_us:
            return self._initial_us
        delay_us = min(self._initial_us << min(attempts, 40), self._max_us)
        factor = _MILLION - _JITTER_MILLIONTHS + self._stream.below(2 * _JITTER_MILLIONTHS)
        return min(delay_us * factor // _MILLION, self._max_us)
