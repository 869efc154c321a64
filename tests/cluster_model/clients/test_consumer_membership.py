"""A member of a group with KIP-848: its heartbeats, and its reactions to the answers."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pytest

from harrow.cluster_model import errors
from harrow.cluster_model.clients.client_metadata import ClientMetadata
from harrow.cluster_model.clients.consumer_membership import ConsumerMembership
from harrow.cluster_model.coordinators.protocol import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    FindCoordinatorResponse,
    OffsetCommitResponse,
    OffsetFetchResponse,
)
from harrow.cluster_model.protocol import MetadataResponse
from harrow.cluster_model.settings import consumer_config
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from tests.cluster_model.fakes import FakeHost

INTERVAL_US = 5 * US_PER_SECOND
POLL_US = 60 * US_PER_SECOND
HEARTBEAT = "ConsumerGroupHeartbeat"


class Application:
    """The consumer and the application of a member."""

    def __init__(
        self,
        *,
        auto_commits: bool = False,
        has_listener: bool = False,
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.host = FakeHost("app")
        settings: dict[str, Any] = {
            "group.id": "g",
            "group.protocol": "consumer",
            "max.poll.interval.ms": 60_000,
        }
        config = consumer_config("4.3", {**settings, **options})
        self.metadata = ClientMetadata(self.host, (0,), config, lambda: None)
        self.polls = True
        self.ended_us = 0
        self.offsets: dict[str, int] = {}
        self.calls: list[tuple[str, tuple[str, ...]]] = []
        self.member = ConsumerMembership(
            self.host,
            self.metadata,
            config,
            self,
            ("t",),
            subscribes=True,
            auto_commits=auto_commits,
            requires_stable=True,
            has_listener=has_listener,
        )
        self.metadata.start()
        self.host.take("Metadata").answer(MetadataResponse((0,), {"t-0": (0, 0), "t-1": (0, 0)}))
        self.member.poll()
        self.host.take("FindCoordinator").answer(FindCoordinatorResponse(errors.NONE, 0))

    # GroupListener

    def is_polling(self) -> bool:
        return self.polls

    def poll_start_us(self) -> int:
        return self.ended_us

    def poll_end_us(self) -> int:
        return self.ended_us

    def consumed_offsets(self) -> Mapping[str, int]:
        return self.offsets

    def on_partitions_revoked(self, partitions: Sequence[str], *, lost: bool) -> None:
        self.calls.append(("lost" if lost else "revoked", tuple(partitions)))

    def on_partitions_assigned(self, partitions: Sequence[str]) -> None:
        self.calls.append(("assigned", tuple(partitions)))

    def on_partitions_paused(self, partitions: Sequence[str]) -> None:
        self.calls.append(("paused", tuple(partitions)))

    def set_committed_offset(self, partition: str, offset: int) -> None: ...

    def resume_poll(self) -> None: ...

    def on_commit_started(self, offsets: Mapping[str, int]) -> None: ...

    def on_commit_ended(self, offsets: Mapping[str, int], error: str) -> None: ...

    def on_group_failed(self, error: str) -> None:
        self.calls.append((error, ()))

    # For tests

    def next_heartbeat(self) -> ConsumerGroupHeartbeatRequest:
        (sent,) = self.host.requests(HEARTBEAT)
        body: ConsumerGroupHeartbeatRequest = sent.body
        return body

    def answer(
        self, epoch: int = 1, assignment: tuple[str, ...] | None = None, error: str = errors.NONE
    ) -> None:
        response = ConsumerGroupHeartbeatResponse(error, "", epoch, INTERVAL_US, assignment)
        self.host.take(HEARTBEAT).answer(response)
        for fetch in self.host.requests("OffsetFetch"):
            if not self.host.requests(HEARTBEAT):
                self.host.sent.remove(fetch)
                fetch.answer(OffsetFetchResponse(dict.fromkeys(fetch.body.partitions, (errors.NONE, 0))))

    def join(self, *partitions: str) -> None:
        """Get partitions in epoch 1, and confirm them."""
        self.answer(1, partitions)
        self.answer(1)
        self.calls.clear()


def test_a_heartbeat_that_joins_has_all_fields() -> None:
    app = Application(options={"group.remote.assignor": "range"})
    request = app.next_heartbeat()
    assert (request.epoch, request.topics, request.owned, request.assignor) == (0, ("t",), (), "range")
    assert request.rebalance_timeout_us == POLL_US
    assert request.member.startswith("app-")


def test_a_member_confirms_its_assignment_at_once_and_then_sends_only_changes() -> None:
    app = Application()
    app.answer(1, ("t-0", "t-1"))
    assert app.calls == [("assigned", ("t-0", "t-1"))]
    ack = app.next_heartbeat()
    assert (ack.epoch, ack.owned, ack.topics, ack.rebalance_timeout_us) == (1, ("t-0", "t-1"), None, None)
    app.answer(1)
    assert not app.host.requests(HEARTBEAT)
    app.host.advance(INTERVAL_US - 1)
    assert not app.host.requests(HEARTBEAT)
    app.host.advance(1)
    heartbeat = app.next_heartbeat()
    assert (heartbeat.epoch, heartbeat.owned, heartbeat.topics) == (1, None, None)


def test_a_member_revokes_before_it_adds_partitions_and_enters_the_new_epoch_after_confirming() -> None:
    app = Application()
    app.join("t-0")
    app.host.advance(INTERVAL_US)
    app.answer(1, ("t-1",))
    assert app.calls == [("revoked", ("t-0",)), ("assigned", ("t-1",))]
    assert (app.next_heartbeat().epoch, app.next_heartbeat().owned) == (1, ("t-1",))
    app.answer(2)
    assert app.member.generation == 2


def test_auto_commit_precedes_a_revocation_and_pauses_the_revoked_partitions() -> None:
    app = Application(auto_commits=True, options={"auto.commit.interval.ms": 60_000})
    app.join("t-0", "t-1")
    app.offsets = {"t-0": 3, "t-1": 4}
    app.host.advance(INTERVAL_US)
    app.answer(1, ("t-1",))
    assert app.calls == [("paused", ("t-0",))]
    commit = app.host.take("OffsetCommit")
    assert (commit.body.offsets, commit.body.generation) == ({"t-0": 3, "t-1": 4}, 1)
    commit.answer(OffsetCommitResponse(dict.fromkeys(app.offsets, errors.STALE_MEMBER_EPOCH)))
    app.host.advance(US_PER_SECOND)
    app.host.take("OffsetCommit").answer(OffsetCommitResponse(dict.fromkeys(app.offsets, errors.NONE)))
    assert app.calls[1:] == [("revoked", ("t-0",)), ("assigned", ())]


@pytest.mark.parametrize("auto_commits", [True, False])
def test_a_reconciliation_that_involves_the_application_waits_for_its_next_poll(
    auto_commits: bool,
) -> None:
    app = Application(auto_commits=auto_commits, has_listener=not auto_commits)
    app.join("t-0", "t-1")
    app.polls = False
    app.host.advance(INTERVAL_US)
    app.answer(1, ("t-1",))
    assert not app.calls
    app.polls = True
    app.member.poll()
    assert app.calls == [("revoked", ("t-0",)), ("assigned", ())]


@pytest.mark.parametrize("error", [errors.FENCED_MEMBER_EPOCH, errors.UNKNOWN_MEMBER_ID])
def test_a_fenced_member_loses_its_partitions_and_rejoins_at_once_with_the_same_id(error: str) -> None:
    app = Application()
    name = app.next_heartbeat().member
    app.join("t-0")
    app.host.advance(INTERVAL_US)
    app.answer(error=error)
    assert app.calls == [("lost", ("t-0",))]
    request = app.next_heartbeat()
    assert (request.epoch, request.owned, request.topics, request.member) == (0, (), ("t",), name)


@pytest.mark.parametrize(
    "error", [errors.UNRELEASED_INSTANCE_ID, errors.UNSUPPORTED_ASSIGNOR, errors.UNSUPPORTED_VERSION]
)
def test_other_heartbeat_errors_end_the_application(error: str) -> None:
    app = Application()
    app.answer(error=error)
    assert app.calls == [(error, ())]
    app.host.advance(POLL_US)
    assert not app.host.requests(HEARTBEAT)


def test_a_member_that_missed_an_answer_sends_a_full_heartbeat_in_the_same_epoch() -> None:
    app = Application()
    app.join("t-0")
    app.host.advance(INTERVAL_US)
    app.host.take(HEARTBEAT).lose()
    app.host.advance(US_PER_SECOND)
    app.host.take("FindCoordinator").answer(FindCoordinatorResponse(errors.NONE, 0))
    app.host.advance(US_PER_SECOND)
    request = app.next_heartbeat()
    assert (request.epoch, request.owned, request.topics) == (1, ("t-0",), ("t",))


@pytest.mark.parametrize(("instance", "epoch"), [("", -1), ("one", -2)])
def test_a_member_that_exceeds_the_poll_interval_leaves_and_rejoins_in_its_next_poll(
    instance: str, epoch: int
) -> None:
    app = Application(options={"group.instance.id": instance})
    app.join("t-0")
    app.polls, app.ended_us = False, app.host.clock.now_us
    for _ in range(11):
        app.host.advance(INTERVAL_US)
        app.answer(1)
    app.host.advance(INTERVAL_US)
    *_, leave = app.host.requests(HEARTBEAT)
    assert (leave.body.epoch, leave.body.instance) == (epoch, instance)
    assert app.calls == [("lost", ("t-0",))]
    app.answer(epoch)
    app.host.advance(POLL_US)
    assert not app.host.requests(HEARTBEAT)
    app.polls = True
    app.member.poll()
    assert app.next_heartbeat().epoch == 0


def test_a_closing_member_revokes_its_partitions_and_waits_for_the_answer_to_its_last_heartbeat() -> None:
    app = Application()
    app.join("t-0")
    closed: list[bool] = []
    app.member.close(lambda: closed.append(True))
    assert app.calls == [("revoked", ("t-0",))]
    assert app.next_heartbeat().epoch == -1
    assert not closed
    app.answer(-1)
    assert closed


def test_the_group_metadata_has_no_member_id_before_the_member_has_joined() -> None:
    app = Application()
    assert app.member.group_metadata[1:3] == (-1, "")
    app.join("t-0")
    assert app.member.group_metadata[1:3] == (1, app.member.member)
