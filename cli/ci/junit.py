"""JUnit XML for Jenkins, GitLab and GitHub's report actions."""

import re
from collections.abc import Iterable, Sequence
from typing import Final
from xml.etree import ElementTree as ET

from harrow.campaigns.version import version
from harrow.cli.ci.suite import REPRODUCE, Case, Status, Suite

_NOT_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""The characters that XML 1.0 cannot contain, even escaped."""

_ELEMENTS: Final = {Status.FAILED: "failure", Status.ERROR: "error", Status.SKIPPED: "skipped"}


def junit_xml(suites: Sequence[Suite]) -> str:
    root = ET.Element("testsuites", _totals(suites, "harrow"))
    for suite in suites:
        root.append(_suite(suite))
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _suite(suite: Suite) -> ET.Element:
    # The schema counts skipped cases only in a suite, not in the whole document.
    attributes = {**_totals([suite], suite.name), "skipped": str(suite.count(Status.SKIPPED))}
    if suite.file:
        attributes["file"] = _clean(suite.file)
    element = ET.Element("testsuite", attributes)
    properties = [("harrow.version", version()), *suite.properties]
    if suite.reproduce:
        properties.append((REPRODUCE, suite.reproduce))
    _add_properties(element, properties)
    for case in suite.cases:
        element.append(_case(suite, case))
    if suite.total:
        ET.SubElement(element, "system-out").text = _clean(suite.total)
    return element


def _case(suite: Suite, case: Case) -> ET.Element:
    attributes = {"classname": suite.name, "name": case.name, "time": _seconds(case.time_s)}
    if suite.file:
        attributes["file"] = suite.file
        if case.line:
            attributes["line"] = str(case.line)
    element = ET.Element("testcase", {name: _clean(value) for name, value in attributes.items()})
    _add_properties(element, case.properties)
    details = "\n".join(case.details)
    if case.status is Status.PASSED:
        if text := details or case.message:
            ET.SubElement(element, "system-out").text = _clean(text)
        return element
    result = ET.SubElement(element, _ELEMENTS[case.status], {"message": _clean(case.message)})
    if case.status is not Status.SKIPPED:
        result.set("type", _clean(case.name))
    if details:
        result.text = _clean(details)
    return element


def _totals(suites: Sequence[Suite], name: str) -> dict[str, str]:
    def count(status: Status) -> str:
        return str(sum(suite.count(status) for suite in suites))

    return {
        "name": _clean(name),
        "tests": str(sum(len(suite.cases) for suite in suites)),
        "failures": count(Status.FAILED),
        "errors": count(Status.ERROR),
        "time": _seconds(sum(case.time_s for suite in suites for case in suite.cases)),
    }


def _add_properties(element: ET.Element, properties: Iterable[tuple[str, str]]) -> None:
    nonempty = [(name, value) for name, value in properties if value]
    if nonempty:
        parent = ET.SubElement(element, "properties")
        for name, value in nonempty:
            ET.SubElement(parent, "property", {"name": name, "value": _clean(value)})


def _seconds(time_s: float) -> str:
    return f"{time_s:.3f}"


def _clean(text: str) -> str:
    return _NOT_XML.sub(lambda match: match.group().encode("unicode_escape", "surrogatepass").decode(), text)
