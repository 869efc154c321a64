"""Computes how long to throttle clients that exceed a quota (``ClientQuotaManager.scala``)."""

from collections.abc import Collection, Sequence

from harrow.cluster_model.broker.rate import NO_LIMIT, SampledRate
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.release.replication import ReplicationSwitches
from harrow.cluster_model.settings import BrokerConfig
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.cluster_model.topology import QuotaSpec
from harrow.cluster_model.trace import Clock


class ClientQuotaManager:
    """The quotas of a broker's clients for one kind of request, produces or fetches.

    *rates* has the quota of each client in bytes per second; the key None is the default. Clients
    in *without_quota* have no quota, not even the default, because they are not clients of the
    campaign. A restart of the broker resets the measured rates.
    """

    def __init__(
        self,
        clock: Clock,
        config: BrokerConfig,
        switches: ReplicationSwitches,
        rates: dict[str | None, int],
        without_quota: Collection[str],
    ) -> None:
        self._clock = clock
        self._config = config
        self._switches = switches
        self._quotas = rates
        self._without_quota = without_quota
        self._rates: dict[str, SampledRate] = {}

    def bound(self, client: str) -> int:
        """Return the quota of a client in bytes per second: its own, or the default."""
        if client in self._without_quota:
            return NO_LIMIT
        return self._quotas.get(client, self._quotas.get(None, NO_LIMIT))

    def record(self, client: str, size_bytes: int) -> int:
        """Count a client's bytes; return its throttle time (``recordAndGetThrottleTimeMs``)."""
        bound = self.bound(client)
        if bound == NO_LIMIT:
            return 0
        now_us = self._clock.now_us
        rate = self._rates.get(client)
        if rate is None:
            rate = self._rates[client] = SampledRate(
                self._config.quota_samples,
                self._config.quota_sample_us,
                overlapping=self._switches.quota_rate_counts_overlapping_sample,
            )
        rate.record(size_bytes, now_us)
        return rate.time_to(bound, now_us)

    def unrecord(self, client: str, size_bytes: int) -> None:
        """Undo `record` for bytes that are not sent after all (``unrecordQuotaSensor``)."""
        self._rates[client].record(-size_bytes, self._clock.now_us)

    def largest_response(self, client: str) -> int:
        """Return the size of the largest response that the quota does not throttle forever.

        See KAFKA-9677 and ``getMaxValueInQuotaWindow``.
        """
        bound = self.bound(client)
        if bound == NO_LIMIT or not self._switches.fetch_limited_to_quota:
            return NO_LIMIT
        samples = self._config.quota_samples - 1
        return bound * samples * self._config.quota_sample_us // US_PER_SECOND


@dataclass(frozen=True, slots=True)
class ClientQuotas:
    """The quotas for produces and for fetches; None for a kind without quotas.

    Modelled on ``QuotaFactory.QuotaManagers``.
    """

    produce: ClientQuotaManager | None
    fetch: ClientQuotaManager | None

    @classmethod
    def from_specs(
        cls,
        specs: Sequence[QuotaSpec],
        clock: Clock,
        config: BrokerConfig,
        switches: ReplicationSwitches,
        without_quota: Collection[str],
    ) -> "ClientQuotas | None":
        """Return the quotas that a campaign sets; None if it sets none."""

        def manager(rates: dict[str | None, int]) -> ClientQuotaManager | None:
            return ClientQuotaManager(clock, config, switches, rates, without_quota) if rates else None

        if not specs:
            return None
        produce = {spec.client: spec.producer_byte_rate for spec in specs if spec.producer_byte_rate}
        fetch = {spec.client: spec.consumer_byte_rate for spec in specs if spec.consumer_byte_rate}
        return cls(manager(produce), manager(fetch))
