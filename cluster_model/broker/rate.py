"""Measures rates in bytes per second over a window of samples.

Modelled on ``Rate.java``, ``SimpleRate.java`` and ``SampledStat.java``.
"""

from typing import Final

from harrow.cluster_model.sim.virtual_time import US_PER_SECOND

NO_LIMIT: Final = 2**63 - 1


class SampledRate:
    """The rate of recorded amounts in bytes per second.

    A sample covers *sample_us* (``quota.window.size.seconds``). After that time the next record
    begins a new sample. A sample expires *samples* times *sample_us* after its start
    (``quota.window.num``). Since 3.8 (*overlapping*) it expires that long after its last record, so
    that a sample which is partly in the window counts as a whole. The window reaches back to the
    start of the oldest sample. It has a minimum length: all samples but one, or one sample for a
    *simple* rate, which replication uses.

    Amounts are integers, because Kafka's doubles would only add rounding errors.
    """

    __slots__ = ("_overlapping", "_sample_us", "_samples", "_samples_max", "_simple")

    def __init__(self, samples: int, sample_us: int, *, overlapping: bool, simple: bool = False) -> None:
        self._samples_max = samples
        self._sample_us = sample_us
        self._overlapping = overlapping
        self._simple = simple
        # For each sample its start, the time of its last record, and its amount; oldest first.
        self._samples: list[list[int]] = []

    def record(self, amount: int, now_us: int) -> None:
        """Add an amount. A negative amount undoes an earlier record."""
        samples = self._samples
        if not samples or now_us - samples[-1][0] >= self._sample_us:
            samples.append([now_us, now_us, 0])
            if len(samples) > self._samples_max + self._overlapping:
                del samples[0]
        samples[-1][1] = now_us
        samples[-1][2] += amount

    def measure(self, now_us: int) -> tuple[int, int]:
        """Return the amount in the window, and the length of the window in microseconds."""
        age_us = self._samples_max * self._sample_us
        samples = [sample for sample in self._samples if now_us - sample[self._overlapping] < age_us]
        self._samples = samples
        elapsed_us = now_us - samples[0][0] if samples else 0
        if self._simple:
            return _total(samples), max(elapsed_us, self._sample_us)
        missing = self._samples_max - 1 - elapsed_us // self._sample_us
        return _total(samples), max(elapsed_us + max(missing, 0) * self._sample_us, 1)

    def exceeds(self, bound: int, now_us: int) -> bool:
        """Return whether the rate is above a bound in bytes per second."""
        total, window_us = self.measure(now_us)
        return total * US_PER_SECOND > bound * window_us

    def time_to(self, bound: int, now_us: int) -> int:
        """Return for how many microseconds to record nothing, until the rate is down to *bound*.

        Return 0 if the rate is not above the bound. After a time X without records, a rate O over a
        window W has fallen to O W / (W + X). That is the bound T if X = W (O - T) / T
        (``QuotaUtils.throttleTime``).
        """
        total, window_us = self.measure(now_us)
        return max(total * US_PER_SECOND // bound - window_us, 0)


def _total(samples: list[list[int]]) -> int:
    return sum([sample[2] for sample in samples])
