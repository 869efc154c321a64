"""`harrow diff`: the replicas of a recorded run at any moment, and two runs side by side."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harrow.campaigns.story import trace_record
from harrow.checks.replay.partition_state import REMOVAL_CAUSES
from harrow.cli.render import diff_rows
from harrow.cluster_model.release.profiles import NEWEST_RELEASE
from tests.cli.conftest import ROOT, Harrow

DOCS = (ROOT / "docs" / "reference" / "json.md").read_text(encoding="utf-8")
NEWEST = re.escape(NEWEST_RELEASE)


@pytest.fixture
def run(harrow: Harrow, folder: Path) -> Path:
    """Return the folder of a run that lost a record."""
    harrow("run", "loss-by-hw-truncation", "--variant", "base")
    return (folder / "results" / "latest").resolve()


def test_a_run_can_be_named_by_folder_id_or_file(harrow: Harrow, run: Path) -> None:
    shown = {
        re.sub(r"diff \S+ --at", "diff RUN --at", harrow("diff", name).stdout)
        for name in ("results/latest", str(run), run.name, f"loss-by-hw-truncation/{run.name}")
    }
    assert len(shown) == 1
    assert "LOST" in shown.pop()


def test_every_moment_that_a_diff_names_can_be_shown(harrow: Harrow, run: Path) -> None:
    text = harrow("diff", "results/latest").stdout
    numbers = re.findall(r"^ +--at (\d+) ", text, re.MULTILINE)
    assert len(numbers) >= 3
    for number in numbers:
        ended = harrow("diff", "results/latest", "--at", number)
        assert (ended.returncode, ended.stderr) == (0, "")
        assert f"after event {number} of" in ended.stdout
    assert "LOST" not in harrow("diff", "results/latest", "--at", numbers[0]).stdout


def test_a_moment_can_be_a_time(harrow: Harrow, run: Path) -> None:
    assert "  1    m1 e0 *" not in harrow("diff", run.name, "--at", "25s").stdout
    assert re.search(r"^ +1 +m1 e0 ~?\*", harrow("diff", run.name, "--at", "25.0243s").stdout, re.MULTILINE)
    assert (
        harrow("diff", run.name, "--at", "25.0243").stdout
        == harrow("diff", run.name, "--at", "25.0243s").stdout
    )
    end = harrow("diff", run.name)
    assert harrow("diff", run.name, "--at", "end").stdout == end.stdout


@pytest.mark.parametrize("at", [("--at=-1s",), ("--at", "-1s")])
def test_the_start_of_a_cluster_before_time_zero_can_be_shown(
    harrow: Harrow, run: Path, at: tuple[str, ...]
) -> None:
    ended = harrow("diff", "results/latest", *at)
    assert ended.returncode == 0, ended.stderr
    assert "  at -" in ended.stdout
    assert "t-0  leader 0, epoch 0, ISR 0, 1" in ended.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nope",), "nope: there is no such folder, and no run in results has this id"),
        (("results/latest", "--at", "99999"), "--at 99999: the run has the events 1 to "),
        (("results/latest", "--at", "0"), "--at 0: the run has the events 1 to "),
        (("results/latest", "--at", "2h"), "--at 7200.000s: the run has the events 1 to "),
        (("results/latest", "--at=-10s"), "--at -10.000s: the run begins at -5.000s"),
        (("results/latest", "--at", "99999s"), "--at 99999s is too long: at most 24h"),
        (("results/latest", "--at", "1.0000001s"), "--at `1.0000001s` is not a duration: write one such as"),
        (
            ("results/latest", "--at", "soon"),
            "--at `soon`: expected a time such as 12.5s, an event number such as 143, or end",
        ),
        (
            ("results/latest", "--partition", "t-1"),
            "--partition `t-1`: the run has no such partition; known: t-0\n",
        ),
        (("results/latest",) * 3, "3 runs are too many"),
        (
            ("results/latest", "results/latest", "--partition", "u"),
            "--partition `u`: the runs have no such partition; known: t-0",
        ),
        (("results",), "results: not the folder of a run"),
    ],
)
def test_wrong_arguments_are_reported(
    harrow: Harrow, run: Path, arguments: tuple[str, ...], message: str
) -> None:
    ended = harrow("diff", *arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr


LINE_ENDS = r"""
name: line-ends
workload: {producers: [{}]}
script: [{do: [{send: "a\u2028b"}, {send: "c\u2029d"}, {send: "e\u0085f"}]}]
"""


@pytest.mark.parametrize("command", ["diff", "trace", "replay"])
def test_values_may_contain_unicode_line_separators(harrow: Harrow, folder: Path, command: str) -> None:
    (folder / "line-ends.yaml").write_text(LINE_ENDS, encoding="utf-8")
    assert harrow("run", "line-ends.yaml").returncode == 0
    ended = harrow(command, "results/latest")
    assert ended.returncode == 0, ended.stderr
    assert not {"\u2028", "\u2029", "\u0085"} & set(ended.stdout)
    if command == "diff":
        assert r"a\u2028b" in ended.stdout


def damage(path: Path, change: Callable[[str], str]) -> None:
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        (
            "trace.jsonl",
            lambda text: text.replace('"hw":2', '"hw":1'),
            "trace.jsonl: its events do not have the digest in run.json",
        ),
        ("trace.jsonl", lambda text: text[:-5], "the line is cut off"),
        (
            "history.jsonl",
            lambda text: text.replace('"value"', '"worth"', 1),
            "history.jsonl:1:1: not an operation",
        ),
        ("history.jsonl", lambda text: f"{text}[]\n", "not an operation of a history"),
        (
            "history.jsonl",
            lambda text: text.replace('"m0"', '{"m0":0}', 1),
            "history.jsonl:1:1: not an operation",
        ),
        *(
            (
                "history.jsonl",
                lambda text, wrong=wrong: text.replace('"t-0"', wrong, 1),
                "history.jsonl:1:1: not",
            )
            for wrong in ("0", "[]", "{}")
        ),
        *(
            (
                "run.json",
                lambda text, wrong=wrong: text.replace('"reason":', wrong),
                "the findings of a rule cannot",
            )
            for wrong in ('"reasons":', '"actor":')
        ),
        (
            "run.json",
            lambda text: text.replace('"rules":{', '"rules":{"x":1,'),
            "the findings of a rule cannot be read",
        ),
        ("run.json", lambda _: "", "not JSON"),
    ],
)
def test_a_damaged_run_is_reported_with_its_file(
    harrow: Harrow, run: Path, file: str, change: Callable[[str], str], message: str
) -> None:
    damage(run / file, change)
    ended = harrow("diff", "results/latest")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert message in ended.stderr


def test_a_run_without_a_history_is_reported(harrow: Harrow, run: Path) -> None:
    (run / "history.jsonl").unlink()
    ended = harrow("diff", "results/latest")
    assert ended.returncode == 2
    assert "history.jsonl: is missing: it has the sends and polls of the clients" in ended.stderr


def test_a_run_without_named_clients_can_be_read(harrow: Harrow, run: Path) -> None:
    damage(run / "run.json", lambda text: re.sub(r'"processes":\{.*?\},', "", text))
    text = harrow("diff", "results/latest").stdout
    assert "process 1" in text
    assert "LOST" in text


def test_a_later_finding_is_announced(harrow: Harrow, run: Path) -> None:
    """Before the last event of its chain a loss is announced, because the verdict covers the whole
    run.
    """
    (note,) = diff_of(harrow)["notes"]
    assert (note["kind"], note["rule"], note["permitted_by"]) == ("lost", "lost-write", None)
    (truncated,) = [
        line for line in note["lines"] if line["at_us"] == note["at_us"] and "removing" in line["text"]
    ]
    for number in (1, 170):
        before = diff_of(harrow, "--at", str(number))
        assert ([each["values"] for each in before["notes_to_come"]], before["notes"]) == ([["m1"]], [])
        assert not [record for row in before["rows"] for record in row["records"] if record["lost"]]
    assert "later   lost m1, offset 1 (40.020s)" in harrow("diff", "results/latest", "--at", "170").stdout
    after = diff_of(harrow, "--at", f"{note['at_us'] / 1_000_000 + 0.001:.6f}")
    assert [each["values"] for each in after["notes"]] == [["m1"]], truncated
    assert [record["value"] for row in after["rows"] for record in row["records"] if record["lost"]] == ["m1"]


def diff_of(harrow: Harrow, *options: str) -> dict[str, Any]:
    """Return the only partition of a diff."""
    ended = harrow("diff", "results/latest", *options, "--format", "json")
    assert ended.returncode == 0, ended.stderr
    (partition,) = json.loads(ended.stdout)["partitions"]
    assert isinstance(partition, dict)
    return partition


def test_stages_show_the_two_rounds_of_the_high_watermark(harrow: Harrow, folder: Path) -> None:
    """The assertions of hw-two-rounds: ``[leader LEO, remote LEO, leader HW, B LEO, B HW]``."""
    harrow("run", "hw-two-rounds", "--variant", "base")
    table = [
        [a["leo"], b["remote_leo"], a["hw"], b["leo"], b["hw"]]
        for stage in diff_of(harrow, "--stages")["stages"]
        for a, b in [(stage["replicas"]["0"], stage["replicas"]["1"])]
    ]
    assert table == [[0, 0, 0, 0, 0], [1, 0, 0, 0, 0], [1, 0, 0, 1, 0], [1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]
    text = harrow("diff", "results/latest", "--stages").stdout
    assert re.findall(r"^ +remote LEO +- +(\d) ?<?", text, re.MULTILINE) == ["0", "0", "0", "1", "1"]
    until = harrow("diff", "results/latest", "--stages", "--at", "1.0125").stdout
    assert until.count("remote LEO  ") == 3


def test_stages_are_refused_for_two_runs(harrow: Harrow, run: Path) -> None:
    ended = harrow("diff", "results/latest", run.name, "--stages")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "--stages shows a single run: give only one" in ended.stderr


LONG_LOSS = """
name: long-loss
kafka: "2.4"
settings: {acks: 1, unclean.leader.election.enable: true}
cluster: {brokers: 3, topics: [{name: t, assignment: [[0, 1]]}]}
workload: {duration: 20s, producers: [{name: producer-0, rate: 50/s}]}
faults:
  - {at: 2s, do: {partition: {between: [1], and: [0], duration: 8s}}}
  - {at: 9s, do: {broker_crash: {broker: 0, restart_after: 8s}}}
"""


def test_a_long_loss_is_summarised_above_the_table(harrow: Harrow, folder: Path) -> None:
    (folder / "long-loss.yaml").write_text(LONG_LOSS, encoding="utf-8")
    harrow("run", "long-loss.yaml")
    (note,) = [note for note in diff_of(harrow)["notes"] if note["kind"] == "lost"]
    assert len(note["values"]) > 200
    lines = harrow("diff", "results/latest", COLUMNS="120").stdout.splitlines()
    assert len(lines) < 60
    (head,) = [number for number, line in enumerate(lines) if line.startswith("  LOST ")]
    story = " ".join(lines[head : head + 3])
    assert re.search(
        r"LOST +\S+\.\.\S+, offsets \d+\.\.\d+ \(\d+\), replaced by \S+\.\.\S+ \(epoch \d+\)", story
    )
    (table,) = [
        number for number, line in enumerate(lines) if re.match(r" +offset +(follower|leader|record) ", line)
    ]
    assert head < table


def test_the_sign_of_a_removed_record_names_the_cause(harrow: Harrow, folder: Path) -> None:
    signs = {
        "short-retention": "< was there, deleted below the log start",
        "delete-records": "< was there, deleted below the log start",
        "compaction-above-hw": "c was there, compacted away",
        "disk-loss": "# was there, lost with the disk",
    }
    for campaign, sign in signs.items():
        harrow("run", campaign, "--variant", "base", "--results", campaign)
        text = harrow("diff", f"{campaign}/latest", COLUMNS="200").stdout
        assert sign in text
        assert "was there, truncated" not in text or campaign in {"compaction-above-hw", "disk-loss"}


def test_every_cause_of_removal_has_a_sign_and_a_meaning() -> None:
    signs = {diff_rows._SIGNS[cause].sign for cause in REMOVAL_CAUSES}
    assert (
        len(signs)
        == len({diff_rows._SIGNS[cause].meaning for cause in REMOVAL_CAUSES})
        == len(REMOVAL_CAUSES)
    )
    assert trace_record._REMOVALS.keys() == set(REMOVAL_CAUSES)


def test_json_has_every_row(harrow: Harrow, run: Path) -> None:
    document = json.loads(harrow("diff", "results/latest", "--format", "json").stdout)
    assert (document["schema"], document["verdict"]) == ("harrow.diff/1", "violated")
    (partition,) = document["partitions"]
    assert [row["offset"] for row in partition["rows"]] == [0, 1]
    assert {cell["state"] for cell in partition["rows"][1]["cells"].values()} == {"removed"}
    assert partition["notes"][0]["values"] == ["m1"]
    (example,) = re.findall(r"```json\n(\{\"schema\": \"harrow\.diff/1.*?)```", DOCS, re.DOTALL)
    assert json.loads(example).keys() == document.keys()
    assert json.loads(example)["partitions"][0].keys() == partition.keys()


def test_a_run_is_equal_to_itself(harrow: Harrow, run: Path) -> None:
    text = harrow("diff", "results/latest", run.name).stdout
    assert "Both runs have the same trace, event by event." in text
    assert "The plans are the same." in text
    document = json.loads(harrow("diff", run.name, run.name, "--format", "json").stdout)
    assert (document["same"], document["first_difference"], document["plan"]) == (True, None, [])


def test_two_seeds_of_a_campaign_can_be_compared(harrow: Harrow, folder: Path) -> None:
    for seed in ("1", "2"):
        harrow("run", "standard", "--seed", seed, "--results", seed)
    ended = harrow("diff", "1/latest", "2/latest", "--only-different", COLUMNS="80")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert re.search(r"^  seed +1 +2$", ended.stdout, re.MULTILINE)
    assert "The runs diverge at event " in ended.stdout
    assert max(map(len, ended.stdout.splitlines())) <= 80


FIVE = """
name: five
kafka: "2.4"
settings: {acks: 1}
cluster: {brokers: 5, topics: [{name: t, replication_factor: 5}]}
workload: {duration: 12s, producers: [{name: producer-0, rate: 5/s}], consumers: [{name: consumer-0}]}
faults:
  - {at: 4s, do: {broker_crash: {broker: leader of t-0, kind: power_loss, restart_after: 3s}}}
"""


@pytest.mark.parametrize("columns", [80, 120, 200])
def test_five_replicas_fit_a_terminal(harrow: Harrow, folder: Path, columns: int) -> None:
    (folder / "five.yaml").write_text(FIVE, encoding="utf-8")
    assert harrow("run", "five.yaml").returncode == 0
    lines = harrow("diff", "results/latest", COLUMNS=str(columns)).stdout.splitlines()
    assert max(map(len, lines)) <= columns
    assert any(re.match(r" +LEO( +\d+){5}$", line) for line in lines)


def test_a_terminal_gets_colours_unless_they_are_turned_off(
    on_terminal: Callable[..., tuple[int, str]], run: Path
) -> None:
    code, coloured = on_terminal("diff", "results/latest")
    assert (code, "\x1b[" in coloured) == (0, True)
    for plain in (
        on_terminal("diff", "results/latest", "--no-color"),
        on_terminal("diff", "results/latest", NO_COLOR="1"),
    ):
        assert plain[0] == 0
        assert not re.search(r"\x1b\[[0-9;]*3[0-7]", plain[1])


def test_an_ascii_terminal_gets_ascii(harrow: Harrow, run: Path) -> None:
    harrow("run", "divergence-by-hw", "--variant", "base")
    text = harrow("diff", "results/latest", PYTHONIOENCODING="ascii").stdout
    assert text.isascii()
    assert "! not the leader's record" in text


def test_output_goes_to_a_file(harrow: Harrow, run: Path, folder: Path) -> None:
    ended = harrow("diff", "results/latest", "--output", "diff.txt")
    assert (ended.returncode, ended.stdout) == (0, "")
    assert (folder / "diff.txt").read_text(encoding="utf-8") == harrow("diff", "results/latest").stdout


def test_a_folder_with_several_runs_is_refused_with_their_names(harrow: Harrow, folder: Path) -> None:
    harrow("run", "permitted.yaml", "--seed", "3")
    first, second = sorted((folder / "results" / "permitted").iterdir())
    (second / "run.json").write_text("{", encoding="utf-8")
    ended = harrow("diff", "permitted")
    assert ended.returncode == 2
    assert "results/permitted: not the folder of a run: name one of its 2 runs: " in ended.stderr
    assert re.search(rf"{re.escape(first.name)} \((permitted|acks-all, held)\)", ended.stderr)
    assert f"{second.name} (damaged)" in ended.stderr


def test_runs_of_two_releases_differ_in_behaviours_and_unset_defaults(
    harrow: Harrow,
    folder: Path,
) -> None:
    for release in ("2.4", "2.8"):
        options = ("--variant", "base", "--set", f"kafka={release}", "--results", release, "-q")
        harrow("run", "unclean-election", *options)
    out = harrow("diff", "2.4/latest", "2.8/latest").stdout
    assert ("behaviours.truncation_on_fetch", "false", "true") in {
        tuple(line.split()) for line in out.splitlines()
    }
    document = json.loads(harrow("diff", "2.4/latest", "2.8/latest", "--format", "json").stdout)["plan"]
    rows = {row["key"]: row["values"] for row in document}
    assert rows["zookeeper.session.timeout.ms (broker), by default"] == ["6000", "18000"]
    assert not [key for key in rows if key.startswith("replica.lag.time.max.ms")]


def test_two_releases_are_compared_by_name(harrow: Harrow, folder: Path) -> None:
    out = harrow("diff", "4.0", "latest").stdout
    assert out.startswith(f"Differences between Kafka 4.0 and Kafka {NEWEST_RELEASE}")
    assert re.search(rf"eligible_leader_replicas +in 4\.0: false, in {NEWEST}: true", out)
    document = json.loads(harrow("diff", "3.9", "4.0", "--format", "json").stdout)
    assert document["schema"] == "harrow.diff-releases/1"
    assert document["metadata"] == [["kraft", "zookeeper"], ["kraft"]]
    assert "transactions_v2" in document["behaviours"]
    assert document["defaults"]["linger.ms (producer)"] == "5, before 0"
    assert json.loads(harrow("diff", "4.0", "3.9", "--format", "json").stdout)["without"] == [
        name for name, change in document["defaults"].items() if change.endswith(", new")
    ]


@pytest.mark.parametrize("named", [("4.0", "9.9"), ("9.9", "4.0")])
def test_an_unknown_release_beside_a_known_one_is_reported(harrow: Harrow, named: tuple[str, str]) -> None:
    ended = harrow("diff", *named)
    assert ended.returncode == 2
    assert "release `9.9` is not modelled; there are 0.10.2, " in ended.stderr
    assert "no such folder" not in ended.stderr


def test_an_argument_that_does_not_look_like_a_release_is_a_run(harrow: Harrow) -> None:
    assert "4.0: there is no such folder" in harrow("diff", "4.0", "unclean").stderr


def test_removed_settings_are_listed_between_releases(harrow: Harrow) -> None:
    document = json.loads(harrow("diff", "3.9", "4.0", "--format", "json").stdout)["without"]
    assert "message.timestamp.difference.max.ms (topic)" in document
    assert re.search(
        r"message\.timestamp\.difference\.max\.ms \(topic\) +in 3\.9: 2\^63 - 1, in 4\.0: no such setting",
        harrow("diff", "3.9", "4.0").stdout,
    )


def test_a_newer_release_may_come_first(harrow: Harrow) -> None:
    out = harrow("diff", "latest", "3.9").stdout
    assert out.startswith(f"Differences between Kafka {NEWEST_RELEASE} and Kafka 3.9")
    assert f"metadata in {NEWEST_RELEASE}: kraft, in 3.9: kraft or zookeeper" in out
    assert re.search(rf"cleaner_retains_empty_last_batch +in {NEWEST}: true, in 3\.9: false", out)
    assert re.search(rf"linger\.ms \(producer\) +in {NEWEST}: 5, in 3\.9: 0", out)
    assert re.search(rf"group\.protocol \(consumer\) +in {NEWEST}: classic, in 3\.9: no such setting", out)
    # Explanations of switches may say "Before", but values name their release.
    assert not re.search(r", before|, new$|removed", out, re.MULTILINE)


def test_a_folder_named_like_a_release_is_a_run(harrow: Harrow, folder: Path) -> None:
    (folder / "4.0").mkdir()
    assert harrow("diff", "4.0", "4.3").returncode == 2
