"""Writes output for GitHub Actions: annotations as workflow commands, and the step's summary table.

GitHub shows ten annotations of a level per step and silently drops the rest. So each suite gets one
annotation, and a file gets one for each mistake. If there are more than ten, the last one counts
the others and names their suites.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from harrow.campaigns.language.spelling import printable
from harrow.campaigns.record import markdown
from harrow.campaigns.storage.whole_file import open_text
from harrow.cli.ci.suite import Case, Status, Suite, in_total
from harrow.cluster_model.lazy_dataclass import replace

STEP_SUMMARY: Final = "GITHUB_STEP_SUMMARY"
"""The variable that names the file of the step's summary."""

ANNOTATIONS_MAX: Final = 10
_ROWS_MAX: Final = 100
_CASES_SHOWN: Final = 3
_TITLE_MAX: Final = 200
_MESSAGE_MAX: Final = 4_000
_WORKSPACE: Final = "GITHUB_WORKSPACE"
_LEVELS: Final = {Status.ERROR: "error", Status.FAILED: "error", Status.SKIPPED: "warning"}
_MARKS: Final = {Status.PASSED: "✅", Status.FAILED: "❌", Status.ERROR: "❌", Status.SKIPPED: "❔"}


def annotations(suites: Sequence[Suite]) -> Iterator[str]:
    """Yield at most `ANNOTATIONS_MAX` workflow commands, those for failures first."""
    shown = [part for suite in _worst_first(suites) for part in _suites_to_annotate(suite)]
    rest = shown[ANNOTATIONS_MAX - 1 :] if len(shown) > ANNOTATIONS_MAX else []
    yield from map(_annotation, shown[: len(shown) - len(rest)])
    if rest:
        names = ", ".join(printable(_place(suite)) for suite in rest)
        yield _command(
            _LEVELS[rest[0].status], {"title": f"and {len(rest)} more"}, _shortened(names, _MESSAGE_MAX)
        )


def step_summary(suites: Sequence[Suite], noun: str, total: str | None = None) -> str:
    """Return the table for the step's summary, with failures first and *total* as its heading."""
    ordered = [*_worst_first(suites), *(suite for suite in suites if suite.status is Status.PASSED)]
    rows = [
        (
            _MARKS[suite.status],
            markdown.text(suite.name),
            markdown.text(_shortened(_summary(suite), _TITLE_MAX)),
            markdown.code(suite.rerun_command()) if suite.rerun_command() else "",
        )
        for suite in ordered[:_ROWS_MAX]
    ]
    parts = [f"### harrow: {markdown.text(in_total(suites, noun) if total is None else total)}"]
    if rows:
        parts.append(markdown.table(("", noun, "what happened", "run it again"), rows))
    if len(ordered) > _ROWS_MAX:
        parts.append(f"and {len(ordered) - _ROWS_MAX} more")
    return markdown.document(parts) + "\n"


def append_step_summary(text: str) -> None:
    """Append to the summary of the step, if harrow runs in a workflow."""
    if name := os.environ.get(STEP_SUMMARY):
        with open_text(Path(name), "a") as stream:
            stream.write(text)


def _worst_first(suites: Sequence[Suite]) -> list[Suite]:
    return [suite for level in _LEVELS for suite in suites if suite.status is level]


def _suites_to_annotate(suite: Suite) -> list[Suite]:
    """Return a suite for each annotation: the suite itself, or one for each independent case."""
    if not suite.independent:
        return [suite]
    return [replace(suite, cases=(case,), summary=case.message) for case in suite.not_passed()]


def _place(suite: Suite) -> str:
    return f"{suite.name}:{suite.cases[0].line}" if suite.independent and suite.cases[0].line else suite.name


def _annotation(suite: Suite) -> str:
    failures = suite.not_passed()
    properties: dict[str, str] = {}
    if file := _in_repository(suite.file):
        properties["file"] = file
        if line := next((case.line for case in failures if case.line), 0):
            properties["line"] = str(line)
            if failures[0].line == line and failures[0].column:
                properties["col"] = str(failures[0].column)
    title = suite.total or (failures[0].message if failures else suite.summary)
    properties["title"] = _shortened(f"{suite.name}: {title}", _TITLE_MAX)
    lines = [_line(case) for case in failures[:_CASES_SHOWN]]
    if failures and not suite.total:
        lines[:1] = failures[0].details or [failures[0].message]
    if rest := failures[_CASES_SHOWN:]:
        lines.append(f"and {len(rest)} more: {', '.join(case.name for case in rest)}")
    if suite.total and failures[0].details:
        lines += failures[0].details
    message = _shortened("\n".join(lines), _MESSAGE_MAX)
    if command := suite.rerun_command():
        message += f"\n{command}"
    return _command(_LEVELS[suite.status], properties, message)


def _command(level: str, properties: dict[str, str], message: str) -> str:
    pairs = (
        f"{name}={_escaped(value).replace(':', '%3A').replace(',', '%2C')}"
        for name, value in properties.items()
    )
    return f"::{level} {','.join(pairs)}::{_escaped(message)}"


def _escaped(text: str) -> str:
    # These are the escapes of @actions/core. `printable` escapes all else that could disturb a log.
    return "%0A".join(printable(line) for line in text.replace("%", "%25").splitlines())


def _in_repository(file: str) -> str:
    """Return the path of a file from the root of the repository; empty for a file elsewhere."""
    if not file:
        return ""
    path, root = Path(file).resolve(), Path(os.environ.get(_WORKSPACE) or Path.cwd()).resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) and path.exists() else ""


def _line(case: Case) -> str:
    return f"{case.name}: {case.message}"


def _summary(suite: Suite) -> str:
    if suite.total:
        return "; ".join([suite.total, *map(_line, suite.not_passed()[:_CASES_SHOWN])])
    if suite.summary or suite.status is Status.PASSED:
        return suite.summary
    return "; ".join(case.message for case in suite.not_passed()[:_CASES_SHOWN])


def _shortened(text: str, length_max: int) -> str:
    return text if len(text) <= length_max else f"{text[: length_max - 4]} ..."
