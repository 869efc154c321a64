"""Handles administrators' requests on the controller with ZooKeeper (``ZkAdminManager.scala``).

In Kafka, another thread of the broker writes topics and settings to ZooKeeper, and the controller
notices. Here the controller does both in one event. A deleted topic is gone as soon as the
controller has told all live brokers to delete their replicas: Kafka's waits for dead ones.
"""

from collections.abc import Generator, Mapping
from typing import Any, Final

from harrow.cluster_model import errors
from harrow.cluster_model.controller import administration
from harrow.cluster_model.controller.administration import (
    SUCCESS,
    AdministrationRequest,
    Outcome,
    RefusedError,
)
from harrow.cluster_model.controller.control_plane import PREFERRED_LEADER, UNCLEAN_BY_ADMINISTRATOR
from harrow.cluster_model.controller.new_topics import (
    Assignment,
    ConfiguredTopics,
    ExcessiveRequestError,
    KnownBrokers,
    RecordBudget,
    added_assignment,
    planned_topics,
)
from harrow.cluster_model.controller.setting_changes import changed_settings, check_changes
from harrow.cluster_model.events import PartitionDeleted, ReplicasAssigned
from harrow.cluster_model.protocol import (
    LEADER_DURING_DELETE,
    LeaderAndIsr,
    LeaderAndIsrPartitionState,
    ReplicaAssignment,
)
from harrow.cluster_model.settings import BrokerConfig
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.topic_settings import Settings
from harrow.cluster_model.topology import INTERNAL_TOPICS
from harrow.cluster_model.zookeeper.controller.controller_channel import (
    ControllerChannelManager,
    RequestBatch,
)
from harrow.cluster_model.zookeeper.controller.controller_context import ControllerContext
from harrow.cluster_model.zookeeper.controller.partition_reassignment import PartitionReassignments
from harrow.cluster_model.zookeeper.controller.partition_state_machine import (
    PREFERRED,
    UNCLEAN,
    PartitionStateMachine,
    Processing,
    Submission,
)
from harrow.cluster_model.zookeeper.service import protocol as zk

Handling = Generator[Submission, zk.ZooKeeperResponse, Any]
"""Yields submissions to ZooKeeper, receives the responses, and returns the answer of a request."""

_EXCESSIVE: Final = errors.POLICY_VIOLATION
"""The request creates too many partitions: harrow's limit, as a KRaft controller has one."""
_UNSUPPORTED: Final = errors.UNSUPPORTED_VERSION


class ControllerAdministration:
    """The administrators' requests of one controller's term."""

    def __init__(
        self,
        broker: int,
        host: Host,
        context: ControllerContext,
        channels: ControllerChannelManager,
        partitions: PartitionStateMachine,
        reassignments: PartitionReassignments,
        topics: ConfiguredTopics,
        config: BrokerConfig,
    ) -> None:
        self._broker = broker
        self._host = host
        self._context = context
        self._channels = channels
        self._partitions = partitions
        self._reassignments = reassignments
        self._topics = topics
        self._config = config

    def handle(self, request: AdministrationRequest) -> Handling:
        """Handle a request as one event of the controller."""
        if isinstance(request, administration.CreateTopicsRequest):
            answer = yield from self._create_topics(request)
        elif isinstance(request, administration.CreatePartitionsRequest):
            answer = yield from self._create_partitions(request)
        elif isinstance(request, administration.DeleteTopicsRequest):
            answer = yield from self._delete_topics(request)
        elif isinstance(request, administration.AlterTopicSettingsRequest):
            answer = yield from self._alter_settings(request)
        elif isinstance(request, administration.ElectLeadersRequest):
            answer = yield from self._elect_leaders(request)
        elif isinstance(request, administration.AlterPartitionReassignmentsRequest):
            answer = yield from self._reassign(request)
        elif isinstance(request, administration.ListPartitionReassignmentsRequest):
            answer = self._list_reassignments(request)
        else:
            answer = request.refused(_UNSUPPORTED)
        return answer

    # Topics

    def _brokers(self) -> KnownBrokers:
        active = tuple(sorted(self._context.can_lead()))
        return KnownBrokers(self._context.live(), active, self._topics.racks)

    def _create_topics(self, request: administration.CreateTopicsRequest) -> Handling:
        try:
            plan, outcomes = planned_topics(
                request.topics, self._context.topics, self._brokers(), self._config, self._topics.release
            )
        except ExcessiveRequestError:
            return request.refused(_EXCESSIVE)
        for topic in () if request.validate_only else plan:
            yield from self._create(topic.name, topic.assignment, topic.settings)
        return administration.CreateTopicsResponse(outcomes)

    def _create(self, topic: str, assignment: Assignment, settings: Settings) -> Processing:
        """Write the settings and the assignment, and elect leaders."""
        if settings:
            yield from self._write_settings(topic, settings)
        assigned = tuple(map(ReplicaAssignment, assignment))
        yield Submission((zk.Create(zk.topic_path(topic), assigned),), guarded=True)
        for number, replicas in enumerate(assignment):
            self._host.emit(ReplicasAssigned, f"{topic}-{number}", replicas, (), ())
        yield from self._begin(topic, assigned)

    def _begin(self, topic: str, assigned: tuple[ReplicaAssignment, ...]) -> Processing:
        """Watch a topic, and elect leaders of its new partitions."""
        yield Submission((zk.GetData(zk.topic_path(topic), watch=True),))
        self._context.add_topic(topic, assigned)
        names = (f"{topic}-{number}" for number in range(len(assigned)))
        new = [name for name in names if name not in self._context.leadership]
        yield from self._partitions.initialize_leader_and_isr(new)

    def _create_partitions(self, request: administration.CreatePartitionsRequest) -> Handling:
        budget = RecordBudget()
        answers: dict[str, Outcome] = {}
        for topic, requested in request.topics.items():
            if topic not in self._context.topics:
                answers[topic] = (errors.UNKNOWN_TOPIC_OR_PARTITION, "there is no such topic")
                continue
            existing = self._context.topic_assignment(topic)
            if any(each.is_being_reassigned for each in existing):
                answers[topic] = (errors.REASSIGNMENT_IN_PROGRESS, "a partition is being reassigned")
                continue
            try:
                replicas = [each.replicas for each in existing]
                added = added_assignment(replicas, requested, self._brokers(), budget)
            except RefusedError as refused:
                answers[topic] = (refused.error, refused.message)
                continue
            except ExcessiveRequestError:
                answers[topic] = (_EXCESSIVE, "")
                continue
            answers[topic] = SUCCESS
            if not request.validate_only:
                assigned = (*existing, *map(ReplicaAssignment, added))
                yield Submission((zk.SetData(zk.topic_path(topic), assigned),), guarded=True)
                yield from self._begin(topic, assigned)
        return administration.CreatePartitionsResponse(answers)

    def _delete_topics(self, request: administration.DeleteTopicsRequest) -> Handling:
        answers: dict[str, Outcome] = {}
        for topic in request.topics:
            if topic in INTERNAL_TOPICS:
                answers[topic] = (errors.INVALID_REQUEST, "harrow does not delete internal topics")
            elif topic not in self._context.topics:
                answers[topic] = (errors.UNKNOWN_TOPIC_OR_PARTITION, "there is no such topic")
            else:
                yield from self._delete(topic)
                answers[topic] = SUCCESS
        return administration.DeleteTopicsResponse(answers)

    def _delete(self, topic: str) -> Processing:
        """Delete a topic: its metadata, its replicas, and its znodes (``TopicDeletionManager``)."""
        context = self._context
        names = [f"{topic}-{number}" for number in range(context.topics[topic])]
        batch = RequestBatch(self._broker, context.epoch, self._channels)
        states = {name: self._deleted_state(name) for name in names}
        batch.send_update_metadata(context.live(), states, context.live())
        for name in names:
            for replica in context.assignments[name]:
                batch.add_deletion(replica, name)
        batch.send(context.live())
        path = zk.topic_path(topic)
        deletions = [zk.Delete(zk.state_path(name)) for name in names]
        deletions += [zk.Delete(f"{path}/partitions/{number}") for number in range(len(names))]
        deletions += [zk.Delete(f"{path}/partitions"), zk.Delete(path), zk.Delete(zk.config_path(topic))]
        yield Submission(tuple(deletions), guarded=True)
        context.remove_topic(topic, names)
        for name in names:
            self._host.publish(PartitionDeleted, name)

    def _deleted_state(self, partition: str) -> LeaderAndIsrPartitionState:
        context = self._context
        state = context.leadership.get(partition)
        epoch = 0 if state is None else state.leader_epoch
        leaderless = LeaderAndIsr(LEADER_DURING_DELETE, epoch, (), 0)
        return LeaderAndIsrPartitionState(context.epoch, leaderless, context.assignments[partition])

    # Settings

    def _alter_settings(self, request: administration.AlterTopicSettingsRequest) -> Handling:
        answers: dict[str, Outcome] = {}
        for topic, changes in request.changes.items():
            if topic not in self._context.topics:
                answers[topic] = (errors.UNKNOWN_TOPIC_OR_PARTITION, "there is no such topic")
                continue
            response = yield Submission((zk.GetData(zk.config_path(topic)),))
            stored = response.results[0]
            before = self._topics.settings.get(topic, {})
            if stored.error == zk.OK:
                before = dict(stored.data)
            try:
                check_changes(changes)
                settings = changed_settings({} if request.replaces else before, changes, self._topics.release)
            except RefusedError as refused:
                answers[topic] = (refused.error, refused.message)
                continue
            answers[topic] = SUCCESS
            if not request.validate_only:
                yield from self._write_settings(topic, settings)
        return administration.AlterTopicSettingsResponse(answers)

    def _write_settings(self, topic: str, settings: Settings) -> Processing:
        path, data = zk.config_path(topic), tuple(settings.items())
        yield Submission((zk.Create(path, data), zk.SetData(path, data)), guarded=True)

    # Leaders and replicas

    def _elect_leaders(self, request: administration.ElectLeadersRequest) -> Handling:
        context = self._context
        is_preferred = request.election == administration.PREFERRED
        if not is_preferred and request.election != administration.UNCLEAN:
            return request.refused(errors.INVALID_REQUEST)
        requested = tuple(context.assignments) if request.partitions is None else request.partitions
        answers = {name: (self._election_error(name, is_preferred=is_preferred), "") for name in requested}
        names = [name for name, (error, _) in answers.items() if error == errors.NONE]
        reason = PREFERRED_LEADER if is_preferred else UNCLEAN_BY_ADMINISTRATOR
        yield from self._partitions.elect_leaders(names, PREFERRED if is_preferred else UNCLEAN, reason)
        lacking = errors.PREFERRED_LEADER_NOT_AVAILABLE
        if not is_preferred:
            lacking = errors.ELIGIBLE_LEADERS_NOT_AVAILABLE
        for name in names:
            if self._election_error(name, is_preferred=is_preferred) == errors.NONE:
                answers[name] = (lacking, "")
        if request.partitions is None:
            answers = {n: each for n, each in answers.items() if each[0] != errors.ELECTION_NOT_NEEDED}
        return administration.ElectLeadersResponse(answers)

    def _election_error(self, partition: str, *, is_preferred: bool) -> str:
        context = self._context
        state = context.leadership.get(partition)
        if state is None:
            return errors.UNKNOWN_TOPIC_OR_PARTITION
        leads = partition not in context.offline_partitions and state.leader in context.live_brokers
        if is_preferred:
            leads = state.leader == context.assignments[partition][0]
        return errors.ELECTION_NOT_NEEDED if leads else errors.NONE

    def _reassign(self, request: administration.AlterPartitionReassignmentsRequest) -> Handling:
        answers: dict[str, Outcome] = {}
        for name, target in request.targets.items():
            error = self._reassignments.refusal(name, target)
            answers[name] = (error, "")
            if error == errors.NONE:
                yield from self._reassignments.alter(name, target)
        return administration.AlterPartitionReassignmentsResponse(answers)

    def _list_reassignments(
        self, request: administration.ListPartitionReassignmentsRequest
    ) -> administration.ListPartitionReassignmentsResponse:
        moving: Mapping[str, ReplicaAssignment] = self._context.changing_assignments
        requested = tuple(moving) if request.partitions is None else request.partitions
        return administration.ListPartitionReassignmentsResponse(
            {name: moving[name] for name in requested if name in moving}
        )
