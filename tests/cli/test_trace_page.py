"""The HTML page of a trace: what it contains, and how a browser renders it."""

import json
import re
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

import harrow.cli.page as cli_page
from harrow.campaigns.story.topics import STORY_TOPICS
from harrow.campaigns.story.trace_page_data import GAP, page_data
from harrow.campaigns.story.trace_selection import Window
from harrow.campaigns.story.trace_story import TraceStory, read_story
from harrow.checks.replay.cluster_state import ClusterState
from harrow.checks.replay.partition_state import ReplicaState
from harrow.cli.output_stream import OutputStream
from harrow.cli.page.trace_page import embedded, trace_page
from tests.cli.chromium import dom, measured, needs_chromium
from tests.written_runs import written_run

HOSTILE = "</script><script>document.documentElement.dataset.broken=1</script><img src=x>&amp;"
HOSTILE_CAMPAIGN = f"""
name: hostile
cluster: {{brokers: 1, topics: [{{name: t}}]}}
workload: {{producers: [{{name: producer-0}}]}}
script:
  - do: {{send: {json.dumps(HOSTILE)}}}
  - when: {{acked: {json.dumps(HOSTILE)}}}
"""

_VOID = frozenset({"meta", "input", "link", "br", "img"})


class Page(HTMLParser):
    """A parsed page: its tags and the text of its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data


@pytest.fixture(scope="module")
def standard_story(tmp_path_factory: pytest.TempPathFactory) -> TraceStory:
    return read_story(written_run(tmp_path_factory.mktemp("results"), "standard"))


@pytest.fixture(scope="module")
def lost_story(tmp_path_factory: pytest.TempPathFactory) -> TraceStory:
    return read_story(written_run(tmp_path_factory.mktemp("results"), "loss-by-hw-truncation"))


@pytest.fixture(scope="module")
def hostile_story(tmp_path_factory: pytest.TempPathFactory) -> TraceStory:
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "hostile.yaml").write_text(HOSTILE_CAMPAIGN, encoding="utf-8")
    return read_story(written_run(folder / "results", folder / "hostile.yaml"))


def on_disk(story: TraceStory, folder: Path, more: str = "") -> Path:
    page = folder / "story.html"
    text = trace_page(story, Window())
    page.write_text(text.replace("</body>", f"{more}</body>"), encoding="utf-8")
    return page


def texts_of(events: dict[str, Any]) -> list[str]:
    """Return the texts of the events as the page assembles them."""
    numbers = iter(events["numbers"])
    texts = []
    for number in events["text"]:
        first, *rest = events["texts"][number].split(GAP)
        texts.append(first + "".join(f"{next(numbers)}{part}" for part in rest))
    assert next(numbers, None) is None
    return texts


@pytest.mark.parametrize("category", STORY_TOPICS)
def test_a_page_has_a_light_and_a_dark_colour_for_every_category_of_events(category: str) -> None:
    style = (Path(str(cli_page.__file__)).parent / "trace.css").read_text(encoding="utf-8")
    assert len(re.findall(rf"--{category}: #[0-9a-f]{{6}};", style)) == 2


def test_a_page_of_a_run_with_groups_names_the_category_of_each_event(tmp_path: Path) -> None:
    data = page_data(read_story(written_run(tmp_path, "commit-during-rebalance")), Window())
    columns = data["events"]
    for column, values in (("kind", "kinds"), ("lane", "lanes")):
        assert max(columns[column]) < len(data[values])
    assert {"group", "commit"} <= {data["kinds"][kind][0] for kind in columns["kind"]}


def test_a_page_is_complete_and_loads_nothing(lost_story: TraceStory) -> None:
    page = Page(trace_page(lost_story, Window()))
    assert page.open == []
    for tag, attributes in page.tags:
        assert tag not in {"link", "img", "iframe", "base", "object"}
        assert not {"src", "href", "srcset", "action"} & attributes.keys()
    (policy,) = [attributes["content"] for _, attributes in page.tags if "http-equiv" in attributes]
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert len(page.scripts) == 2
    text = trace_page(lost_story, Window())
    assert not re.search(r"https?://|url\(|@import|fetch\(|XMLHttpRequest|innerHTML|document\.write", text)


def test_a_page_contains_every_event_of_the_trace(standard_story: TraceStory) -> None:
    data = json.loads(Page(trace_page(standard_story, Window())).scripts[0])
    assert texts_of(data["events"]) == [event.narration.text for event in standard_story.events]
    at_us = 0
    for difference, event in zip(data["events"]["at"], standard_story.events, strict=True):
        at_us += difference
        assert at_us == event.at_us
    assert [data["lanes"][lane] for lane in data["events"]["lane"]] == [
        event.narration.lane for event in standard_story.events
    ]


def test_a_page_counts_created_topics_and_hides_their_events_as_routine(standard_story: TraceStory) -> None:
    data = page_data(standard_story, Window())
    assert data["created"] == "1 topic with 3 partitions was created"
    hidden = [routine == "1" for routine in data["events"]["routine"]]
    assert all(
        is_hidden
        for is_hidden, event in zip(hidden, standard_story.events, strict=True)
        if event.creates_partition
    )


def test_a_page_shows_the_count_of_created_topics_until_it_shows_routine_events(
    standard_story: TraceStory, tmp_path: Path
) -> None:
    needs_chromium()
    page = on_disk(standard_story, tmp_path)
    count = '<p id="created">1 topic with 3 partitions was created; “routine events” shows each</p>'
    assert count in dom(page, tmp_path / "profile", "")
    assert count not in dom(page, tmp_path / "profile", "routine=1")


@pytest.mark.parametrize(
    ("campaign", "variant"),
    [
        ("loss-by-hw-truncation", None),
        ("controller-split-brain", "no-fencing"),
        ("power-loss", None),
        ("standard", None),
    ],
)
def test_the_changes_of_a_page_yield_the_state_of_the_cluster(
    campaign: str, variant: str | None, tmp_path: Path
) -> None:
    """The page's replay yields the state of the cluster after each event."""
    story = read_story(written_run(tmp_path, campaign, variant))
    data = page_data(story, Window())
    shown = ReplayedPage(data)
    happened = story.run
    state = ClusterState(happened.replicas, (broker.id for broker in happened.plan.cluster.brokers))
    for position, event in enumerate(happened.events):
        state.advance(event, happened.numbers[position])
        shown.advance(position)
        for broker, process in state.brokers.items():
            incarnation = (2 if process.is_paused else 1) if process.is_live else 0
            assert shown.lives.get(broker, 0) == incarnation, (position, event)
        for name, partition in state.partitions.items():
            znode = [partition.leader, partition.leader_epoch, list(partition.isr)]
            assert shown.znodes.get(name, [-1, -1, []]) == znode, (position, event)
            for broker, replica in partition.replicas.items():
                shown.compare(replica, (name, broker), (position, event), whole=position % 1_000 == 0)
    shown.compare_logs(state)


class ReplayedPage:
    """The state of a page at a moment: all earlier changes, applied as by its script."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.lives: dict[int, int] = {}
        self.znodes: dict[str, list[Any]] = {}
        self.logs: dict[tuple[str, int], list[list[int]]] = {}
        self.replicas: dict[tuple[str, int], list[Any]] = {}
        self._partitions: list[str] = data["partitions"]
        self._values: list[str] = data["values"]
        self._changes = list(reversed(data["changes"]))

    def advance(self, position: int) -> None:
        while self._changes and self._changes[-1][0] <= position:
            _, number, what, *incarnation = self._changes.pop()
            if number < 0:
                self.lives[what] = incarnation[0]
                continue
            name = self._partitions[number]
            self.znodes[name] = what.get("z", self.znodes.get(name))
            for broker, change in what.get("r", {}).items():
                log = self.logs.setdefault((name, int(broker)), [])
                del log[change.get("c", len(log)) :]
                log.extend(change.get("a", []))
                fields = self.replicas.get((name, int(broker)), [0, 0, 0, "", -1])
                self.replicas[name, int(broker)] = change.get("s") or [
                    *change.get("w", fields[:2]),
                    *fields[2:],
                ]

    def compare(self, replica: ReplicaState, key: tuple[str, int], where: object, *, whole: bool) -> None:
        fields = [
            replica.high_watermark,
            replica.flushed,
            replica.is_open,
            replica.role,
            replica.leader_epoch,
        ]
        assert self.replicas.get(key, [0, 0, 0, "", -1]) == fields, (key, where)
        log = self.logs.get(key, [])
        assert len(log) == replica.leo, (key, where)
        for entry, shown in zip(
            replica.log if whole else replica.log[-1:], log if whole else log[-1:], strict=True
        ):
            record = [self._values[shown[0]], *shown[1:]]
            assert record == [entry.value, entry.leader_epoch, entry.producer_id, entry.sequence], (
                key,
                where,
            )

    def compare_logs(self, state: ClusterState) -> None:
        for name, partition in state.partitions.items():
            for broker, replica in partition.replicas.items():
                self.compare(replica, (name, broker), "the end", whole=True)


def test_the_page_of_a_run_of_standard_is_small(standard_story: TraceStory) -> None:
    assert len(standard_story.events) > 10_000
    assert len(trace_page(standard_story, Window()).encode()) < 1_000_000


@pytest.mark.parametrize("name", ["standard_story", "lost_story", "hostile_story"])
def test_the_output_guard_does_not_change_a_page(name: str, request: pytest.FixtureRequest) -> None:
    page = trace_page(request.getfixturevalue(name), Window())
    written = StringIO()
    OutputStream(written).write(page)
    assert written.getvalue() == page


def test_no_value_can_end_the_script(hostile_story: TraceStory) -> None:
    page = Page(trace_page(hostile_story, Window()))
    assert len(page.scripts) == 2
    assert any(HOSTILE in text for text in texts_of(json.loads(page.scripts[0])["events"]))
    assert embedded(["</script>", "<!--", "\u2028"]) == '["\\u003c/script\\u003e","\\u003c!--","\\u2028"]'


def test_a_value_that_looks_like_a_placeholder_is_not_replaced(lost_story: TraceStory) -> None:
    odd = page_data(lost_story, Window())
    odd["title"] = "{{js}}"
    assert "{{js}}" in embedded(odd)


def test_a_window_has_only_its_events(lost_story: TraceStory) -> None:
    data = page_data(lost_story, Window(from_us=25_000_000, to_us=26_000_000))
    assert 0 < len(data["events"]["lane"]) < 40
    assert data["changes"] == page_data(lost_story, Window())["changes"]


# In a browser


def test_only_visible_events_are_laid_out(standard_story: TraceStory, tmp_path: Path) -> None:
    needs_chromium()
    page = on_disk(standard_story, tmp_path)
    for words in ("", "broker 1", "producer-0:45", "truncated"):
        document = dom(page, tmp_path / "profile", f"filter={words}&routine=1")
        expected = [
            event
            for event in standard_story.events
            if matches(event.narration.lane, event.narration.text, words)
        ]
        assert measured(document, "shown") >= len(expected)
        # For speed the page contains only the visible rows.
        assert 0 < document.count('role="option"') < 120


def matches(lane: str, text: str, words: str) -> bool:
    return re.search(rf"{re.escape(words)}(?!\d)", f"{lane} {text}".lower()) is not None


def test_the_address_of_the_page_holds_its_view(lost_story: TraceStory, tmp_path: Path) -> None:
    needs_chromium()
    page = on_disk(lost_story, tmp_path)
    truncation = next(event for event in lost_story.events if event.event == "truncate")
    document = dom(page, tmp_path / "profile", f"finding=1&event={truncation.position}")
    assert 'data-ready="1"' in document
    (chosen,) = re.findall(r'<div class="row chosen[^"]*"[^>]*data-position="(\d+)"', document)
    assert int(chosen) == truncation.position
    # At this moment the leader has m1, and its follower has lost it.
    table = document.partition('<table class="replicas">')[2].partition("</table>")[0]
    assert "LEO 2 · HW 2" in table
    assert "LEO 1 · HW 1" in table
    assert table.count("<s>m1</s>") == 1
    assert document.count('class="row chain') + document.count('class="row chosen chain') >= 5
    only = dom(page, tmp_path / "profile", "filter=broker 2&without=faults")
    assert measured(only, "shown") < 12
    assert "broker 0</span>" not in only.partition('id="rows"')[2].partition("</section>")[0]


def test_keys_move_through_a_chain(lost_story: TraceStory, tmp_path: Path) -> None:
    needs_chromium()
    finding = lost_story.findings[0]
    places = [position for position in lost_story.places.positions(finding.finding) if position is not None]
    for keys, expected in (
        ("", places[0]),  # it opens at the first finding
        ("1n", places[1]),
        ("nnp", places[1]),
        (
            "jj",
            lost_story.events[next(e.position for e in lost_story.events if not e.narration.routine)].position
            + 1,
        ),
    ):
        presses = "".join(f'dispatchEvent(new KeyboardEvent("keydown",{{key:"{key}"}}));' for key in keys)
        script = f"<script>{presses.replace('dispatchEvent', 'document.body.dispatchEvent')}</script>"
        script = script.replace("{key:", "{bubbles:true,key:")
        document = dom(on_disk(lost_story, tmp_path, script), tmp_path / "profile")
        (chosen,) = re.findall(r'<div class="row chosen[^"]*"[^>]*data-position="(\d+)"', document)
        if keys == "jj":
            assert int(chosen) >= (expected or 0)
        else:
            assert int(chosen) == expected


def test_hostile_values_are_text(hostile_story: TraceStory, tmp_path: Path) -> None:
    needs_chromium()
    send = next(event for event in hostile_story.events if event.event == "append")
    document = dom(on_disk(hostile_story, tmp_path), tmp_path / "profile", f"event={send.position}")
    assert 'data-ready="1"' in document
    assert "data-broken" not in document.partition(">")[0] + document.partition("<html")[2].partition(">")[0]
    assert "&lt;/script&gt;&lt;script&gt;" in document
    assert "<img" not in document
