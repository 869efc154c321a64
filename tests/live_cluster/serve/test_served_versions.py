"""A served cluster supports the versions of requests that brokers of its release support."""

from collections.abc import Callable
from itertools import product
from typing import Any, Final

import pytest
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

from harrow.cluster_model import errors
from harrow.cluster_model.release.profiles import RELEASES
from harrow.live_cluster.serve.served_versions import (
    api_name,
    broker_versions,
    known_versions,
    served_versions,
)
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError
from harrow.live_cluster.wire.errors import error_code
from tests.live_cluster.serve.test_served_run import run_with

CLUSTER: Final = """
name: versions
kafka: "{}"
cluster: {{brokers: 1, topics: [{{name: t}}]}}
workload: {{producers: [{{name: unused}}], duration: 10s}}
"""
GROUP_PROTOCOL: Final = b"\x00\x00\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x00"
"""A subscription to the topic t."""


def use(release: str, client: Callable[[BrokerConnection], None]) -> None:
    """Run a client with a connection to the only broker of a served cluster."""

    def connect(servers: str) -> None:
        host, _, port = servers.partition(":")
        with BrokerConnection((host, int(port))) as connection:
            client(connection)

    # A group waits for more members at first (group.initial.rebalance.delay.ms).
    run_with(CLUSTER.format(release), connect, time_scale=10)


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
        fetched = FetchRequest.FetchTopic
        for version in versions_of(FetchRequest, release):
            part = fetched.FetchPartition(
                partition=0, fetch_offset=0, partition_max_bytes=100, current_leader_epoch=-1
            )
            answer = connection.ask(
                FetchRequest[version](
                    max_wait_ms=1, min_bytes=1, max_bytes=100, topics=[fetched(topic="t", partitions=[part])]
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


def joined(connection: BrokerConnection, version: int) -> Any:
    """Join the group g and return the response to the member that is in it."""
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=GROUP_PROTOCOL)
    values = {"group_id": "g", "session_timeout_ms": 300_000, "protocol_type": "consumer"}
    request = JoinGroupRequest[version]
    answer = connection.ask(request(**values, member_id="", protocols=[protocol]))
    if answer.error_code == error_code(errors.MEMBER_ID_REQUIRED):
        answer = connection.ask(request(**values, member_id=answer.member_id, protocols=[protocol]))
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
            synced = connection.ask(SyncGroupRequest[sync](**member_now, assignments=[assignment]))
            assert (synced.error_code, bytes(synced.assignment)) == (0, b"all")
            assert connection.ask(HeartbeatRequest[beat](**member_now)).error_code == 0
            left = connection.ask(LeaveGroupRequest[leave](**member, members=[leaver]))
            assert left.error_code == 0
        for version in versions_of(FindCoordinatorRequest, release):
            found = connection.ask(FindCoordinatorRequest[version](key="g", key_type=0))
            assert (found.error_code, found.port) == (0, connection.address[1])

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
        committed = OffsetCommitRequest.OffsetCommitRequestTopic
        for offset, version in enumerate(versions_of(OffsetCommitRequest, release)):
            part = committed.OffsetCommitRequestPartition(
                partition_index=0,
                committed_offset=offset,
                committed_metadata="note",
                committed_leader_epoch=3,
            )
            topics = [committed(name="t", partitions=[part])]
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
            of_group = group(
                group_id="g", topics=[group.OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
            )
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
