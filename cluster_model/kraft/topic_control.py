"""Creates, changes and deletes topics in KRaft (``ReplicationControlManager.java``).

Each method returns the records of a request and its answer, as the controller's other handlers do.
"""

from collections.abc import Callable, Iterable

from harrow.cluster_model import errors
from harrow.cluster_model.controller import administration
from harrow.cluster_model.controller.administration import Outcome, RefusedError
from harrow.cluster_model.controller.new_topics import (
    Assignment,
    ConfiguredTopics,
    ExcessiveRequestError,
    KnownBrokers,
    RecordBudget,
    added_assignment,
    planned_topics,
)
from harrow.cluster_model.controller.setting_changes import (
    changed_broker_settings,
    changed_settings,
    check_changes,
)
from harrow.cluster_model.kraft.cluster_image import ClusterImage
from harrow.cluster_model.kraft.records import (
    MetadataRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicSettingsRecord,
)
from harrow.cluster_model.settings import MIN_ISR, BrokerConfig
from harrow.cluster_model.topic_settings import ALL_BROKERS, Settings, is_of_brokers
from harrow.cluster_model.topology import INTERNAL_TOPICS

Records = tuple[MetadataRecord, ...]


class TopicControl:
    """The requests of administrators about topics, on the active controller.

    *image* returns the controller's metadata. *new_partition* returns the record of a partition
    with these replicas.
    """

    def __init__(
        self,
        image: Callable[[], ClusterImage],
        topics: ConfiguredTopics,
        config: BrokerConfig,
        new_partition: Callable[[str, tuple[int, ...]], PartitionRecord],
        *,
        has_elr: bool,
    ) -> None:
        self._has_elr = has_elr
        self._image = image
        self._topics = topics
        self._config = config
        self._new_partition = new_partition

    def create_topics(
        self, request: administration.CreateTopicsRequest
    ) -> tuple[Records, administration.CreateTopicsResponse]:
        """Create those topics of a request that are valid (``createTopics``)."""
        image = self._image()
        try:
            plan, outcomes = planned_topics(
                *(request.topics, image.topics(), self._brokers(), self._config, self._topics.release),
                image.removed_topics,
            )
        except ExcessiveRequestError:
            return (), request.refused(errors.POLICY_VIOLATION)
        records: list[MetadataRecord] = []
        for topic in () if request.validate_only else plan:
            if topic.settings:
                records.append(TopicSettingsRecord(topic.name, tuple(topic.settings.items())))
            records += self._partitions(topic.name, 0, topic.assignment)
        return tuple(records), administration.CreateTopicsResponse(outcomes)

    def _partitions(self, topic: str, first: int, assignment: Assignment) -> list[PartitionRecord]:
        return [
            self._new_partition(f"{topic}-{first + place}", replicas)
            for place, replicas in enumerate(assignment)
        ]

    def _brokers(self) -> KnownBrokers:
        image = self._image()
        return KnownBrokers(tuple(sorted(image.brokers)), tuple(sorted(image.active())), self._topics.racks)

    def create_partitions(
        self, request: administration.CreatePartitionsRequest
    ) -> tuple[Records, administration.CreatePartitionsResponse]:
        """Add partitions to topics (``createPartitions``)."""
        image, budget = self._image(), RecordBudget()
        records: list[MetadataRecord] = []
        answers: dict[str, Outcome] = {}
        for topic, requested in request.topics.items():
            try:
                count = self._count(topic)
                replicas = [image.partitions[f"{topic}-{number}"].replicas for number in range(count)]
                added = added_assignment(replicas, requested, self._brokers(), budget)
            except RefusedError as refused:
                answers[topic] = (refused.error, refused.message)
                continue
            except ExcessiveRequestError:
                return (), request.refused(errors.POLICY_VIOLATION)
            answers[topic] = administration.SUCCESS
            records += [] if request.validate_only else self._partitions(topic, count, added)
        return tuple(records), administration.CreatePartitionsResponse(answers)

    def delete_topics(
        self, request: administration.DeleteTopicsRequest
    ) -> tuple[Records, administration.DeleteTopicsResponse]:
        """Delete topics (``deleteTopics``). harrow keeps the topics of coordinators."""
        records: dict[str, MetadataRecord] = {}
        answers: dict[str, Outcome] = {}
        for topic in request.topics:
            try:
                records[topic] = self._deletable(topic)
            except RefusedError as refused:
                answers[topic] = (refused.error, refused.message)
            else:
                answers[topic] = administration.SUCCESS
        return tuple(records.values()), administration.DeleteTopicsResponse(answers)

    def _count(self, topic: str) -> int:
        """Return the number of partitions of a topic."""
        count = self._image().topics().get(topic)
        if count is None:
            raise RefusedError(errors.UNKNOWN_TOPIC_OR_PARTITION, "there is no such topic")
        return count

    def _deletable(self, topic: str) -> RemoveTopicRecord:
        count = self._count(topic)
        if topic in INTERNAL_TOPICS:
            raise RefusedError(errors.INVALID_REQUEST, "harrow does not delete internal topics")
        return RemoveTopicRecord(topic, count)

    def alter_settings(
        self, request: administration.AlterTopicSettingsRequest
    ) -> tuple[Records, administration.AlterTopicSettingsResponse]:
        """Change settings (``ConfigurationControlManager.incrementalAlterConfigs``)."""
        records: list[MetadataRecord] = []
        answers: dict[str, Outcome] = {}
        for topic, changes in request.changes.items():
            try:
                check_changes(changes)
                before = {} if request.replaces else self.settings(topic)
                if is_of_brokers(topic):
                    settings = changed_broker_settings(before, changes, self._topics.release)
                    self._check_min_isr(topic, changes, replaces=request.replaces)
                else:
                    self._count(topic)
                    settings = changed_settings(before, changes, self._topics.release)
            except RefusedError as refused:
                answers[topic] = (refused.error, refused.message)
                continue
            answers[topic] = administration.SUCCESS
            if not request.validate_only:
                records.append(TopicSettingsRecord(topic, tuple(settings.items())))
        return tuple(records), administration.AlterTopicSettingsResponse(answers)

    def _check_min_isr(
        self, brokers: str, changes: Iterable[tuple[str, int, str | None]], *, replaces: bool
    ) -> None:
        """Refuse to give brokers different minima of the ISR in a cluster with ELRs (KIP-966).

        A request that replaces all settings removes those that it does not have.
        """
        if not self._has_elr:
            return
        operations = {name: operation for name, operation, _ in changes}
        if brokers != ALL_BROKERS and MIN_ISR in operations:
            text = f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled."
            raise RefusedError(errors.INVALID_CONFIG, text)
        unnamed = administration.DELETE if replaces else administration.SET
        if brokers == ALL_BROKERS and operations.get(MIN_ISR, unnamed) == administration.DELETE:
            text = f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled."
            raise RefusedError(errors.INVALID_CONFIG, text)

    def settings(self, topic: str) -> Settings:
        """Return the settings of a topic, from administrators or from the campaign."""
        return self._image().topic_settings.get(topic, self._topics.settings.get(topic, {}))
