"""How many bytes a second have passed, over a window of samples (``Rate.java``, ``SimpleRate.java``, ``SampledStat.java``)."""

from typing import Final

from harrow.cluster_model.sim.virtual_time import US_PER_SECOND

NO_LIMIT: Final = 2**63 - 1


class SampledRate:
    """The rate of what is recorded, in bytes a second.

    A sample begins with the first record after the one before it is full (``quota.window.size.seconds``). One is forgotten so many
    samples (``quota.window.num``) after it has begun, from 3.8 on after it was last recorded to, so that *overlapping* ones
    count as a whole. The window reaches back to where the oldest sample began; until there are enough it is as long as all but one of
    them. A *simple* rate, that of replication, reaches back to there and no further, one sample at the least.

    Whole numbers: Kafka's are doubles, which here would only round.
    """

    __slots__ = ("_overlapping", "_sample_us", "_samples", "_samples_max", "_simple")

    def __init__(self, samples: int, sample_us: int, *, overlapping: bool, simple: bool = False) -> None:
        self._samples_max = samples
        self._sample_us = sample_us
        self._overlapping = overlapping
        self._simple = simple
        # When each began and was last recorded to, and how much it has, the oldest first.
        self._samples: list[list[int]] = []

    def record(self, amount: int, now_us: int) -> None:
        """Count what has passed; a negative amount takes back what was counted."""
        samples = self._samples
        if not samples or now_us - samples[-1][0] >= self._sample_us:
            samples.append([now_us, now_us, 0])
            if len(samples) > self._samples_max + self._overlapping:
                del samples[0]
        samples[-1][1] = now_us
        samples[-1][2] += amount

    def measure(self, now_us: int) -> tuple[int, int]:
        """Return how much has passed, and in how many microseconds."""
        age_us = self._samples_max * self._sample_us
        kept = [sample for sample in self._samples if now_us - sample[self._overlapping] < age_us]
        self._samples = kept
        elapsed_us = now_us - kept[0][0] if kept else 0
        if self._simple:
            return _total(kept), max(elapsed_us, self._sample_us)
        missing = self._samples_max - 1 - elapsed_us // self._sample_us
        return _total(kept), max(elapsed_us + max(missing, 0) * self._sample_us, 1)

    def exceeds(self, bound: int, now_us: int) -> bool:
        """Return whether the rate is above a bound in bytes a second."""
        total, window_us = self.measure(now_us)
        return total * US_PER_SECOND > bound * window_us

    def time_to(self, bound: int, now_us: int) -> int:
        """Return for how many microseconds nothing may pass, so that the rate falls to a bound; 0 where it is no higher.

        Of a rate O over a window W there is O W / (W + X) left after a time X: that is the bound T where X = W (O - T) / T
        (``QuotaUtils.throttleTime``).
        """
        total, window_us = self.measure(now_us)
        return max(total * US_PER_SECOND // bound - window_us, 0)


def _total(samples: list[list[int]]) -> int:
    return sum([sample[2] for sample in samples])
