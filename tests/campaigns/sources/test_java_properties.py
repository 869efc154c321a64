"""`.properties` files are read as `java.util.Properties` reads them."""

from io import BytesIO

import pytest

from harrow.campaigns.language.problem import CampaignError
from harrow.campaigns.sources.java_properties import properties_of
from harrow.campaigns.sources.source_text import stream_text


def read(text: str) -> list[tuple[int, str, str]]:
    return [(prop.line, prop.name, prop.value) for prop in properties_of(text, "f")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("! no\n  a = b \\\n   c\nd\\:e:f\\u0041\n\nempty\nlast=x=y\n",
         [(2, "a", "b c"), (4, "d:e", "fA"), (6, "empty", ""), (7, "last", "x=y")]),
        ("a=1\r\nb=2\rc=3\n\rd=4", [(1, "a", "1"), (2, "b", "2"), (3, "c", "3"), (5, "d", "4")]),
        ("a=\\\r\n  1\r\nb=2", [(1, "a", "1"), (3, "b", "2")]),
        ("# a comment goes on to its own end \\\na=1\n", [(2, "a", "1")]),
        ("a=1\\\n# no comment\nb=2\n", [(1, "a", "1# no comment"), (3, "b", "2")]),
        ("a=1\\\n\nb=2\n", [(1, "a", "1"), (3, "b", "2")]),
        ("a=1\\", [(1, "a", "1")]),
        ("\\\n\na=1", [(3, "a", "1")]),
        ("a=1\\\\\nb=2", [(1, "a", "1\\"), (2, "b", "2")]),
        ("a\\ b c", [(1, "a b", "c")]),
        ("a\u00a0b=c", [(1, "a\u00a0b", "c")]),
        ("a=\\t\\q\\\\u0041", [(1, "a", "q\\u0041")]),
        ("a=x\\ty", [(1, "a", "x\ty")]),
        ("a=\\ud83d\\uDE00", [(1, "a", "\U0001f600")]),
        ("a=1\n a : 2", [(1, "a", "1"), (2, "a", "2")]),
        ("", []),
    ],
)  # fmt: skip
def test_properties_are_read_as_java_reads_them(text: str, expected: list[tuple[int, str, str]]) -> None:
    assert read(text) == expected


@pytest.mark.parametrize("char", "\f\v\x1c\x1d\x1e\x85\u2028\u2029")
def test_only_line_feeds_and_carriage_returns_end_a_line(char: str) -> None:
    assert read(f"# comment{char}a=1\nb=x{char}y\n") == [(2, "b", f"x{char}y")]


@pytest.mark.parametrize("escape", ["\\u12", "\\uxyzw", "\\u", "\\ud83d", "\\ude00\\ud83d"])
def test_an_escape_sequence_that_is_no_character_has_its_line(escape: str) -> None:
    with pytest.raises(CampaignError, match=r"^f:2:1: "):
        read(f"a=1\nb={escape}\n")


def test_a_file_that_is_not_utf_8_is_read_as_latin_1() -> None:
    assert stream_text(BytesIO("ä=ü".encode()), "x") == "ä=ü"
    assert stream_text(BytesIO("ä=ü".encode("latin-1")), "x") == "ä=ü"


def test_a_byte_order_mark_belongs_to_the_first_name() -> None:
    assert read(stream_text(BytesIO(b"\xef\xbb\xbfa=1\nb=2"), "x")) == [(1, "\ufeffa", "1"), (2, "b", "2")]
