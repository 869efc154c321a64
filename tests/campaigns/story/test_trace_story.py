"""A story tells a run in order, in lanes, with routine events folded and findings marked."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from harrow.campaigns.language.literals import duration
from harrow.campaigns.record.phrases import in_lane
from harrow.campaigns.story.event_phrases import PHRASES, narrate
from harrow.campaigns.story.narration import EventContext
from harrow.campaigns.story.topics import STORY_TOPICS
from harrow.campaigns.story.trace_record import story_of_record
from harrow.campaigns.story.trace_selection import (
    CreatedTopics,
    FoldedRow,
    Row,
    ShownRow,
    Window,
    readable_rows,
    rows_around,
    selected_rows,
    whole_story,
)
from harrow.campaigns.story.trace_story import TraceStory, read_story
from harrow.cluster_model.events import (
    EVENTS,
    HISTORY_EVENTS,
    BrokerId,
    BrokerRegistered,
    Event,
    LeaderElected,
    Text,
    event_fields,
)
from harrow.cluster_model.trace import decode
from tests.written_runs import written_run

CAMPAIGNS = (
    ("loss-by-hw-truncation", None),
    ("divergence-by-hw", None),
    ("divergence-by-hw", "unclean-election"),
    ("ack-lost", None),
    ("controller-split-brain", "no-fencing"),
    ("retry-reorders", None),
    ("epoch-without-records", None),
    ("new-session-new-pid", None),
    ("visibility", None),
    ("standard", None),
)


@pytest.fixture(scope="module", params=CAMPAIGNS, ids=lambda param: f"{param[0]}[{param[1] or 'base'}]")
def story(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TraceStory:
    return read_story(written_run(tmp_path_factory.mktemp("results"), *request.param))


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory) -> TraceStory:
    return read_story(written_run(tmp_path_factory.mktemp("results"), "loss-by-hw-truncation"))


def test_a_story_has_every_event_once_and_in_order(story: TraceStory) -> None:
    assert [event.position for event in story.events] == list(range(len(story.events)))
    times = [event.at_us for event in story.events]
    assert times == sorted(times)
    numbers = [event.number for event in story.events if not event.is_client_event]
    assert numbers == list(range(1, len(story.recorded.events) + 1))


def test_every_event_is_in_a_lane_of_the_story(story: TraceStory) -> None:
    for event in story.events:
        assert event.narration.lane in story.lanes
        assert event.narration.to is None or event.narration.to in story.lanes
        assert event.narration.topic.name in STORY_TOPICS
        assert event.narration.text.isprintable()
        assert "None" not in event.narration.text


def test_each_kind_of_event_has_a_phrase() -> None:
    samples: dict[str, object] = {
        **dict.fromkeys(
            (
                *("isr", "values", "offsets", "brokers", "details", "records", "partitions"),
                *(
                    "replicas",
                    "adding",
                    "removing",
                    "members",
                    "assignments",
                    "assigned",
                    "revoking",
                    "ephemerals",
                ),
            ),
            (),
        ),
        **dict.fromkeys(("sender", "receiver", "server", "process"), "broker-1"),
        **dict.fromkeys(("kind", "reason", "cause", "phase", "action", "client", "error", "fault"), "x"),
    }
    for name, kind in (EVENTS | HISTORY_EVENTS).items():
        assert kind in PHRASES
        narrated = narrate(
            decode((0, name, *(samples.get(field, 1) for field in event_fields(name)))), EventContext()
        )
        assert narrated.text


@dataclass(slots=True)
class BrokerMoved(Event):
    name: ClassVar[str] = "broker_moved"
    broker: BrokerId
    rack: Text


def test_an_event_without_a_phrase_lists_its_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EVENTS, BrokerMoved.name, BrokerMoved)
    narrated = narrate(BrokerMoved(0, 1, "b"), EventContext())
    assert (narrated.lane, narrated.text) == ("broker 1", "broker_moved broker=1 rack=b")


def test_every_link_of_a_chain_has_its_event_in_the_story(story: TraceStory) -> None:
    for finding in story.findings:
        for link, position in zip(
            finding.finding.chain, story.places.positions(finding.finding), strict=True
        ):
            if link.at_us is not None and link.event != "deposed-controller":
                assert position is not None, link
                assert story.events[position].at_us == link.at_us


def test_the_story_around_a_finding_shows_every_link_in_the_order_of_the_chain(story: TraceStory) -> None:
    for finding in story.findings:
        rows = rows_around(story, finding, Window())
        shown = [row for row in rows if isinstance(row, ShownRow) and row.mark is not None]
        marks = [row.mark or 0 for row in shown]
        narrated = list(finding.timed())
        # Two links may share an event, which then has the mark of the first. A client's event comes
        # before events of the cluster at the same instant.
        assert shown == sorted(shown, key=lambda row: row.event.at_us)
        if not any(row.event.is_client_event for row in shown):
            assert marks == sorted(marks, key=int)
        assert len(marks) >= len({(link.at_us, link.event, link.broker) for link in narrated}) - 1


def test_a_folded_story_counts_every_event(story: TraceStory) -> None:
    rows = whole_story(story, Window())
    counted: Counter[str] = Counter()
    for row in rows:
        counted.update(row.counts if isinstance(row, FoldedRow) else {row.event.event: 1})
    assert counted == Counter(event.event for event in story.events)
    assert len(whole_story(story, Window(), everything=True)) == len(story.events)


def test_a_fold_counts_the_events_between_its_neighbours(story: TraceStory) -> None:
    chains = [rows_around(story, finding, Window()) for finding in story.findings[:3]]
    for rows in (whole_story(story, Window()), *chains):
        for place, row in enumerate(rows):
            if isinstance(row, FoldedRow):
                begin, end = row.first.position, row.last.position
                assert row.counts == Counter(event.event for event in story.events[begin : end + 1])
                assert place == 0 or is_at_position(story, rows[place - 1], begin - 1)
                assert place == len(rows) - 1 or is_at_position(story, rows[place + 1], end + 1)


def is_at_position(story: TraceStory, row: Row, position: int) -> bool:
    """Return whether a row shows the event at a position, or stands in for a link without one."""
    return isinstance(row, ShownRow) and (
        row.event is story.events[position] or row.event is not story.events[row.event.position]
    )


def test_a_fold_of_few_routine_events_has_no_line(lost: TraceStory) -> None:
    rows = whole_story(lost, Window())
    assert any(isinstance(row, FoldedRow) and row.is_short for row in rows)
    assert [row for row in rows if row in readable_rows(rows)] == readable_rows(rows)
    assert not any(isinstance(row, FoldedRow) and row.is_short for row in readable_rows(rows))
    (short_row,) = [row for row in rows if isinstance(row, FoldedRow) and row.is_short][:1]
    assert readable_rows([short_row]) == [short_row]


def test_one_line_counts_the_topics_that_were_created_as_the_cluster_started(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    story = read_story(written_run(tmp_path_factory.mktemp("results"), "standard"))
    rows = whole_story(story, Window())
    lines = readable_rows(rows)
    (created,) = [line for line in lines if isinstance(line, CreatedTopics)]
    assert created.text() == "1 topic with 3 partitions was created; --all shows each"
    assert not any(isinstance(line, ShownRow) and line.event.creates_partition for line in lines)
    creations = [row for row in rows if isinstance(row, ShownRow) and row.event.creates_partition]
    assert {row.event.event for row in creations} == {"election", "leader"}
    assert len(creations) == 2 * 3


def test_the_creation_of_a_single_partition_is_shown_event_by_event(lost: TraceStory) -> None:
    shown = [line for line in readable_rows(whole_story(lost, Window())) if isinstance(line, ShownRow)]
    assert [line.event.event for line in shown if line.event.creates_partition] == ["election", "leader"]


def test_a_long_story_is_mostly_folded_and_a_short_one_is_not(story: TraceStory) -> None:
    shown = [row for row in whole_story(story, Window()) if isinstance(row, ShownRow)]
    assert len(shown) < 400
    if len(story.events) < 1_000:
        acks = [event for event in story.events if event.event == "acknowledged"]
        assert len([row for row in shown if row.event.event == "acknowledged"]) == len(acks)


def test_a_truncation_names_the_records_that_it_removed(story: TraceStory) -> None:
    for event in story.events:
        if event.event == "truncate" and not event.narration.routine:
            cut_values = [
                value
                for value, group in story.end.partitions[event.partition or ""].by_value.items()
                if any(copy.removed is not None and copy.removed.number == event.number for copy in group)
            ]
            assert set(cut_values) == set(event.values)
            assert all(value in event.narration.text for value in cut_values)


def test_a_record_is_followed_from_its_send_to_its_end(lost: TraceStory) -> None:
    record = story_of_record(lost, "m1")
    rows = selected_rows(lost, record.texts, Window())
    names = [row.event.event for row in rows if isinstance(row, ShownRow)]
    assert names.index("client_sent") < names.index("append") < names.index("replicate")
    assert names.index("replicate") < names.index("acknowledged") < names.index("client_ended")
    assert names.count("truncate") == 2
    assert record.lines[-2:] == (
        "at the end: in no log",
        "judged: lost-write, violated, despite acks=all (--around 1)",
    )
    kept = story_of_record(lost, "m0")
    assert kept.lines[-2:] == (
        "at the end: in the log of brokers 0 and 1",
        "judged: no rule has a finding about it",
    )
    assert "read by reader" in kept.lines


def test_every_record_can_be_followed(story: TraceStory) -> None:
    values = list(dict.fromkeys(value for event in story.events for value in event.values))
    for value in values[:40]:
        record = story_of_record(story, value)
        assert record.lines
        assert [position for position in record.texts if not 0 <= position < len(story.events)] == []


def test_a_window_includes_both_ends(lost: TraceStory) -> None:
    window = Window(from_us=duration("25s"), to_us=32_000_000)
    times = [event.at_us for event in lost.events if window.has(event)]
    assert times[0] == 25_010_000
    assert times[-1] == 32_000_000


def test_a_run_recorded_without_client_names_has_a_story(tmp_path: Path) -> None:
    folder = written_run(tmp_path, "ack-lost")
    text = (folder / "run.json").read_text(encoding="utf-8")
    assert '"processes":' in text
    (folder / "run.json").write_text(text.replace('"processes":', '"was":'), encoding="utf-8")
    story = read_story(folder)
    assert any(event.is_client_event and event.event == "client_sent" for event in story.events)


def test_no_text_of_a_story_can_disturb_a_terminal(tmp_path: Path) -> None:
    folder = written_run(tmp_path, "ack-lost")
    for name in ("run.json", "history.jsonl"):
        text = (folder / name).read_text(encoding="utf-8")
        text = text.replace('"producer-0"', '"\\u001b[2J"').replace("m1", "m1\\u001b[31m")
        (folder / name).write_text(text, encoding="utf-8")
    story = read_story(folder)
    assert all(lane.isprintable() for lane in story.lanes)
    assert all(event.narration.text.isprintable() for event in story.events)
    for finding in story.findings:
        assert finding.title().isprintable()
        assert all(in_lane(link, "").isprintable() for link in finding.timed())
    for value in {value for event in story.events for value in event.values}:
        assert all(line.isprintable() for line in story_of_record(story, value).lines)


def test_facts_that_real_brokers_hide_leave_no_number_or_empty_brackets() -> None:
    narrated = [
        narrate(event, EventContext()).text
        for event in (
            BrokerRegistered(0, 1, -1),
            BrokerRegistered(0, 1, 7),
            LeaderElected(0, 9, "t-0", 1, 0, (1, 2), False, ""),
            LeaderElected(0, 9, "t-0", 1, 0, (1, 2), False, "controlled_shutdown"),
        )
    ]
    assert narrated == [
        "registered",
        "registered (broker epoch 7)",
        "elected broker 1 leader: epoch 0, ISR [1, 2]",
        "elected broker 1 leader: epoch 0, ISR [1, 2] (controlled shutdown)",
    ]
