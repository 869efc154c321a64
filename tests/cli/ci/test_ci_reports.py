"""JUnit XML and workflow commands stay valid for hostile texts."""

from io import StringIO

from junitparser import JUnitXml
from rich.console import Console

from harrow.campaigns.record import markdown
from harrow.cli.ci.github import annotations, step_summary
from harrow.cli.ci.junit import junit_xml
from harrow.cli.ci.run_suites import RunSuites
from harrow.cli.ci.suite import EXPECTATIONS, Case, Status, Suite, in_total, note_suite
from harrow.cli.commands.run_tally import Tally
from harrow.cli.requests.run import RunRequest
from harrow.cli.session import write_suites

ODD = "50% of a,b: c\r\n::error::<&>\x00\x1b[31m\ud800|`x`"


def odd_suite() -> Suite:
    case = Case(
        name=ODD, status=Status.FAILED, message=ODD, details=(ODD, ODD), properties=(("reproduce", ODD),)
    )
    return Suite(name=ODD, cases=(case,), summary=ODD)


def test_junit_is_valid_xml_for_any_record_value() -> None:
    (suite,) = JUnitXml.fromstring(junit_xml([odd_suite()]).encode())
    (case,) = suite
    assert "\\x00\\x1b[31m\\ud800|" in case.result[0].text
    assert "50% of a,b: c" in case.name


def test_an_annotation_is_one_command_whatever_its_text() -> None:
    (line,) = annotations([odd_suite()])
    assert line.startswith("::error title=50%25 of a%2Cb%3A c\\r\\n%3A%3Aerror%3A%3A<&>")
    assert line.count("\n") == line.count("\r") == 0
    assert "\x1b" not in line
    assert "50%25 of a,b: c\\r\\n::error::" in line.partition("::50")[1] + line.partition("::50")[2]


def test_a_hostile_text_stays_one_row_of_the_summary() -> None:
    lines = step_summary([odd_suite()], "campaign").splitlines()
    (row,) = [line for line in lines if line.startswith("| ❌")]
    assert row.replace(r"\|", "").count("|") == 5
    assert "<&>" not in row.partition("`")[0]


def test_at_most_ten_annotations_are_shown() -> None:
    several = [note_suite(str(number), "undecided") for number in range(10)]
    assert len(list(annotations(several))) == 10
    shown = list(annotations([*several, odd_suite()]))
    assert len(shown) == 10
    assert shown[0].startswith("::error ")
    assert shown[-1].startswith("::warning title=and 2 more::")


def test_a_step_summary_of_thousands_of_suites_stays_small() -> None:
    text = step_summary([odd_suite()] * 3_000, "campaign")
    assert len(text.encode()) < 1_000_000
    assert "and 2900 more" in text


def test_the_status_of_a_suite_is_that_of_its_expectations_unless_a_case_failed() -> None:
    undecided = Case(name="lost-write", status=Status.SKIPPED)
    met = Case(name=EXPECTATIONS)
    assert Suite(name="s", cases=(undecided, met)).status is Status.PASSED
    failed = Case(name="duplicate", status=Status.FAILED)
    assert Suite(name="s", cases=(undecided, met, failed)).status is Status.FAILED
    assert Suite(name="s", cases=()).status is Status.SKIPPED


def test_counts_have_singular_and_plural() -> None:
    assert in_total([odd_suite()], "entry") == "1 entry: 1 failed"
    assert in_total([odd_suite()] * 2, "entry") == "2 entries: 2 failed"
    assert in_total([], "entry") == "0 entries: nothing ran"


def test_text_in_markdown_is_shown_literally() -> None:
    assert markdown.text("a_b *c* <d> `e` [f] [g](h)") == r"a_b \*c\* &lt;d&gt; \`e\` [f] [g\](h)"
    assert markdown.text("::error::x") == r"\::error::x"
    assert markdown.code("a`b") == "``a`b``"
    assert markdown.code("`") == "`` ` ``"
    assert markdown.table(("a",), [("x|y\nz",)]) == "| a |\n| --- |\n| x\\|y z |"


def test_an_interrupted_report_is_marked_incomplete() -> None:
    printed = StringIO()
    request = RunRequest(campaigns=[], output_format="junit")
    console = Console(file=printed)
    printer = RunSuites(lambda suites, total: write_suites(console, request, suites, "campaign", total))
    printer.finish(Tally(planned=3, interrupted=True))
    (suite,) = JUnitXml.fromstring(printed.getvalue().encode())
    (case,) = suite
    assert (suite.name, case.name, case.is_skipped) == ("harrow", "complete", True)
    assert case.result[0].message == "interrupted: 0 of 3 runs finished"
