"""The rules of applications and groups: lost-effect, doubled-effect, rebalance-skip and
offset-regression.
"""

from dataclasses import replace
from typing import Any

import pytest

from harrow.campaigns.record.phrases import because
from harrow.checks.evidence import ApplicationSettings, ConsumerSettings, Evidence
from harrow.checks.finding import HELD, PERMITTED, VIOLATED, RuleResult
from harrow.checks.index import Index
from harrow.checks.rules.catalogue import RULES
from harrow.cluster_model.coordinators.protocol import NO_GENERATION, NO_MEMBER
from harrow.cluster_model.history import FAIL, INFO, OK
from tests.checks.evidence_builder import RunBuilder

SOURCE, TARGET = "in-0", "out-0"


class ApplicationRun:
    """A builder of a run of one application with one process at a time."""

    def __init__(self, delivery: str = "exactly_once", **settings: Any) -> None:
        self.run = RunBuilder(release=str(settings.pop("release", "3.9")))
        self.run.elect(0, 0, (0, 1), partition=SOURCE)
        self.run.elect(0, 0, (0, 1), partition=TARGET)
        self._writer = self.run.producer("shop", idempotence=True)
        self._settings = ApplicationSettings(
            name="app",
            group="g",
            delivery=delivery,
            source="in",
            target=None if delivery == "idempotent_sink" else "out",
            group_metadata=bool(settings.pop("group_metadata", True)),
            rewinds=bool(settings.pop("rewinds", True)),
            consumers=(),
            producers=(),
        )
        self._offset_reset = str(settings.pop("offset_reset", "earliest"))
        self._consumers: list[int] = []
        self._producers: list[int] = []
        self.begin()

    def begin(self) -> None:
        """Begin another session."""
        self._consumers.append(self.run.history.new_process("app"))
        self._producers.append(self.run.producer("app", idempotence=True))

    def input(self, *values: str) -> None:
        for value in values:
            self.run.send(self._writer, value, SOURCE)
            self.run.append(0, value, partition=SOURCE)
            self.run.replicate(1, value, partition=SOURCE)
            self.run.ok(self._writer, value, None, SOURCE)

    def poll(self, *pairs: tuple[int, str]) -> None:
        now_us = self.run.tick()
        self.run.history.record_poll(self._consumers[-1], {SOURCE: list(pairs)}, now_us, now_us)

    def write(self, *values: str, outcome: str = OK) -> None:
        self.run.transaction(self._producers[-1], outcome, *values, partition=TARGET)

    def commit(self, offset: int, outcome: str = OK) -> None:
        self.run.history.record_commit(self._consumers[-1], [(SOURCE, offset)], self.run.tick(), outcome)

    def store(self, offset: int, value: str) -> None:
        self.run.history.record_store(self._consumers[-1], SOURCE, [(offset, value)], self.run.tick())

    def evidence(self) -> Evidence:
        for partition in (SOURCE, TARGET):
            self.run.read_to_end(0, partition)
        consumer = ConsumerSettings(
            name="app", read_committed=True, group="g", offset_reset=self._offset_reset
        )
        settings = replace(self._settings, consumers=tuple(self._consumers), producers=tuple(self._producers))
        return replace(
            self.run.evidence(),
            consumers={**self.run.consumers, **dict.fromkeys(self._consumers, consumer)},
            applications=(settings,),
        )

    def judge(self, rule: str) -> RuleResult:
        return RULES[rule].judge(Index(self.evidence()))


def test_one_effect_of_each_record_keeps_the_promises() -> None:
    app = ApplicationRun()
    app.input("a", "b")
    app.poll((0, "a"), (1, "b"))
    app.write("app:0(a)", "app:1(b)")
    app.commit(2)
    assert app.judge("lost-effect").status == HELD
    assert app.judge("doubled-effect").status == HELD
    assert app.judge("rebalance-skip").status == HELD


def test_a_record_below_the_committed_offset_without_an_effect_is_lost() -> None:
    app = ApplicationRun()
    app.input("a", "b")
    app.poll((0, "a"), (1, "b"))
    app.write("app:0(a)")
    app.commit(2)
    judged = app.judge("lost-effect")
    assert judged.status == VIOLATED
    (finding,) = judged.findings
    assert (finding.partition, finding.offset, finding.value) == (SOURCE, 1, "b")


def test_a_record_without_a_successful_commit_is_not_lost() -> None:
    app = ApplicationRun()
    app.input("a", "b")
    app.poll((0, "a"), (1, "b"))
    app.write("app:0(a)")
    app.commit(1)
    app.commit(2, outcome=FAIL)
    assert app.judge("lost-effect").status == HELD


def test_an_aborted_effect_does_not_count() -> None:
    app = ApplicationRun()
    app.input("a")
    app.poll((0, "a"))
    app.write("app:0(a)", outcome=FAIL)
    app.commit(1)
    assert app.judge("lost-effect").status == VIOLATED


def test_two_effects_of_one_record_are_a_violation() -> None:
    app = ApplicationRun()
    app.input("a")
    app.poll((0, "a"))
    app.write("app:0(a)")
    app.begin()
    app.poll((0, "a"))
    app.write("app:1(a)")
    app.commit(1)
    judged = app.judge("doubled-effect")
    assert judged.status == VIOLATED
    (finding,) = judged.findings
    assert dict(finding.details)["effects"] == ["app:0(a)", "app:1(a)"]
    kinds = [link.kind.name for link in finding.chain]
    assert kinds.count("handed-out") == kinds.count("effect-written") == 2


@pytest.mark.parametrize(
    ("delivery", "setting"),
    [
        ("at_least_once", "commit after processing"),
        ("watermark", "commit after processing"),
        ("auto_commit", "enable.auto.commit=true"),
        ("at_most_once", None),
        ("exactly_once", None),
    ],
)
def test_the_commit_strategy_decides_whether_doubled_effects_are_permitted(
    delivery: str, setting: str | None
) -> None:
    app = ApplicationRun(delivery)
    app.input("a")
    app.poll((0, "a"))
    app.write("app:0(a)", "app:1(a)")
    app.commit(1)
    judged = app.judge("doubled-effect")
    assert judged.status == (VIOLATED if setting is None else PERMITTED)
    assert [finding.permitted_by for finding in judged.findings] == [setting]


@pytest.mark.parametrize(
    ("delivery", "setting"),
    [
        ("at_most_once", "commit before processing"),
        ("auto_commit", "enable.auto.commit=true"),
        ("highest_finished", "commit of the highest finished offset"),
        ("at_least_once", None),
        ("watermark", None),
        ("exactly_once", None),
    ],
)
def test_the_commit_strategy_decides_whether_lost_effects_are_permitted(
    delivery: str, setting: str | None
) -> None:
    app = ApplicationRun(delivery)
    app.input("a")
    app.poll((0, "a"))
    app.commit(1)
    judged = app.judge("lost-effect")
    assert judged.status == (VIOLATED if setting is None else PERMITTED)
    assert [finding.permitted_by for finding in judged.findings] == [setting]


@pytest.mark.parametrize("settings", [{"release": "2.4"}, {"group_metadata": False}])
def test_doubled_effects_are_permitted_without_group_metadata(settings: dict[str, Any]) -> None:
    app = ApplicationRun(**settings)
    app.input("a")
    app.poll((0, "a"))
    app.write("app:0(a)", "app:1(a)")
    app.commit(1)
    (finding,) = app.judge("doubled-effect").findings
    assert finding.permitted_by == "no group metadata (KIP-447)"


def test_an_application_that_does_not_seek_back_after_an_abort_may_lose_records() -> None:
    app = ApplicationRun(rewinds=False)
    app.input("a", "b")
    app.poll((0, "a"))
    app.write("app:0(a)", outcome=FAIL)
    app.poll((1, "b"))
    app.write("app:1(b)")
    app.commit(2)
    (finding,) = app.judge("lost-effect").findings
    assert (finding.value, finding.permitted_by) == ("a", "no seek after an abort")


def test_stored_results_are_effects_and_positions_of_the_group() -> None:
    app = ApplicationRun("idempotent_sink")
    app.input("a", "b", "c")
    app.poll((0, "a"), (1, "b"))
    app.store(0, "app:0(a)")
    assert app.judge("lost-effect").status == HELD
    app.store(2, "app:1(c)")
    (finding,) = app.judge("lost-effect").findings
    assert finding.value == "b"


def test_each_copy_of_a_duplicated_record_has_its_own_effect() -> None:
    app = ApplicationRun()
    app.input("a", "a")
    app.poll((0, "a"), (1, "a"))
    app.write("app:0(a)", "app:1(a)")
    app.commit(2)
    assert app.judge("doubled-effect").status == HELD
    assert app.judge("lost-effect").status == HELD


def test_an_unacknowledged_result_is_an_effect_if_it_was_read() -> None:
    app = ApplicationRun()
    app.input("a")
    app.poll((0, "a"))
    app.write("app:0(a)", outcome=INFO)
    app.commit(1)
    assert app.judge("lost-effect").status == HELD


def test_a_record_passed_without_a_poll_is_skipped() -> None:
    app = ApplicationRun("at_least_once")
    app.input("a", "b", "c")
    app.poll((0, "a"))
    app.begin()
    app.poll((2, "c"))
    judged = app.judge("rebalance-skip")
    assert judged.status == VIOLATED
    assert [(finding.offset, finding.value) for finding in judged.findings] == [(1, "b")]


def test_an_offset_reset_to_latest_permits_the_skipped_records() -> None:
    app = ApplicationRun("at_least_once")
    app.input("a", "b", "c")
    app.poll((0, "a"))
    app.run.event("offset_reset", client="app", partition=SOURCE, position=1, offset=2, policy="latest")
    app.poll((2, "c"))
    (finding,) = app.judge("rebalance-skip").findings
    assert finding.permitted_by == "auto.offset.reset=latest"


def test_a_group_that_starts_at_the_end_skips_no_earlier_record() -> None:
    app = ApplicationRun("at_least_once")
    app.input("a", "b", "c")
    app.run.event("offset_reset", client="app", partition=SOURCE, position=-1, offset=2, policy="latest")
    app.poll((2, "c"))
    assert app.judge("rebalance-skip").status == HELD


@pytest.mark.parametrize(("read_before", "status"), [("in-1", PERMITTED), ("other-0", HELD)])
def test_records_sent_while_the_group_reads_the_topic_must_not_be_skipped(
    read_before: str, status: str
) -> None:
    app = ApplicationRun("at_least_once")
    for partition in (read_before, SOURCE):
        app.run.event(
            "offset_reset", client="app", partition=partition, position=-1, offset=1, policy="latest"
        )
        app.input("a")
    assert app.judge("rebalance-skip").status == status


def test_without_a_reported_reset_a_group_starts_at_its_first_poll() -> None:
    app = ApplicationRun("at_least_once", offset_reset="latest")
    app.input("a", "b", "c", "d")
    app.poll((1, "b"))
    app.commit(2)
    assert app.judge("rebalance-skip").status == HELD
    # Its commits count from that poll on.
    app.begin()
    app.poll((3, "d"))
    (finding,) = app.judge("rebalance-skip").findings
    assert (finding.offset, finding.permitted_by) == (2, None)


def test_a_commit_beyond_the_polls_skips_the_records_between() -> None:
    app = ApplicationRun("at_least_once")
    app.input("a", "b", "c")
    app.poll((0, "a"))
    app.commit(3)
    judged = app.judge("rebalance-skip")
    assert judged.status == VIOLATED
    assert [finding.value for finding in judged.findings] == ["b", "c"]
    assert "the next member will begin" in because(judged.findings[0])


def test_a_commit_beyond_a_marker_skips_no_record() -> None:
    app = ApplicationRun("at_least_once")
    app.input("a")
    app.run.append(0, "<commit>", partition=SOURCE)
    app.poll((0, "a"))
    app.commit(2)
    assert app.judge("rebalance-skip").status == HELD


@pytest.mark.parametrize(
    ("delivery", "settings", "setting"),
    [
        ("exactly_once", {}, None),
        ("exactly_once", {"release": "2.4"}, "no group metadata (KIP-447)"),
        ("exactly_once", {"group_metadata": False}, "no group metadata (KIP-447)"),
        ("at_least_once", {}, "assign()"),
    ],
)
def test_a_transactional_commit_may_go_back_only_without_group_metadata(
    delivery: str, settings: dict[str, Any], setting: str | None
) -> None:
    app = ApplicationRun(delivery, **settings)
    for position in (9, 7):
        app.run.event(
            "offsets_committed",
            broker=0,
            group="g",
            member=NO_MEMBER,
            generation=NO_GENERATION,
            present=1,
            offsets=((SOURCE, position),),
        )
    (finding,) = app.judge("offset-regression").findings
    assert finding.permitted_by == setting


@pytest.mark.parametrize(("coordinator", "status"), [(0, VIOLATED), (1, HELD)])
def test_a_late_commit_on_a_deposed_coordinator_is_no_regression(coordinator: int, status: str) -> None:
    app = ApplicationRun()
    offsets = "__consumer_offsets-0"
    app.run.elect(1, 0, (0, 1), partition=offsets)
    for position, broker in ((9, 0), (7, 0)):
        app.run.elect(coordinator, 1, (0, 1), partition=offsets)
        committed = ((SOURCE, position),)
        app.run.event(
            "offsets_committed",
            broker=broker,
            group="g",
            member=NO_MEMBER,
            generation=NO_GENERATION,
            present=1,
            offsets=committed,
        )
    assert app.judge("offset-regression").status == status


def trace_reconciliation(app: ApplicationRun, member: str, epoch: int, *owned: str) -> None:
    """Trace the partitions that a member owns in an epoch."""
    place = {"broker": 0, "group": "g", "member": member, "epoch": epoch}
    app.run.event("member_reconciled", **place, state="STABLE", assigned=owned, revoking=())


def trace_commit(app: ApplicationRun, member: str, generation: int, position: int) -> None:
    """Trace a commit of the source partition by the coordinator."""
    offsets = ((SOURCE, position),)
    place = {"broker": 0, "group": "g", "member": member, "generation": generation}
    app.run.event("offsets_committed", **place, present=2, offsets=offsets)


def judge_commits_of_two_members(
    owner: str, *, epoch: int = 3, epochs: tuple[int, int] = (3, 3), generation: int = 3
) -> RuleResult:
    """Judge a group with commits of two members to a partition that one of them owns.

    Member "first" commits 9 in *epoch*, then member "second" commits 7 in *generation*. *epochs*
    are the epochs of the members at the coordinator.
    """
    app = ApplicationRun("at_least_once")
    for member, present in zip(("first", "second"), epochs, strict=True):
        trace_reconciliation(app, member, present, *((SOURCE,) if member == owner else ()))
    for member, position, committed_in in (("first", 9, epoch), ("second", 7, generation)):
        trace_commit(app, member, committed_in, position)
    return app.judge("offset-regression")


@pytest.mark.parametrize(("owner", "stray"), [("first", "second"), ("second", "first")])
def test_a_former_owner_may_commit_before_or_after_the_owner(owner: str, stray: str) -> None:
    (finding,) = judge_commits_of_two_members(owner).findings
    assert finding.permitted_by == "group.protocol=consumer"
    assert f"{stray} of generation 3 no longer owned the partition" in because(finding)


def test_a_member_behind_the_group_may_commit_in_its_own_epoch() -> None:
    """The member does not know the new assignment, which gives its partition to another member."""
    (finding,) = judge_commits_of_two_members("first", epoch=6, epochs=(6, 5), generation=5).findings
    assert finding.permitted_by == "group.protocol=consumer"
    assert "second of generation 5 no longer owned the partition" in because(finding)
    assert judge_commits_of_two_members("first", epoch=6, epochs=(6, 6), generation=5).status == VIOLATED


def test_a_commit_in_a_former_epoch_of_its_member_is_a_violation() -> None:
    assert judge_commits_of_two_members("second", epoch=2).status == VIOLATED


@pytest.mark.parametrize(
    ("release", "assigned_in", "commits", "permitted_by"),
    [
        ("4.3", 2, (5, 3), "commitAsync()"),
        ("4.3", 4, (5, 3), None),
        ("4.3", 4, (3, 5), None),  # the earlier commit belongs to another assignment
        ("4.0", 2, (5, 3), None),
    ],
)
def test_a_late_commit_is_permitted_within_the_epochs_of_one_assignment(
    release: str, assigned_in: int, commits: tuple[int, int], permitted_by: str | None
) -> None:
    """From 4.3 on the coordinator accepts it after later commits of the same member, as within one
    generation (KIP-1251).
    """
    app = ApplicationRun("at_least_once")
    app.run.release = release
    for epoch in (assigned_in, 5):
        trace_reconciliation(app, "first", epoch, SOURCE)
    for position, generation in zip((9, 7), commits, strict=True):
        trace_commit(app, "first", generation, position)
    (finding,) = app.judge("offset-regression").findings
    assert finding.permitted_by == permitted_by


@pytest.mark.parametrize(
    ("cut_to", "unclean", "setting"),
    [(1, True, "unclean.leader.election.enable=true"), (2, True, None), (1, False, None)],
)
def test_an_unclean_coordinator_permits_doubled_effects_if_committed_entries_are_lost(
    cut_to: int, setting: str | None, *, unclean: bool
) -> None:
    """Broker 1 is elected with as many entries as broker 0 had committed.

    Broker 0 then truncates its own as a follower.
    """
    app = ApplicationRun()
    offsets = "__consumer_offsets-0"
    app.run.elect(0, 0, (0,), partition=offsets)
    app.run.append(0, "x", "y", partition=offsets)
    app.run.raise_hw(2, 0, partition=offsets)
    app.run.replicate(1, "x", "z", partition=offsets)
    app.run.elect(1, 1, (1,), unclean=unclean, partition=offsets)
    app.run.truncate(0, cut_to, partition=offsets)
    app.input("a")
    app.poll((0, "a"))
    app.write("app:0(a)")
    app.write("app:1(a)")
    (finding,) = app.judge("doubled-effect").findings
    assert finding.permitted_by == setting


def test_a_follower_that_replicates_truncated_entries_again_loses_none() -> None:
    """Broker 1 opens its log with an old high watermark, truncates to it and fetches the entries
    again.
    """
    app = ApplicationRun()
    offsets = "__consumer_offsets-0"
    app.run.elect(0, 0, (0, 1), partition=offsets)
    for broker in (0, 1):
        app.run.append(broker, "x", "y", partition=offsets)
    app.run.raise_hw(2, 0, 1, partition=offsets)
    app.run.high_watermarks[offsets, 1] = 1
    app.run.lose_power(1, 2, partition=offsets)
    app.run.truncate(1, 1, partition=offsets)
    app.run.replicate(1, "y", partition=offsets)
    app.input("a")
    app.poll((0, "a"))
    app.write("app:0(a)")
    app.write("app:1(a)")
    (finding,) = app.judge("doubled-effect").findings
    assert finding.permitted_by is None
