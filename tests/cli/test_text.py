"""Data on a console never begins a line, moves the cursor, or becomes a command to a CI system."""

from io import StringIO

import pytest
from rich.table import Table

from harrow.cli.console import data_console, plain_text, say, show
from harrow.cli.output_stream import OutputStream
from harrow.cli.text import Text, lines

HOSTILE = "a\n::error::b\x1b[31m\x9b1m\u202ec\u2028d\ud800"
HARMLESS = r"a\n::error::b\x1b[31m\x9b1m\u202ec\u2028d\ud800"


def table_of(cell: "Text | str") -> Table:
    table = Table.grid()
    table.add_column()
    table.add_row(cell)
    return table


@pytest.mark.parametrize(
    "renderable",
    [HOSTILE, Text(HOSTILE), Text.assemble((HOSTILE, "red")), Text().append(HOSTILE), table_of(HOSTILE)],
    ids=["string", "text", "assembled", "appended", "cell"],
)
def test_data_never_breaks_a_line(renderable: "Text | str | Table") -> None:
    assert plain_text(renderable) == f"{HARMLESS}\n"


def test_a_message_is_one_line_whatever_it_quotes() -> None:
    stream = StringIO()
    say(data_console(file=stream), HOSTILE)
    assert stream.getvalue() == f"harrow: {HARMLESS}\n"


def test_a_layout_keeps_its_line_breaks() -> None:
    assert plain_text(lines(["a", Text("b\nc")])) == "a\nb\\nc\n"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (["::error::a\n"], ":\\x3aerror::a\n"),
        (["a\n \t::error::b"], "a\n \t:\\x3aerror::b"),
        (["a ::error::b\n"], "a ::error::b\n"),
        (["a", "::error::b\n", "::c"], "a::error::b\n:\\x3ac"),
        ([" ", " :", ":error::a"], "  :\\x3aerror::a"),
        (["  ", "::error::a"], "  :\\x3aerror::a"),
        (["a ##[error]b ##[c"], "a ##\\x5berror]b ##\\x5bc"),
        (["a ##vso[task.complete]\n"], "a ##vso\\x5btask.complete]\n"),
        (["a #", "#", "vs", "o[b"], "a ##vso\\x5bb"),
        (["##\n", "[b] ## [c]"], "##\n[b] ## [c]"),
        (["\x1b[2J\x9b1m\u202e\u2028\r\t\n"], "\\x1b[2J\\x9b1m\\u202e\\u2028\\r\t\n"),
    ],
)
def test_no_output_line_is_a_ci_command(written: list[str], shown: str) -> None:
    stream = StringIO()
    guarded = OutputStream(stream)
    guarded.writelines(written)
    assert stream.getvalue() == shown


def test_a_line_wrapped_before_a_command_does_not_begin_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    stream = StringIO()
    show(data_console(file=stream), Text("a wide message then ::error::planted"))
    assert stream.getvalue().splitlines() == ["a wide message then", r":\x3aerror::planted"]


def test_annotations_are_commands() -> None:
    stream = StringIO()
    OutputStream(stream).commands(["::error::a\n"])
    assert stream.getvalue() == "::error::a\n"


def test_only_requested_colours_pass_the_output_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    stream = StringIO()
    OutputStream(stream).write("\x1b[31mred\x1b[0m\x1b[2J")
    assert stream.getvalue() == "\x1b[31mred\x1b[0m\\x1b[2J"
