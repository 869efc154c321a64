"""The HTML page and the Markdown of a sweep: what they contain, and how a browser lays them out."""

import re
from dataclasses import replace
from html import escape, unescape
from pathlib import Path

import pytest

from harrow.campaigns.storage.location import location
from harrow.campaigns.sweep.definition import SweepSource
from harrow.campaigns.sweep.failures import WrittenFailure
from harrow.campaigns.sweep.sweep_report import BIN_RATIO, CellService, SweepReport, TimeBin
from harrow.cli.page.sweep_page import sweep_page
from harrow.cli.render.sweep.markdown import sweep_markdown
from tests.campaigns.sweep.test_sweep_screen import STATE, cell, failure, rate, report, service
from tests.cli.chromium import dom, measured, needs_chromium
from tests.cli.test_trace_page import HOSTILE, Page

SOURCE = SweepSource(campaign="c", argument="c.yaml", text="name: c\nkafka: '2.4'\n")


def served(name: str, *bins: int) -> CellService:
    """Return the service of a cell with one run in each of some bins."""
    times = tuple(
        TimeBin(from_us=BIN_RATIO**number, to_us=BIN_RATIO ** (number + 1), runs=1) for number in bins
    )
    return replace(service(name, round(BIN_RATIO ** max(bins))), runs=len(bins), outage_bins=times)


def sweep(*, cells: int = 4, text: str = "1") -> SweepReport:
    grid = [cell("base", **{"acks": text, "linger.ms": str(number)}) for number in range(cells)]
    names = [each["cell"] for each in grid]
    group = replace(failure(), promise=text, chain=f"acked > {text}", cells=dict.fromkeys(names, 2))
    return report(
        *(rate(name, number, "violated" if number else None) for number, name in enumerate(names)),
        failures=(group,),
        cells=grid,
        matrix_cells=names,
        service=tuple(served(name, 40, 50 + number % 20) for number, name in enumerate(names)),
        campaigns=[{"campaign": "c", "argument": "c.yaml"}],
        seeds=[0, 20_000],
        skipped=[{"campaign": "c", "settings": {"acks": text}, "reason": text}],
    )


def test_a_page_is_complete_and_loads_and_runs_nothing() -> None:
    text = sweep_page(sweep(), [], [SOURCE])
    page = Page(text)
    assert page.open == []
    assert page.scripts == []
    for tag, attributes in page.tags:
        assert tag not in {"link", "img", "iframe", "base", "object"}
        assert not {"src", "srcset", "action", "onclick", "onload", "style"} & attributes.keys()
        assert attributes.get("href", "#").startswith("#")  # type: ignore[union-attr]  # it has a value
    assert not re.search(r"https?://|url\(|@import", text)


def test_every_cell_is_a_row_of_each_table_and_every_column_has_a_heading() -> None:
    text = sweep_page(sweep(), [], [SOURCE])
    tables = re.findall(r"<table>.*?</table>", text, re.DOTALL)
    assert len(tables) == 3
    for table in tables:
        assert table.startswith("<table><caption><span>")
        heads, _, body = table.partition("<tbody>")
        assert body.count("<tr>") == 4
        assert heads.count("<th ") == heads.count(" scope=")
        top = heads.partition("</tr>")[0]
        spans = [int(span) for span in re.findall(r'colspan="(\d+)"', top)]
        width = top.count("<th ") - len(spans) + sum(spans)
        for line in body.split("</tr>")[:-1]:
            assert line.count("<th ") + line.count("<td") == width


def test_every_picture_has_words() -> None:
    tags = [attributes for tag, attributes in Page(sweep_page(sweep(), [], [SOURCE])).tags if tag == "svg"]
    assert len(tags) == 1 + 4 + 1 + 4
    assert all(attributes["role"] == "img" and attributes["aria-label"] for attributes in tags)


def test_longer_outages_lie_further_right_on_a_scale_that_all_cells_share() -> None:
    text = sweep_page(sweep(), [], [SOURCE])
    lefts = [
        [float(left) for left in re.findall(r"M([0-9.]+) ", path)]
        for path in re.findall(r'class="area" d="([^"]*)"', text)
    ]
    assert len({first for first, _ in lefts}) == 1, "the cells have one outage in common"
    seconds = [second for _, second in lefts]
    assert seconds == sorted(set(seconds))
    assert all(0 <= left <= 300 for left in seconds)


def test_a_failure_has_its_chain_its_commands_and_the_campaign_that_reproduces_it(tmp_path: Path) -> None:
    file = tmp_path / "failures" / "x" / "campaign.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("# Shrunk by harrow\nname: c\ndescription: <i>\n", encoding="utf-8")
    whole = sweep()
    written = WrittenFailure(group=whole.failures[0], path=location(file), shrunk=True)
    text = sweep_page(whole, [written], [SOURCE])
    assert '<ol class="chain"><li>acked</li><li>1</li></ol>' in text
    assert "<pre><code>harrow run c.yaml --seed 9 --set acks=1</code></pre>" in text
    assert "# Shrunk by harrow\nname: c\ndescription: &lt;i&gt;" in text
    assert "4 of 4 cells, most often" in text


@pytest.mark.parametrize("kind", ["missing", "damaged", "huge", "link", "link of a folder"])
def test_a_campaign_file_that_cannot_be_shown_costs_only_its_text(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "s" / "failures" / "x"
    file = folder / "campaign.yaml"
    elsewhere = tmp_path / "elsewhere" / "campaign.yaml"
    elsewhere.parent.mkdir()
    elsewhere.write_text("private", encoding="utf-8")
    (folder if kind != "link of a folder" else folder.parent).mkdir(parents=True)
    match kind:
        case "damaged":
            file.write_bytes(b"\xff")
        case "huge":
            file.write_bytes(b"#" * 1_000_001)
        case "link":
            file.symlink_to(elsewhere)
        case "link of a folder":
            folder.symlink_to(elsewhere.parent)
    whole = sweep()
    text = sweep_page(whole, [WrittenFailure(group=whole.failures[0], path=location(file), shrunk=False)], [])
    assert escape(str(file)) in text
    assert "private" not in text
    assert "<details>" not in text


def test_text_from_data_stays_text() -> None:
    source = replace(
        SOURCE, campaign=HOSTILE, argument=HOSTILE, text=HOSTILE, cluster_files={HOSTILE: HOSTILE}
    )
    text = sweep_page(sweep(text=HOSTILE), [], [source])
    page = Page(text)
    assert page.scripts == []
    assert page.open == []
    assert unescape(text).count(HOSTILE) > 10


def test_a_sweep_without_rows_has_a_page() -> None:
    text = sweep_page(SweepReport(state={**STATE, "complete": False}), [], [SOURCE])
    assert "<table>" not in text
    assert "not complete: 0 of 50 000 runs" in text


def test_the_markdown_of_a_large_sweep_fits_into_a_comment() -> None:
    text = sweep_markdown(sweep(cells=1_000), [])
    assert len(text) < 65_536
    assert "and 900 more cells" in text


def test_the_markdown_of_a_sweep_has_failures_and_a_row_for_each_cell() -> None:
    lines = sweep_markdown(sweep(), []).splitlines()
    assert lines[0] == "### harrow: sweep of c"
    assert "- ✗ **lost-write** in c, 3 times, despite 1" in lines
    assert "  - earliest: `harrow run c.yaml --seed 7 --set acks=1`" in lines
    assert "| linger.ms | lost-write, violated |" in lines
    assert "| 3 | 0.015% [0.0051, 0.044] 3 of 20 000 |" in lines


def test_text_from_data_is_literal_in_markdown() -> None:
    text = sweep_markdown(sweep(text=f"{HOSTILE}|\n*x*"), [])
    assert "<script>" not in text
    assert r"\*x\*" in text
    assert "\n*x*" not in text


@pytest.mark.parametrize("width", [400, 900, 1600])
def test_only_tables_scroll_sideways(width: int, tmp_path: Path) -> None:
    needs_chromium()
    inner = escape(sweep_page(sweep(), [], [SOURCE]))
    measure = (
        "const page = document.querySelector('iframe').contentDocument.documentElement;"
        "document.documentElement.dataset.wide = page.scrollWidth;"
        "document.documentElement.dataset.tables = page.querySelectorAll('table').length;"
    )
    frame = f'<iframe width="{width}" height="800" onload="{measure}" srcdoc="{inner}"></iframe>'
    outer = tmp_path / "outer.html"
    outer.write_text(f"<!doctype html><meta charset='utf-8'>{frame}", encoding="utf-8")
    document = dom(outer, tmp_path / "profile")
    assert measured(document, "tables") == 3
    assert measured(document, "wide") <= width
