"""HTML pages of reports: their pieces, and what text from data may do to them."""

import pytest

from harrow.cli.page.markup import Markup, element, joined, text_lines
from harrow.cli.page.report_page import cell, command, head, report_page, row_head, table, verdict

HOSTILE = "</style><script>alert(1)</script>\x1b[2J&amp;\n\"'"
ESCAPED = "&lt;/style&gt;&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[2J&amp;amp;\\n&quot;&#x27;"


def test_text_is_escaped_and_markup_is_not() -> None:
    assert element("p", HOSTILE).html == f"<p>{ESCAPED}</p>"
    assert element("p", element("b", "a & b")).html == "<p><b>a &amp; b</b></p>"
    assert joined("<", Markup("<br>"), "<").html == "&lt;<br>&lt;"


def test_values_of_attributes_are_escaped_and_missing_ones_left_out() -> None:
    whole = element("td", "1", class_=None, aria_label=HOSTILE, colspan=2)
    assert whole.html == f'<td aria-label="{ESCAPED}" colspan="2">1</td>'


def test_lines_of_a_text_stay_lines() -> None:
    assert text_lines("a: <b>\r\n\tc: \x07").html == "a: &lt;b&gt;\n\\tc: \\x07"


@pytest.mark.parametrize("status", ["held", "permitted", "violated", "inconclusive"])
def test_a_verdict_has_a_sign_beside_its_colour(status: str) -> None:
    shown = verdict(status).html
    assert f'class="{status}"' in shown
    assert not shown.partition(">")[2][0].isalpha()


def test_a_report_page_loads_nothing_and_runs_no_scripts() -> None:
    rows = [[row_head(HOSTILE), cell(HOSTILE, kind="number")]]
    whole = table(HOSTILE, [[head(HOSTILE)]], rows, label=HOSTILE)
    text = report_page(HOSTILE, [command(HOSTILE)], {HOSTILE: [whole], "nothing": []})
    assert text.count(ESCAPED) == 10
    assert "nothing" not in text.replace("loads nothing", "")
    assert "<script" not in text
    assert "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'" in text
    assert "script-src" not in text
