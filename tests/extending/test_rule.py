"""A rule in a file outside harrow needs one registration, and may add kinds of chain links."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.plain_environment import PYTHONPATH, plain_environment

_RULE: Final = '''
"""acked-twice: a leader acknowledged a record more than once."""

from harrow.checks.finding import Finding
from harrow.checks.link import RecordValue, cause, link
from harrow.checks.permission import Promise
from harrow.checks.prevention import IDEMPOTENCE
from harrow.checks.rule import Rule
from harrow.cluster_model.events import BatchAcknowledged, Brokers, Number, Offset


@link("nodded", BatchAcknowledged, role="as leader", needs_nothing_because="it is a test")
def nodded(*, value: RecordValue, offset: Offset, having: Brokers = ()) -> str:
    return f"nodded at {value}{f' of {list(having)}' if having else ''}"


@cause("too-polite", needs_nothing_because="it is a test")
def too_polite(*, times: Number) -> str:
    return f"a broker nods {times} times"


def find(index):
    for _, event in index.events(BatchAcknowledged):
        yield Finding(
            partition=event.partition,
            offset=event.base_offset,
            value=event.values[0],
            chain=(
                nodded(
                    event.at_us, event.broker, value=event.values[0], offset=event.base_offset, having=(0, 1)
                ),
                too_polite.conclude(times=2),
            ),
            prevented_by=(IDEMPOTENCE,),
        )


RULE = Rule(
    name="acked-twice",
    definition="A leader that nods, nods twice.",
    source="a test",
    promise=Promise(promised_by=("good manners",)),
    find=find,
    verb="nodded at",
)
'''

_REGISTERED: Final = """
from acked_twice import RULE
from harrow.checks.rules.catalogue import RULES

RULES[RULE.name] = RULE

from harrow.cli.main import main
main()
"""

_CAMPAIGN: Final = """
cluster: {brokers: 2, topics: [{name: t, replication_factor: 2}]}
workload: {duration: 4s, producers: [{name: p}]}
script:
  - {at: 1s, do: {send: {value: m1}}}
  - {at: 2s, do: {send: {value: m2}}}
expect: {rules: {acked-twice: violated}}
"""

SENTENCE: Final = ", as leader, nodded at m1 of [0, 1]"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the rule and a run that it has judged."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "acked_twice.py").write_text(_RULE, encoding="utf-8")
    (folder / "nods.yaml").write_text(_CAMPAIGN, encoding="utf-8")
    (folder / "run.json").write_text(harrow(folder, "run", "nods.yaml", "--format", "json"), encoding="utf-8")
    return folder


def harrow(project: Path, *arguments: str) -> str:
    completed = subprocess.run(
        [sys.executable, "-P", "-c", _REGISTERED, *arguments],
        cwd=project,
        env={**plain_environment(), "PYTHONPATH": f"{project}:{PYTHONPATH}", "COLUMNS": "160"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert completed.returncode in {0, 1}, completed.stdout + completed.stderr
    return completed.stdout


def test_the_terminal_shows_the_chain_of_a_finding(project: Path) -> None:
    shown = harrow(project, "run", "nods.yaml", "--verbose", "--no-results")
    assert "nodded at m1, m2 despite good manners" in shown
    assert SENTENCE in shown
    assert "- a broker nods 2 times" in shown
    assert "prevented by" not in shown


def test_the_rule_is_listed_and_explained(project: Path) -> None:
    assert "acked-twice" in harrow(project, "list", "rules")
    assert "promised by  good manners" in harrow(project, "explain", "acked-twice")


def test_json_has_the_data_and_text_of_a_finding(project: Path) -> None:
    (run,) = json.loads((project / "run.json").read_text(encoding="utf-8"))["runs"]
    first = run["rules"]["acked-twice"]["findings"][0]
    nod, conclusion = first["chain"]
    assert (nod["event"], nod["kind"]) == ("nodded", "nodded")
    assert nod["operands"] == {"value": "m1", "offset": 0, "having": [0, 1]}
    assert nod["broker"] == nod["actor"]
    assert nod["text"].endswith(f"broker {nod['actor']}{SENTENCE}")
    assert first["because"] == f"{nod['text']}; {conclusion['text']}"
    assert first["causes"] == [{"kind": "too-polite", "operands": {"times": 2}}]
    # Its proposed prevention was tried and does not help.
    assert first["preventions"] == []
    proposed = first["tried_in_vain"][0]
    assert (proposed["kind"], proposed["name"], proposed["value"]) == (
        "setting",
        "enable.idempotence",
        "true",
    )
    assert (proposed["tried"], proposed["held"]) == (True, False)


def test_the_markdown_report_has_the_finding(project: Path) -> None:
    report = (project / "results" / "latest" / "report.md").read_text(encoding="utf-8")
    assert SENTENCE.replace("[", "\\[") in report or SENTENCE in report
    assert "a broker nods 2 times" in report


def test_a_diff_lists_the_moments_of_a_chain(project: Path) -> None:
    assert SENTENCE in harrow(project, "diff", "latest")


def test_a_trace_marks_the_event_of_a_link_in_the_lane_of_its_broker(project: Path) -> None:
    shown = harrow(project, "trace", "latest", "--around", "acked-twice:m1")
    # The lane shows the broker, and the text of the link replaces that of the event.
    assert "as leader, nodded at m1 of [0, 1]" in shown
    assert SENTENCE not in shown
    assert "a broker nods 2 times" in shown


def test_the_page_has_the_finding(project: Path) -> None:
    harrow(project, "trace", "latest", "--format", "html", "--output", "page.html")
    page = (project / "page.html").read_text(encoding="utf-8")
    assert "nodded at m1 of [0, 1]" in page
    assert "a broker nods 2 times" in page


def test_shrinking_keeps_the_finding(project: Path) -> None:
    harrow(project, "shrink", "nods.yaml", "--seed", "0", "--rule", "acked-twice", "--output", "small.yaml")
    small = (project / "small.yaml").read_text(encoding="utf-8")
    assert small.count("send:") == 1
    assert "nodded at" in small
    assert "a broker nods 2 times" in small
    assert "would have prevented" not in small
