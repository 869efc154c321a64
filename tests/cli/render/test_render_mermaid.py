"""A sequence diagram follows Mermaid's grammar, whatever the names are."""

import re
from pathlib import Path

import pytest

from harrow.campaigns.story.trace_selection import Window, rows_around, whole_story
from harrow.campaigns.story.trace_story import read_story
from harrow.cli.render.mermaid import escaped, mermaid
from tests.written_runs import written_run

_TEXT = r"[^\n;#]*(?:#\d+;[^\n;#]*)*"
_LINE = re.compile(
    rf" +(?:participant L\d+ as {_TEXT}|Note over L\d+(?:,L\d+)?: {_TEXT}|L\d+-?->>L\d+: {_TEXT}"
    r"|rect rgba\([0-9., ]+\)|end)"
)


@pytest.mark.parametrize(
    ("campaign", "variant"), [("loss-by-hw-truncation", None), ("ack-lost", None), ("standard", None)]
)
def test_every_line_follows_the_grammar_of_mermaid(
    tmp_path: Path, campaign: str, variant: str | None
) -> None:
    story = read_story(written_run(tmp_path, campaign, variant))
    texts = [mermaid(story, whole_story(story, Window()))]
    texts += [mermaid(story, rows_around(story, finding, Window())) for finding in story.findings]
    for text in texts:
        first, *lines = text.splitlines()
        assert first == "sequenceDiagram"
        assert [line for line in lines if not _LINE.fullmatch(line)] == []
        used = set(re.findall(r"\bL\d+\b", text))
        declared = re.findall(r"participant (L\d+)", text)
        assert sorted(used) == sorted(declared)
        assert text.count("rect ") == len([line for line in lines if line.strip() == "end"])


@pytest.mark.parametrize(
    "text",
    [
        "end",
        "the end; of #1",
        "a->>b: c",
        "%%{init}%%",
        "<script>",
        "line\nbreak",
        '"quoted"',
        "`x`",
        "A\\nB",
    ],
)
def test_a_text_contains_no_syntax(text: str) -> None:
    code = escaped(text)
    assert re.fullmatch(_TEXT, code)
    assert not re.search(r"[<>{}%\"`\\\n]|\bend\b", code)
    assert re.sub(r"#(\d+);", lambda match: chr(int(match[1])), code) == text


def test_arrows_point_from_the_sender_of_records_to_the_receiver(tmp_path: Path) -> None:
    story = read_story(written_run(tmp_path, "loss-by-hw-truncation"))
    text = mermaid(story, whole_story(story, Window()))
    names = dict(re.findall(r"participant (L\d+) as (.*)", text))
    arrows = [
        (names[sender], names[receiver], text.split(maxsplit=1)[1])
        for sender, receiver, text in re.findall(r"(L\d+)-?->>(L\d+): (.*)", text)
    ]
    assert ("producer-0", "broker 0", "appended m1 at offset 1, epoch 0") in arrows
    assert ("broker 0", "broker 1", "copied m1 to offset 1") in arrows
    assert ("broker 0", "producer-0", "ACKED m1 at offset 1 (acks=all)") in arrows
