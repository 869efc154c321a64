"""Makes the model of a cluster a target, on which plans can run."""

from collections.abc import Callable, Collection
from functools import partial

from harrow.campaigns.clients.clients import CORE_READER, MODEL, READER, Clients
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.targets.model_environment import ModelEnvironment
from harrow.campaigns.run.targets.model_observer import ClusterObserver
from harrow.campaigns.run.targets.partition_promises import partition_settings
from harrow.campaigns.run.targets.target import Patience
from harrow.checks.evidence import Evidence, PartitionSettings
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.lazy_dataclass import replace
from harrow.cluster_model.settings import LONG_MAX, TopicConfig
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.topology import CONSUMER_OFFSETS, EXACTLY_ONCE


class ModelTarget:
    """A simulated cluster with its clients."""

    kind = MODEL
    patience: Patience | None = None

    def __init__(self, plan: Plan, choices: Choices, invariants: Collection[str]) -> None:
        self.invariants = invariants
        self.cluster = Cluster(
            plan.running_cluster(),
            plan.kafka,
            plan.behaviour_switches(),
            choices,
            plan.events_limit,
            invariants,
        )
        self.cluster.without_quota = frozenset({READER, CORE_READER})
        self.trace = self.cluster.trace
        self.clients = Clients(plan.clients(), MODEL, self.cluster)
        self.observer = ClusterObserver(self.cluster, self.clients)
        self.environment = ModelEnvironment(
            self.cluster, self.clients, self.observer, survivable=plan.survivable
        )
        self.committed_copies = self.environment.committed_copies
        self.start = self.cluster.start
        self.advance = self.cluster.simulator.run_until
        self.step = self.cluster.simulator.step
        self.at = self.cluster.at
        self.watch_messages = self.cluster.network.watch_messages
        self.watch_fetches = self.cluster.network.watch_fetches
        self.elect_preferred_leaders = self.cluster.elect_preferred_leaders
        self.alter_partition_reassignment = self.cluster.alter_partition_reassignment
        self.add_broker = self.cluster.add_broker
        self.throttle_replication = self.cluster.throttle_replication
        self.delete_records = self.cluster.delete_records
        self.create_partitions = self.cluster.create_partitions
        self.partition_names = self.cluster.partition_names
        self.broker_config = self.cluster.broker_config

    def heal(self) -> None:
        held_back = [broker for broker in self.cluster.processes if self.environment.is_held_back(broker)]
        self.cluster.heal(later=held_back)
        for broker in held_back:
            self.environment.start_broker(broker)
        self.clients.resume()
        self.clients.set_clocks()

    def heal_core(self, brokers: Collection[int]) -> None:
        self.cluster.heal_core(brokers)
        self.clients.resume()
        self.clients.set_clocks()

    @property
    def now_us(self) -> int:
        return self.cluster.simulator.now_us

    @property
    def events_handled(self) -> int:
        return self.cluster.simulator.events_handled

    @property
    def registration_time_max_us(self) -> int:
        cluster = self.cluster
        return max(
            cluster.control_plane.registration_time_max_us(cluster.broker_config(broker))
            for broker in cluster.processes
        )

    def evidence(self) -> Evidence:
        cluster = self.cluster
        partitions = cluster.partition_names()
        applications = self.clients.application_settings()
        in_transactions = any(application.delivery == EXACTLY_ONCE for application in applications)
        offset_partitions = [
            name for name in cluster.internal_partitions() if name.rpartition("-")[0] == CONSUMER_OFFSETS
        ]
        return Evidence(
            release=cluster.release,
            metadata=cluster.metadata,
            operations=cluster.history.operations,
            trace=cluster.trace.events,
            process_names=cluster.history.process_names,
            producers=self.clients.producer_settings(),
            consumers=self.clients.consumer_settings(),
            applications=applications,
            partitions=self._settings_over_time((*partitions, *cluster.internal_partitions())),
            replicas=self.observer.final_logs(partitions),
            offset_replicas=self.observer.final_logs(offset_partitions if in_transactions else ()),
            read_back=frozenset(),
        )

    def partition_settings(self) -> dict[str, PartitionSettings]:
        return self._settings_of(self.cluster.partition_names(), self.cluster.topic_config)

    def _settings_over_time(self, names: Collection[str]) -> dict[str, PartitionSettings]:
        """Return the settings of partitions, with those before the changes of administrators."""
        cluster = self.cluster
        settings = self._settings_of(
            names, lambda topic, broker: cluster.topic_config_at(topic, broker, LONG_MAX)
        )
        topics = dict.fromkeys(name.rpartition("-")[0] for name in names)
        changed_us = {topic: cluster.topic_config_changed_us(topic) for topic in topics}
        for name in names if any(changed_us.values()) else ():
            earlier = [
                (until_us, self._settings_of((name,), partial(cluster.topic_config_at, at_us=until_us))[name])
                for until_us in changed_us[name.rpartition("-")[0]]
            ]
            if earlier:
                settings[name] = replace(settings[name], earlier=tuple(earlier))
        return settings

    def _settings_of(
        self, names: Collection[str], config: Callable[[str, int], TopicConfig]
    ) -> dict[str, PartitionSettings]:
        cluster = self.cluster
        return partition_settings(
            *(cluster.spec, names, cluster.replicas_of, config),
            allows_unclean_election=cluster.behaviours.allows_unclean_election(cluster.metadata),
        )
