"""An assessment reads the same on a terminal, in Markdown, on a page, and for CI systems."""

import json
import re
from io import StringIO

import pytest

from harrow.campaigns.assess.assessment import Assessment, parse_limit
from harrow.campaigns.assess.fault_model import FaultModel
from harrow.campaigns.assess.tally import ModelTally
from harrow.campaigns.assess.trials import Damage, FaultTrial
from harrow.campaigns.language.library_index import fault_model_names, resolve
from harrow.campaigns.language.literals import LiteralError
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.language.plan import Plan
from harrow.checks.finding import HELD, INCONCLUSIVE, PERMITTED, VIOLATED
from harrow.checks.rule import DOUBLED, LOST
from harrow.cli.assess.cases import assessment_suites
from harrow.cli.assess.markdown import assessment_markdown
from harrow.cli.assess.page import assessment_page
from harrow.cli.assess.screen import show_assessment
from harrow.cli.ci.suite import Status
from harrow.cli.console import data_console, plain_text
from harrow.cluster_model.topology import BrokerSpec, ClusterSpec
from tests.plain_environment import ROOT

PLAN = Plan(campaign="any", cluster=ClusterSpec(brokers=(BrokerSpec(id=0),), topics=()))
SECOND = 1_000_000


def model(title: str, *, unfit: str = "") -> FaultModel:
    return FaultModel(
        argument=title.replace(" ", "-"),
        name=title.replace(" ", "-"),
        title=title,
        description="What happens.",
        overrides=("--cluster=shop.yaml",),
        plan=None if unfit else PLAN,
        unfit=unfit,
    )


def trial(
    seed: int,
    status: str = HELD,
    damage: Damage | None = None,
    *,
    is_struck: bool = True,
    outage_s: int = 0,
    reasons: tuple[str, ...] = (),
    broken: tuple[str, ...] = (),
) -> FaultTrial:
    return FaultTrial(
        seed=seed,
        status=status,
        reasons=reasons,
        is_struck=is_struck,
        damage=damage or {},
        broken=broken,
        longest_us=outage_s * SECOND,
        sent=10,
        acked=9,
        ack_p50_us=1_000,
        ack_p99_us=2_000,
    )


CALM = ModelTally(model=model("one broker"), trials=(trial(0, outage_s=2), trial(1, outage_s=8), trial(2)))
LOSSY = ModelTally(
    model=model("power of all brokers"),
    trials=(
        trial(0, PERMITTED, {LOST: {"acks=1": 3}}),
        trial(1, PERMITTED, {LOST: {"acks=1": 2, "log.flush.interval.messages": 40}}),
        trial(2, INCONCLUSIVE, reasons=("t-0 had no leader at the end",)),
    ),
)
BROKEN = ModelTally(
    model=model("a full disk"),
    trials=(trial(0), trial(5, VIOLATED, {DOUBLED: {None: 1}}, broken=("duplicate",))),
)
NEVER = ModelTally(
    model=model("a slow disk"), trials=(trial(0, is_struck=False, reasons=("it did not strike",)),)
)
UNFIT = ModelTally(model=model("power of one rack", unfit="no broker has a rack"))
ALL = Assessment(cluster="shop.yaml", tallies=(CALM, LOSSY, BROKEN, NEVER, UNFIT))


def screen(assessment: Assessment, width: int = 80) -> str:
    output = StringIO()
    console = data_console(no_color=True, file=output)
    console.width = width
    show_assessment(console, assessment)
    return output.getvalue()


def test_the_screen_has_a_row_for_each_fault_model_that_was_tried() -> None:
    rows = screen(ALL).splitlines()
    assert rows[0] == "shop.yaml"
    assert rows[2].split() == ["✓", "one", "broker", "-", "-", "-", "2", "s", "8", "s", "3"]
    assert rows[3].split() == ["~", "power", "of", "all", "brokers", "~", "42", "-", "-", "-", "-", "2"]
    assert rows[4].split() == ["✗", "a", "full", "disk", "-", "✗", "1", "-", "-", "-", "2"]
    assert max(map(len, rows)) <= 80


def test_the_screen_names_the_settings_that_permit_damage_with_counts() -> None:
    text = screen(ALL)
    assert (
        "~ lost, permitted by acks=1:\n    power of all brokers: in 2 of 2 runs, at most 3 records\n" in text
    )
    assert (
        "✗ doubled, although no setting permits it:\n    a full disk: in 1 of 2 runs, at most 1 record\n"
        in text
    )
    assert "a full disk: broke duplicate in 1 of 2 runs\n" in text


def test_the_heading_names_the_files_of_the_user_also_if_they_were_imported() -> None:
    imported = Assessment(cluster="results/clusters/a.yaml", tallies=(CALM,), source="server.properties")
    assert screen(imported).startswith("server.properties\n")
    assert assessment_markdown(imported).startswith("# What `server.properties` survives\n")
    assert "<h1>What server.properties survives</h1>" in assessment_page(imported)


def test_an_anomaly_without_a_column_says_why_it_is_permitted_and_where_to_read_more() -> None:
    odd = ModelTally(model=model("odd"), trials=(trial(0, PERMITTED, {"G0": {"write interleaving": 2}}),))
    assessment = Assessment(cluster="shop.yaml", tallies=(odd,))
    reason = (
        "G0, permitted by write interleaving, because Kafka does not isolate the writes of transactions "
        "from each other (`harrow explain G0`)"
    )
    assert f"~ {reason}:\n" in screen(assessment, width=200)
    assert reason.removeprefix("G0, ") in assessment_page(assessment)
    assert "What has no column is below: G0." in screen(assessment, width=200)
    (suite,) = assessment_suites(assessment)
    assert suite.cases[0].details == (f"{reason}: in 1 of 1 run, at most 2 records",)


def test_what_was_not_tried_or_not_decided_never_counts_as_survived() -> None:
    text = screen(ALL)
    assert "- not tried, power of one rack: no broker has a rack\n" in text
    assert "? undecided, a slow disk: it did not strike\n" in text
    assert "? undecided, power of all brokers: 1 of 3 runs: t-0 had no leader at the end\n" in text
    nothing = Assessment(cluster="shop.yaml", tallies=(NEVER, UNFIT))
    assert nothing.status == INCONCLUSIVE
    assert "survive" not in screen(nothing)
    skipped = {suite.name: suite.status for suite in assessment_suites(nothing)}
    assert skipped == {"a slow disk": Status.SKIPPED, "power of one rack": Status.SKIPPED}


def test_fault_models_that_were_not_tried_for_the_same_reason_share_a_line() -> None:
    others = (UNFIT, ModelTally(model=model("a failed rack", unfit="no broker has a rack")))
    assessment = Assessment(cluster="shop.yaml", tallies=(CALM, NEVER, *others))
    assert "- not tried, power of one rack, a failed rack: no broker has a rack\n" in screen(assessment)
    for text in (assessment_markdown(assessment), assessment_page(assessment)):
        assert text.count("no broker has a rack") == 1


def test_an_assessment_without_a_run_of_each_fault_model_does_not_pass() -> None:
    late = ModelTally(model=model("one disk"))
    assert Assessment(cluster="shop.yaml", tallies=(CALM, UNFIT)).status == HELD
    assert Assessment(cluster="shop.yaml", tallies=(CALM, late)).status == INCONCLUSIVE
    assert Assessment(cluster="shop.yaml", tallies=(BROKEN, late)).status == VIOLATED


def test_the_worst_run_is_that_with_the_gravest_damage_and_then_the_smallest_seed() -> None:
    assert LOSSY.worst() == LOSSY.trials[1]
    assert BROKEN.worst() == BROKEN.trials[1]
    assert CALM.worst() == CALM.trials[1]
    same = ModelTally(model=model("same"), trials=(trial(4), trial(2), trial(3)))
    assert same.worst() == same.trials[1]
    assert LOSSY.reproduce(LOSSY.trials[1]) == "harrow run power-of-all-brokers --seed 1 --cluster shop.yaml"


@pytest.mark.parametrize(
    ("limit", "exceeded"),
    [
        ("lost=0", ["power of all brokers"]),
        ("lost=42", []),
        ("doubled=0", ["a full disk"]),
        ("outage=7s", ["one broker"]),
        ("outage=8s", []),
        ("violated=0", ["a full disk"]),
        ("inconclusive=0", ["power of all brokers", "a slow disk"]),
    ],
)
def test_a_limit_is_exceeded_by_the_worst_run_of_a_fault_model(limit: str, exceeded: list[str]) -> None:
    limited = Assessment(cluster="shop.yaml", tallies=ALL.tallies, limits=(parse_limit(limit),))
    assert [tally.model.title for tally, _ in limited.exceeded()] == exceeded
    failed = [
        suite.name
        for suite in assessment_suites(limited)
        for case in suite.cases
        if case.name == limit and case.status is Status.FAILED
    ]
    assert failed == [title for title in exceeded if title != "a slow disk"]
    assert ("not as expected" in screen(limited)) == bool(exceeded)


@pytest.mark.parametrize("text", ["lost", "lost<1", "lots=0", "lost=-1", "outage=8", "=", ""])
def test_a_wrong_limit_is_refused(text: str) -> None:
    with pytest.raises(LiteralError):
        parse_limit(text)


def test_a_limit_without_a_number_does_not_suggest_its_own_key() -> None:
    with pytest.raises(LiteralError) as refused:
        parse_limit("lost")
    assert str(refused.value) == "`lost` is no limit: write for example lost=0 or outage=10s"


def test_every_format_has_the_same_figures() -> None:
    document = json.loads(json.dumps(ALL.as_mapping()))
    by_name = {entry["name"]: entry for entry in document["models"]}
    assert document["verdict"] == VIOLATED
    assert by_name["power-of-all-brokers"]["records"] == {"lost": 42, "doubled": 0, "reordered": 0}
    assert by_name["power-of-one-rack"]["not_tried"] == "no broker has a rack"
    markdown, page = assessment_markdown(ALL), assessment_page(ALL)
    assert "| power of all brokers | permitted | 42 (permitted) | 0 | 0 | 0 ms | 0 ms | 2 |" in markdown
    for text in (markdown, page):
        assert "harrow run power-of-all-brokers --seed 1 --cluster shop.yaml" in text
        assert "no broker has a rack" in text
        assert "broke duplicate in 1 of 2 runs" in text
        assert "1 of 3 runs: t-0 had no leader at the end" in text


def test_a_hostile_title_or_setting_stays_text_in_every_format() -> None:
    hostile = "\x1b[31m<script>alert(1)</script>\n::error::| `x`"
    tally = ModelTally(
        model=FaultModel(
            argument="m.yaml",
            name="m",
            title=hostile,
            description=hostile,
            overrides=(),
            plan=PLAN,
        ),
        trials=(trial(0, PERMITTED, {LOST: {hostile: 1}}),),
    )
    assessment = Assessment(cluster=hostile, tallies=(tally,))
    for text in (screen(assessment), assessment_markdown(assessment), assessment_page(assessment)):
        assert "\x1b" not in text
        assert not any(line.startswith("::error") for line in text.splitlines())
    assert "<script>" not in assessment_page(assessment)
    # The name of the cluster is code, which Markdown shows literally.
    assert "<script>" not in assessment_markdown(assessment).split("survives", 1)[1]
    assert "\x1b" not in plain_text(
        *(case.message for suite in assessment_suites(assessment) for case in suite.cases)
    )


def test_the_screens_on_the_pages_name_each_fault_model() -> None:
    titles = {load_campaign(resolve(name)[0]).plans[0].title for name in fault_model_names()}
    readme, page = (
        (ROOT / name).read_text(encoding="utf-8")
        for name in ("README.md", "docs/how-to/what-do-my-settings-survive.md")
    )
    row = re.compile(r"^[✓~✗]  (\S(?:\S| (?! ))*)", re.MULTILINE)
    (not_tried,) = re.findall(r"^- not tried, ([^:]*):", page, re.MULTILINE)
    assert sorted([*row.findall(page), *not_tried.split(", ")]) == sorted(titles)
    assert row.findall(readme) == row.findall(page)
    assert f"{len(titles)}" == "17", "the pages say seventeen fault models"
