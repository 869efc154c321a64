"""A served cluster supports the versions of requests that brokers of its release support."""

import struct
import time
from collections.abc import Callable
from itertools import product
from typing import Any, Final
from uuid import UUID

import pytest
from kafka.protocol.admin import (
    AlterReplicaLogDirsRequest,
    CreateAclsRequest,
    DeleteAclsRequest,
    DescribeAclsRequest,
    DescribeLogDirsRequest,
    ListConfigResourcesRequest,
)
from kafka.protocol.consumer import (
    FetchRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListOffsetsRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetForLeaderEpochRequest,
    SyncGroupRequest,
)
from kafka.protocol.metadata import ApiVersionsRequest, FindCoordinatorRequest, MetadataRequest
from kafka.protocol.producer import ProduceRequest

from harrow.cluster_model import errors
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.cluster_model.release.profiles import RELEASES
from harrow.live_cluster.serve.answers.served_versions import (
    api_name,
    broker_versions,
    known_versions,
    served_versions,
)
from harrow.live_cluster.wire.client_requests import read_request
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError
from harrow.live_cluster.wire.errors import error_code, error_name
from harrow.live_cluster.wire.stored_batches import encoded
from tests.live_cluster.serve.test_served_run import run_with
from tests.patience import PATIENCE_S

CLUSTER: Final = """
name: versions
kafka: "{}"
cluster: {{brokers: 1, topics: [{{name: t}}]}}
workload: {{producers: [{{name: unused}}], duration: 10s}}
"""
TWO_DIRS: Final = CLUSTER.replace("brokers: 1", "brokers: 1, disk: {{log_dirs: 2}}")
_METADATA_WITH_IDS: Final = 10
_SEVERAL_COORDINATORS: Final = 4
_TWO_BROKERS: Final = "brokers: 2, topics: [{{name: t, replication_factor: 2}}]"
GROUP_PROTOCOL: Final = b"\x00\x00\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x00"
"""A subscription to the topic t."""


def use(release: str, client: Callable[[BrokerConnection], None]) -> None:
    """Run a client with a connection to the only broker of a served cluster."""

    use_campaign(CLUSTER.format(release), client)


def use_campaign(campaign: str, client: Callable[[BrokerConnection], None]) -> None:
    def connect(servers: str) -> None:
        host, _, port = servers.partition(":")
        with BrokerConnection((host, int(port))) as connection:
            client(connection)

    # A group waits for more members at first (group.initial.rebalance.delay.ms).
    run_with(campaign, connect, time_scale=10)


@pytest.mark.parametrize("release", RELEASES)
def test_no_version_is_served_that_brokers_lack_if_harrow_knows_one_that_they_have(release: str) -> None:
    known = known_versions()
    for key, (low, high) in served_versions(release).items():
        own_low, own_high = broker_versions()[release][api_name(key)]
        assert known[key][0] <= low <= high <= known[key][1]
        if known[key][0] <= own_high:
            assert own_low <= low <= high <= own_high


@pytest.mark.parametrize("release", RELEASES)
def test_the_answer_to_api_versions_has_the_versions_of_the_release(release: str) -> None:
    def ask(connection: BrokerConnection) -> None:
        answer = connection.ask(ApiVersionsRequest[0]())
        versions = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
        assert versions == served_versions(release)

    use(release, ask)


def test_a_request_of_an_unknown_version_still_names_its_client() -> None:
    """Clients ask for ApiVersions in their own newest version first."""
    frame = struct.pack(">hhih3s", ApiVersionsRequest.API_KEY, 99, 1, 3, b"app")
    assert [read_request(frame[:end]).client_id for end in (8, 9, len(frame))] == ["", "", "app"]


def test_a_version_that_the_release_lacks_ends_the_connection() -> None:
    def ask(connection: BrokerConnection) -> None:
        assert connection.ask(MetadataRequest[6](topics=None, allow_auto_topic_creation=False)).topics
        with pytest.raises(ConnectionLostError):
            connection.ask(MetadataRequest[7](topics=None, allow_auto_topic_creation=False))

    use("2.0", ask)


def versions_of(request: Any, release: str) -> range:
    low, high = served_versions(release)[request.API_KEY]
    return range(low, high + 1)


@pytest.mark.parametrize("release", ["0.10.2", "4.3"])
def test_metadata_lists_all_topics_in_every_version(release: str) -> None:
    def ask(connection: BrokerConnection) -> None:
        for version in versions_of(MetadataRequest, release):
            topics: list[Any] | None = None if version else []
            answer = connection.ask(MetadataRequest[version](topics=topics, allow_auto_topic_creation=False))
            assert "t" in [topic.name for topic in answer.topics]

    use(release, ask)


@pytest.mark.parametrize("release", ["1.1", "4.3"])
def test_the_logs_of_a_broker_are_described_in_every_version(release: str) -> None:
    def ask(connection: BrokerConnection) -> None:
        named = DescribeLogDirsRequest.DescribableLogDirTopic
        for version in versions_of(DescribeLogDirsRequest, release):
            for topics in (None, [named(topic="t", partitions=[0])]):
                answer = connection.ask(DescribeLogDirsRequest[version](topics=topics))
                (log_dir,) = answer.results
                (topic,) = [each for each in log_dir.topics if not each.name.startswith("__")]
                (partition,) = topic.partitions
                assert (log_dir.error_code, topic.name, partition.partition_index) == (0, "t", 0)
                assert (partition.partition_size, partition.offset_lag) == (0, 0)

    use(release, ask)


def moved(
    connection: BrokerConnection, path: str, topic: str = "t", *, number: int = 0, version: int = 2
) -> str:
    """Ask for a replica to move to a log directory, and return the error."""
    kind = AlterReplicaLogDirsRequest.AlterReplicaLogDir
    named = kind.AlterReplicaLogDirTopic(name=topic, partitions=[number])
    request = AlterReplicaLogDirsRequest[version](dirs=[kind(path=path, topics=[named])])
    (result,) = connection.ask(request).results
    (partition,) = result.partitions
    assert (result.topic_name, partition.partition_index) == (topic, number)
    return error_name(partition.error_code)


def test_a_replica_moves_to_another_log_directory() -> None:
    def ask(connection: BrokerConnection) -> None:
        def place() -> str:
            answer = connection.ask(DescribeLogDirsRequest[4](topics=None))
            (log_dir,) = [each for each in answer.results if "t" in [topic.name for topic in each.topics]]
            return str(log_dir.log_dir)

        here = place()
        (there,) = {"/broker-0/log-dir-0", "/broker-0/log-dir-1"} - {here}
        for version, path in ((2, here), (1, there), (1, here), (2, there)):
            assert moved(connection, path, version=version) == errors.NONE
            assert place() == path
        assert moved(connection, "/elsewhere") == "LOG_DIR_NOT_FOUND"
        assert moved(connection, here, "unknown") == errors.UNKNOWN_TOPIC_OR_PARTITION
        assert moved(connection, here, number=-1) == errors.UNKNOWN_TOPIC_OR_PARTITION
        assert place() == there

    use_campaign(TWO_DIRS.format("4.3"), ask)


def test_no_replica_moves_to_a_failed_log_directory() -> None:
    def ask(connection: BrokerConnection) -> None:
        assert moved(connection, "/broker-0/log-dir-0") == errors.NONE
        assert moved(connection, "/broker-0/log-dir-1") == errors.KAFKA_STORAGE_ERROR

    failure = "faults: [{at: 1ms, do: {log_dir_failure: {broker: 0, log_dir: 1}}}]"
    use_campaign(TWO_DIRS.format("4.3") + failure, ask)


def test_the_crash_of_a_broker_ends_connections_that_only_the_server_has_answered() -> None:
    def ask(connection: BrokerConnection) -> None:
        deadline = time.monotonic() + PATIENCE_S

        def ask_again_and_again() -> None:
            while time.monotonic() < deadline:
                assert moved(connection, "/broker-0/log-dir-0") == errors.NONE

        with pytest.raises(ConnectionLostError):
            ask_again_and_again()

    crash = "faults: [{at: 2s, do: {broker_crash: {broker: 0, restart_after: 60s}}}]"
    use_campaign(TWO_DIRS.format("4.3") + crash, ask)


@pytest.mark.parametrize("release", ["0.11", "4.3"])
def test_requests_about_acls_are_refused_as_by_brokers_without_an_authorizer(release: str) -> None:
    disabled = error_code("SECURITY_DISABLED")
    acl = {"operation": 3, "permission_type": 3, "resource_type": 2, "principal": "User:a", "host": "*"}
    create, delete = CreateAclsRequest.AclCreation, DeleteAclsRequest.DeleteAclsFilter
    matching = {"resource_type_filter": 2, "operation": 3, "permission_type": 3}

    def ask(connection: BrokerConnection) -> None:
        for version in versions_of(CreateAclsRequest, release):
            creations = [create(resource_name="t", **acl)] * 2
            created = connection.ask(CreateAclsRequest[version](creations=creations)).results
            assert [result.error_code for result in created] == [disabled] * 2
            deleted = connection.ask(DeleteAclsRequest[version](filters=[delete(**matching)]))
            assert [result.error_code for result in deleted.filter_results] == [disabled]
            assert connection.ask(DescribeAclsRequest[version](**matching)).error_code == disabled

    use(release, ask)


def test_what_has_settings_is_listed_by_its_type() -> None:
    def ask(connection: BrokerConnection) -> None:
        def resources(version: int, *types: int) -> tuple[int, set[tuple[str, int]]]:
            fields = {"resource_types": list(types)} if version else {}
            answer = connection.ask(ListConfigResourcesRequest[version](**fields))
            named = {(each.resource_name, each.resource_type) for each in answer.config_resources}
            return answer.error_code, {pair for pair in named if not pair[0].startswith("__")}

        assert resources(0) == (0, set())
        assert resources(1, 2) == (0, {("t", 2)})
        assert resources(1, 4, 16) == (0, {("0", 4)})
        assert resources(1) == (0, {("t", 2), ("0", 4), ("0", 8)})
        assert resources(1, 1) == (error_code(errors.UNSUPPORTED_VERSION), set())

    use("4.3", ask)


def id_of(connection: BrokerConnection, topic: str, release: str) -> UUID | None:
    """Return the id of a topic; None if the release has no ids (KIP-516)."""
    version = versions_of(MetadataRequest, release)[-1]
    if version < _METADATA_WITH_IDS:
        return None
    asked = [MetadataRequest.MetadataRequestTopic(name=topic, topic_id=None)]
    [described] = connection.ask(MetadataRequest[version](topics=asked)).topics
    assert isinstance(described.topic_id, UUID)
    return described.topic_id


@pytest.mark.parametrize("release", ["0.10.2", "4.3"])
def test_records_are_looked_up_and_fetched_in_every_version(release: str) -> None:
    def ask(connection: BrokerConnection) -> None:
        listed = ListOffsetsRequest.ListOffsetsTopic
        # kafka-python 3.0 has the id of a broker in its request.
        for version, replica in product(versions_of(ListOffsetsRequest, release), (-1, 0)):
            partition = listed.ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=-1)
            request = ListOffsetsRequest[version](
                replica_id=replica, isolation_level=0, topics=[listed(name="t", partitions=[partition])]
            )
            [topic] = connection.ask(request).topics
            assert (topic.partitions[0].error_code, topic.partitions[0].offset) == (0, 0)
        fetched, topic_id = FetchRequest.FetchTopic, id_of(connection, "t", release)
        for version in versions_of(FetchRequest, release):
            part = fetched.FetchPartition(
                partition=0, fetch_offset=0, partition_max_bytes=100, current_leader_epoch=-1
            )
            answer = connection.ask(
                FetchRequest[version](
                    max_wait_ms=1,
                    min_bytes=1,
                    max_bytes=100,
                    topics=[fetched(topic="t", topic_id=topic_id, partitions=[part])],
                )
            )
            assert answer.responses[0].partitions[0].error_code == 0

    use(release, ask)


def test_the_end_of_an_epoch_is_found_in_every_version() -> None:
    def ask(connection: BrokerConnection) -> None:
        asked = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
        for version in versions_of(OffsetForLeaderEpochRequest, "4.3"):
            part = asked.OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=0)
            topics = [asked(topic="t", partitions=[part])]
            answer = connection.ask(OffsetForLeaderEpochRequest[version](replica_id=-1, topics=topics))
            found = answer.topics[0].partitions[0]
            assert (found.error_code, found.leader_epoch, found.end_offset) == (0, 0, 0)

    use("4.3", ask)


def join(version: int, member: str = "", protocol_type: str = "consumer") -> Any:
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=GROUP_PROTOCOL)
    values = {"group_id": "g", "session_timeout_ms": 300_000, "protocol_type": protocol_type}
    return JoinGroupRequest[version](**values, member_id=member, protocols=[protocol])


def joined(connection: BrokerConnection, version: int) -> Any:
    """Join the group g and return the response to the member that is in it."""
    answer = connection.ask(join(version))
    if answer.error_code == error_code(errors.MEMBER_ID_REQUIRED):
        answer = connection.ask(join(version, answer.member_id))
    assert answer.error_code == 0
    return answer


@pytest.mark.parametrize("release", ["0.10.2", "4.3"])
def test_a_member_joins_and_leaves_in_every_version(release: str) -> None:
    def ask(connection: BrokerConnection) -> None:
        for version in versions_of(JoinGroupRequest, release):
            answer = joined(connection, version)
            member = {"group_id": "g", "member_id": answer.member_id}
            leaver = LeaveGroupRequest.MemberIdentity(member_id=answer.member_id)
            sync, beat, leave = (
                min(version, versions_of(kind, release)[-1])
                for kind in (SyncGroupRequest, HeartbeatRequest, LeaveGroupRequest)
            )
            member_now = {**member, "generation_id": answer.generation_id}
            assignment = SyncGroupRequest.SyncGroupRequestAssignment(
                member_id=answer.member_id, assignment=b"all"
            )
            protocol = {"protocol_type": "consumer", "protocol_name": "range"} if sync >= 5 else {}
            request = SyncGroupRequest[sync](**member_now, **protocol, assignments=[assignment])
            synced = connection.ask(request)
            assert (synced.error_code, bytes(synced.assignment)) == (0, b"all")
            assert connection.ask(HeartbeatRequest[beat](**member_now)).error_code == 0
            left = connection.ask(LeaveGroupRequest[leave](**member, members=[leaver]))
            assert left.error_code == 0
        for version in versions_of(FindCoordinatorRequest, release):
            found = connection.ask(
                FindCoordinatorRequest[version](key="g", key_type=0, coordinator_keys=["g", "h", "g"])
            )
            if version >= _SEVERAL_COORDINATORS:
                assert [each.key for each in found.coordinators] == ["g", "h", "g"]
            for each in found.coordinators or (found,):
                assert (each.error_code, each.port) == (0, connection.address[1])

    use(release, ask)


def test_requests_before_version_4_join_without_a_second_request() -> None:
    def ask(connection: BrokerConnection) -> None:
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=GROUP_PROTOCOL)
        values = {"group_id": "g", "session_timeout_ms": 300_000, "protocol_type": "consumer"}
        for version, error in ((3, errors.NONE), (4, errors.MEMBER_ID_REQUIRED)):
            answer = connection.ask(JoinGroupRequest[version](**values, member_id="", protocols=[protocol]))
            assert answer.error_code == error_code(error)
            leave = LeaveGroupRequest[0](group_id="g", member_id=answer.member_id)
            assert connection.ask(leave).error_code == 0

    use("4.3", ask)


@pytest.mark.parametrize("release", ["0.10.2", "4.3"])
def test_a_committed_offset_is_fetched_in_every_version(release: str) -> None:
    def ask(connection: BrokerConnection) -> None:
        committed, topic_id = OffsetCommitRequest.OffsetCommitRequestTopic, id_of(connection, "t", release)
        for offset, version in enumerate(versions_of(OffsetCommitRequest, release)):
            part = committed.OffsetCommitRequestPartition(
                partition_index=0,
                committed_offset=offset,
                committed_metadata="note",
                committed_leader_epoch=3,
            )
            topics = [committed(name="t", topic_id=topic_id, partitions=[part])]
            request = OffsetCommitRequest[version](
                group_id="g", generation_id_or_member_epoch=-1, member_id="", topics=topics
            )
            [topic] = connection.ask(request).topics
            assert topic.partitions[0].error_code == 0
        fetched, group = (
            OffsetFetchRequest.OffsetFetchRequestTopic,
            OffsetFetchRequest.OffsetFetchRequestGroup,
        )
        named: Any = [fetched(name="t", partition_indexes=[0])]
        for version in versions_of(OffsetFetchRequest, release):
            asked_topic = group.OffsetFetchRequestTopics(name="t", topic_id=topic_id, partition_indexes=[0])
            of_group = group(group_id="g", topics=[asked_topic])
            every = group(group_id="g", topics=None)
            # Version 1 cannot ask for all partitions.
            asked = [(named, of_group), (None, every)][: 2 if version > 1 else 1]
            for names, of_one in asked:
                answer = connection.ask(
                    OffsetFetchRequest[version](group_id="g", topics=names, groups=[of_one])
                )
                [topic] = answer.topics if version < 8 else answer.groups[0].topics
                assert version < 8 or answer.groups[0].group_id == "g"
                found = topic.partitions[0]
                assert (found.committed_offset, found.metadata) == (offset, "note")
                assert found.committed_leader_epoch == (3 if version >= 5 else -1)

    use(release, ask)


def test_a_member_learns_the_protocol_of_its_group() -> None:
    def ask(connection: BrokerConnection) -> None:
        answer = joined(connection, 9)
        assert answer.protocol_type == "consumer"
        sync = SyncGroupRequest[5](
            group_id="g",
            member_id=answer.member_id,
            generation_id=answer.generation_id,
            protocol_type="consumer",
            protocol_name=answer.protocol_name,
            assignments=[],
        )
        synced = connection.ask(sync)
        assert (synced.protocol_type, synced.protocol_name) == ("consumer", "range")

    use("4.3", ask)


def test_a_member_that_names_another_protocol_than_its_groups_is_refused() -> None:
    """See ``validateSyncGroup`` and ``GroupMetadata.supportsProtocols`` (KIP-559)."""

    def ask(connection: BrokerConnection) -> None:
        answer = joined(connection, 9)
        member = {"group_id": "g", "member_id": answer.member_id, "generation_id": answer.generation_id}

        def sync(kind: str, name: str) -> str:
            request = SyncGroupRequest[5](protocol_type=kind, protocol_name=name, assignments=[], **member)
            return error_name(connection.ask(request).error_code)

        assert sync("connect", "range") == "INCONSISTENT_GROUP_PROTOCOL"
        assert sync("consumer", "roundrobin") == "INCONSISTENT_GROUP_PROTOCOL"
        assert sync("consumer", "range") == "NONE"
        other = join(9, protocol_type="connect")
        assert error_name(connection.ask(other).error_code) == "INCONSISTENT_GROUP_PROTOCOL"

    use("4.3", ask)


@pytest.mark.parametrize("version", [3, 4, 6])
def test_there_is_no_coordinator_of_another_kind(version: int) -> None:
    def ask(connection: BrokerConnection) -> None:
        found = connection.ask(FindCoordinatorRequest[version](key="g", key_type=2, coordinator_keys=["g"]))
        each = found.coordinators[0] if found.coordinators else found
        assert error_name(each.error_code) == errors.INVALID_REQUEST

    use("4.3", ask)


def test_no_keys_have_no_coordinators() -> None:
    def ask(connection: BrokerConnection) -> None:
        assert connection.ask(FindCoordinatorRequest[6](key_type=0, coordinator_keys=[])).coordinators == []

    use("4.3", ask)


@pytest.mark.parametrize(
    ("version", "timestamp", "error"),
    [
        (8, -4, errors.NONE),
        (8, -5, "UNSUPPORTED_VERSION"),
        (9, -5, errors.NONE),
        (10, -6, "UNSUPPORTED_VERSION"),
        (11, -6, errors.NONE),
        (11, -7, "UNSUPPORTED_VERSION"),
    ],
)
def test_a_special_timestamp_needs_its_version_of_list_offsets(
    version: int, timestamp: int, error: str
) -> None:
    """All records are local. So the earliest of them is the first, and there are no others."""

    def ask(connection: BrokerConnection) -> None:
        listed = ListOffsetsRequest.ListOffsetsTopic
        partition = listed.ListOffsetsPartition(
            partition_index=0, current_leader_epoch=-1, timestamp=timestamp
        )
        request = ListOffsetsRequest[version](
            replica_id=-1, isolation_level=0, topics=[listed(name="t", partitions=[partition])]
        )
        [topic] = connection.ask(request).topics
        found = topic.partitions[0]
        assert (error_name(found.error_code), found.offset) == (error, 0 if timestamp == -4 else -1)

    use("4.3", ask)


@pytest.mark.parametrize(("version", "names_leader"), [(9, False), (10, True), (12, True)])
def test_a_broker_names_the_leader_that_has_replaced_it(version: int, names_leader: bool) -> None:
    """A client of version 10 of Produce goes to the new leader at once (KIP-951)."""

    def connect(servers: str) -> None:
        host, _, port = servers.split(",", maxsplit=1)[0].partition(":")
        with BrokerConnection((host, int(port))) as first:
            described = first.ask(MetadataRequest[9](topics=None, allow_auto_topic_creation=False))
            [leader] = [each.partitions[0].leader_id for each in described.topics if not each.is_internal]
            addresses = {each.node_id: (each.host, each.port) for each in described.brokers}
        with BrokerConnection(addresses[1 - leader]) as other:
            topic = ProduceRequest.TopicProduceData
            part = topic.PartitionProduceData(index=0, records=encoded(RecordBatch(("a",)), 0))
            answer = other.ask(
                ProduceRequest[version](
                    acks=-1, timeout_ms=1_000, topic_data=[topic(name="t", partition_data=[part])]
                )
            )
        [refused] = answer.responses[0].partition_responses
        assert error_name(refused.error_code) == errors.NOT_LEADER_FOR_PARTITION
        endpoints = [(each.node_id, each.host, each.port) for each in answer.node_endpoints or ()]
        if names_leader:
            assert refused.current_leader.leader_id == leader
            assert endpoints == [(leader, *addresses[leader])]
        else:
            assert not endpoints

    two_brokers = CLUSTER.replace("brokers: 1, topics: [{{name: t}}]", _TWO_BROKERS)
    run_with(two_brokers.format("4.3"), connect, time_scale=10)
