"""The report of a run has JSON, a sentence for each anomaly, and the command that repeats it."""

import json
import shlex
from dataclasses import replace
from typing import Any

import pytest

from harrow.campaigns.language.plan import Expectation
from harrow.campaigns.record.markdown_report import markdown_report
from harrow.campaigns.record.report import (
    AS_EXPECTED,
    OTHERWISE,
    UNDECIDED,
    UNEXPECTED,
    FindingGroup,
    anomalies,
    difference_text,
    document,
    in_short,
    in_short_by,
    outcome,
    reason,
    repaired_flaws,
    reproduce_command,
    run_as_mapping,
    run_id,
)
from harrow.campaigns.run.run_result import MissedExpectation, RealTarget, ReleaseDifference
from harrow.campaigns.version import short_model_digest, version
from harrow.checks.finding import (
    HELD,
    INCONCLUSIVE,
    PERMITTED,
    SKIPPED,
    VIOLATED,
    Finding,
    RuleResult,
    Verdict,
    worst,
)
from harrow.checks.prevention import BEHAVIOUR, KIP_101, KIP_320, Prevention, Remedy
from harrow.checks.rules.catalogue import RULES
from harrow.cli.commands.run_tally import exit_code_of
from tests.campaigns.record.run_results import TEXTS, failed_run, lost_record, plan, run_result, verdict

REPRODUCE = "harrow run loss --seed 0"


def remedy(**switches: bool | str) -> dict[str, Any]:
    """Return the data of a remedy that is a switch."""
    return {"settings": {}, "release": None, "switches": switches, "fields": {}}


def trial(outcome: str) -> dict[str, Any]:
    return {
        "outcome": outcome,
        "reason": "",
        "verdict": "held",
        "struck": ["broker_crash"],
        "missing": [],
        "is_finished": True,
        "options": [],
        "is_drawn": False,
        "digest": "",
        "refuted_by": None,
    }


def test_the_json_of_a_run_follows_the_interface() -> None:
    result = run_result(lost_record("m1"))
    run = json.loads(json.dumps(run_as_mapping(result, REPRODUCE)))
    assert run["campaign"] == "loss"
    assert len(run["plan_digest"]) == 16
    assert (run["seed"], run["verdict"], run["variant"], run["expected"]) == (0, "violated", None, True)
    assert (run["trace_digest"], run["events"], run["simulated_ms"], run["wall_ms"]) == (
        result.trace_digest,
        118,
        9000,
        4,
    )
    assert run["rules"]["lost-write"] == {
        "status": "violated",
        "count": 1,
        "promise": "acks=all",
        "findings": [
            {
                "partition": "t-0",
                "offset": 1,
                "value": "m1",
                "because": "; ".join(TEXTS),
                "chain": [
                    {
                        "event": "acked",
                        "at_ms": 1200,
                        "broker": 0,
                        "offset": 1,
                        "text": TEXTS[0],
                        "actor": 0,
                        "kind": "acked",
                        "operands": {"value": "m1", "acks": -1, "offset": 1},
                    },
                    {
                        "event": "truncated",
                        "at_ms": 1400.5,
                        "broker": 1,
                        "offset": 1,
                        "text": TEXTS[1],
                        "actor": 1,
                        "kind": "truncated",
                        "operands": {"leo": 1, "reason": "high watermark", "offset": 1, "value": "m1"},
                    },
                    {
                        "event": "conclusion",
                        "text": TEXTS[2],
                        "kind": "committed-record-lost",
                        "operands": {"value": "m1"},
                    },
                ],
                "causes": [{"kind": "committed-record-lost", "operands": {"value": "m1"}}],
                "prevented_by": [f"{KIP_101.text} (confirmed by a rerun)"],
                "preventions": [
                    {
                        "kind": "repair",
                        "name": "KIP-101",
                        "value": "0.11",
                        "tried": True,
                        "held": True,
                        "text": KIP_101.text,
                        "meaning": KIP_101.text,
                        "remedy": remedy(follower_truncation="leader_epoch"),
                        "trial": trial("held"),
                    }
                ],
                "tried_in_vain": [
                    {
                        "kind": "repair",
                        "name": "KIP-320",
                        "value": "2.1",
                        "tried": True,
                        "held": False,
                        "text": KIP_320.text,
                        "meaning": KIP_320.text,
                        "remedy": remedy(fetch_leader_epoch_fencing=True),
                        "trial": trial("refuted"),
                    }
                ],
                "not_tried": [],
                "no_remedy": [],
                "offsets": [1, 2],
                "count": 1,
                "members": [{"partition": "t-0", "offset": 1, "value": "m1"}],
            }
        ],
    }
    assert run["rules"]["duplicate"]["status"] == "held"
    assert run["rules"]["duplicate"]["count"] == 0
    assert run["faults"] == [{"at_ms": 1200.5, "fault": "broker_crash", "broker": 1, "restart_after": None}]
    assert run["probes"] == {"truncated-below-hw": 1, "isr-shrank-to-one": 0}
    assert run["replicas"] == {
        "t-0": {
            "0": {"leo": 1, "hw": 1, "epochs": [[0, 0]]},
            "1": {"leo": 1, "hw": 1, "epochs": [[0, 0]]},
        }
    }
    assert run["reproduce"] == REPRODUCE


def test_a_permitted_finding_names_the_setting_that_permits_it() -> None:
    run = run_as_mapping(run_result(lost_record("m1", permitted_by="acks=1")), REPRODUCE)
    assert run["rules"]["lost-write"]["findings"][0]["permitted_by"] == "acks=1"


def test_missed_expectations_are_in_the_json() -> None:
    run = run_as_mapping(failed_run(), REPRODUCE)
    assert run["expected"] is False
    assert {"line": 42, "message": "m1 is not acked"} in run["missed"]


def test_the_document_has_the_worst_verdict() -> None:
    runs = [run_as_mapping(run, REPRODUCE) for run in (run_result(), run_result(lost_record("m1")))]
    report = document(runs)
    assert (report["schema"], report["version"], report["verdict"]) == ("harrow.run/1", version(), VIOLATED)
    assert len(report["runs"]) == 2


def test_a_document_without_runs_is_inconclusive() -> None:
    assert document([])["verdict"] == INCONCLUSIVE


def test_the_worst_verdict_has_a_fixed_order() -> None:
    assert worst([HELD, PERMITTED]) == PERMITTED
    assert worst([PERMITTED, INCONCLUSIVE]) == INCONCLUSIVE
    assert worst([VIOLATED, INCONCLUSIVE, HELD]) == VIOLATED


@pytest.mark.parametrize(
    ("findings", "sentences"),
    [
        ((), []),
        ((lost_record("m1"),), ["lost m1 despite acks=all"]),
        ((lost_record("m1"), lost_record("m2")), ["lost m1, m2 despite acks=all"]),
        ((lost_record("m1", permitted_by="acks=0"),), ["lost m1, permitted by acks=0"]),
        (
            (lost_record("m1", permitted_by="acks=1"), lost_record("m2")),
            ["lost m2 despite acks=all", "lost m1, permitted by acks=1"],
        ),
    ],
)
def test_an_anomaly_has_its_sentence(findings: tuple[Finding, ...], sentences: list[str]) -> None:
    assert [anomaly.sentence() for anomaly in anomalies(run_result(*findings))] == sentences


def test_a_sentence_shortens_a_long_list_of_records() -> None:
    (anomaly,) = anomalies(run_result(*(lost_record(f"m{number}") for number in range(9))))
    assert anomaly.anomaly_text() == "lost m0, m1, m2, m3 and 5 more"


def test_an_anomaly_about_a_place_in_the_log_is_shown_with_the_place() -> None:
    finding = Finding(partition="t-0", offset=1, value="m2", chain=())
    rules = {
        "inconsistent-offsets": RuleResult(status=VIOLATED, promise="high watermark", findings=(finding,))
    }
    result = run_result(verdict=Verdict(status=VIOLATED, rules=rules))
    assert [anomaly.anomaly_text() for anomaly in anomalies(result)] == [
        "different records read at t-0 offset 1"
    ]


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_has_its_own_verb(rule: str) -> None:
    finding = Finding(partition="t-0", offset=1, value="m2", chain=())
    what = FindingGroup(rule=rule, promise="", permitted_by=None, findings=(finding,)).anomaly_text()
    assert not what.startswith((f"{rule} t-0", f"{rule} m2"))


def test_an_unserved_partition_is_shown_as_the_place_of_an_unavailable_core() -> None:
    finding = Finding(partition="t-0", offset=1, value="m2", chain=())
    anomaly = FindingGroup(rule="unavailable", promise="", permitted_by=None, findings=(finding,))
    assert anomaly.anomaly_text() == "a healed core did not serve t-0 offset 1"


def test_a_rule_without_a_verb_is_shown_by_its_name() -> None:
    rules = {
        "new-rule": RuleResult(status=VIOLATED, promise="", findings=(Finding(partition="t-0", chain=()),))
    }
    result = run_result(verdict=Verdict(status=VIOLATED, rules=rules))
    assert [anomaly.sentence() for anomaly in anomalies(result)] == [
        "new-rule t-0 with nothing that permits it"
    ]


def test_the_command_that_reproduces_a_run_is_quoted_for_a_shell() -> None:
    command = reproduce_command("my file.yaml", 7, "0.11", ["acks=all", "name=a b"])
    assert shlex.split(command) == [
        *("harrow", "run", "my file.yaml", "--seed", "7"),
        *("--variant", "0.11", "--set", "acks=all", "--set", "name=a b"),
    ]


def test_a_run_has_the_same_id_everywhere() -> None:
    assert (
        run_id(run_result(seed=7)) == f"{run_result().plan.digest()[:8]}-7-{version()}-{short_model_digest()}"
    )
    assert run_id(run_result(wall_ms=1)) == run_id(run_result(wall_ms=2))


def test_a_run_has_the_outcome_and_exit_code_of_its_verdict() -> None:
    undecided = verdict(status=INCONCLUSIVE)
    anything = plan(expect=Expectation())
    assert outcome(run_result(lost_record("m1"))) == AS_EXPECTED
    assert outcome(failed_run()) == UNEXPECTED
    assert outcome(run_result(plan=anything, verdict=undecided)) == UNDECIDED
    assert outcome(failed_run(verdict=undecided, missed=())) == UNDECIDED
    assert (
        outcome(run_result(plan=plan(expect=Expectation(verdict=INCONCLUSIVE)), verdict=undecided))
        == AS_EXPECTED
    )


def test_a_failed_step_decides_even_an_inconclusive_run() -> None:
    missed = (MissedExpectation(line=42, message="LEO is 1, expected 2"),)
    assert outcome(failed_run(verdict=verdict(status=INCONCLUSIVE), missed=missed)) == UNEXPECTED


ON_ANOTHER_RELEASE = plan(
    expect=Expectation(verdict=PERMITTED, rules=(("lost-write", PERMITTED),)), written_for="Kafka 2.4"
)


def test_missing_the_expectations_for_another_release_is_not_a_failure() -> None:
    missed = (MissedExpectation(line=42, message="LEO is 1, expected 2"),)
    held = failed_run(plan=ON_ANOTHER_RELEASE, verdict=verdict(status=HELD), missed=missed)
    assert outcome(held) == OTHERWISE
    undecided = failed_run(plan=ON_ANOTHER_RELEASE, verdict=verdict(status=INCONCLUSIVE), missed=missed)
    assert outcome(undecided) == UNDECIDED


def test_a_violation_on_another_release_is_a_failure() -> None:
    broken = verdict(lost_record("m1"))
    assert outcome(failed_run(plan=ON_ANOTHER_RELEASE, verdict=broken)) == UNEXPECTED
    foreseen = plan(expect=Expectation(rules=(("lost-write", VIOLATED),), lost=()), written_for="Kafka 2.4")
    assert outcome(failed_run(plan=foreseen, verdict=broken)) == OTHERWISE


WITHOUT_FLAW = plan(behaviours={"unknown_producer_sequence_is_zero": True}, written_for="brokers with that")
BROKERS = RealTarget(kind="kafka", release="4.4.0", metadata="kraft", began="")


@pytest.mark.parametrize(
    ("proposed", "switches", "expected"),
    [
        (
            ("unknown_producer_sequence_is_zero",),
            ("unknown_producer_sequence_is_zero",),
            OTHERWISE,
        ),
        (("ack_waits_for_hw",), (), UNEXPECTED),
        ((), (), UNEXPECTED),
    ],
)
def test_a_violation_explained_by_a_flaw_that_the_campaign_mends_is_not_a_failure(
    proposed: tuple[str, ...], switches: tuple[str, ...], expected: str
) -> None:
    ways = tuple(
        Prevention(BEHAVIOUR, name, True, name, Remedy(switches=((name, True),))) for name in proposed
    )
    broken = verdict(replace(lost_record("m1"), prevented_by=ways))
    result = failed_run(plan=WITHOUT_FLAW, verdict=broken, target=BROKERS)
    assert repaired_flaws(result) == switches
    assert outcome(result) == expected
    other = verdict(replace(lost_record("m1"), prevented_by=ways), lost_record("m2"))
    assert repaired_flaws(failed_run(plan=WITHOUT_FLAW, verdict=other, target=BROKERS)) == ()
    assert repaired_flaws(failed_run(plan=WITHOUT_FLAW, verdict=broken)) == ()


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ((), 3),
        ((OTHERWISE, AS_EXPECTED), 0),
        ((OTHERWISE, UNDECIDED), 3),
        ((AS_EXPECTED, AS_EXPECTED), 0),
        ((AS_EXPECTED, UNDECIDED), 3),
        ((AS_EXPECTED, UNEXPECTED, UNDECIDED), 1),
    ],
)
def test_the_worst_run_decides_the_exit_code(outcomes: tuple[str, ...], code: int) -> None:
    assert exit_code_of(outcomes) == code


def test_report_md_has_every_section() -> None:
    text = markdown_report(failed_run(), REPRODUCE)
    for wanted in (
        "# loss",
        "**UNEXPECTED**",
        "lost m1 despite acks=all",
        "| lost-write | violated | 1 | acks=all |",
        *(f"  - {text}" for text in TEXTS),
        f"  - prevented by this (confirmed by a rerun):\n    - {KIP_101.text}",
        "line 42: m1 is not acked",
        "| 1.2005 s | broker_crash | broker=1 restart_after=- |",
        "| t-0 | 0 | 1 | 1 | 0@0 | m0 |",
        f"```console\n$ {REPRODUCE}\n```",
        "</details>",
    ):
        assert wanted in text


def judged_rules(**statuses: str) -> dict[str, RuleResult]:
    by_status = {
        VIOLATED: (lost_record("m2"),),
        PERMITTED: (lost_record("m1", permitted_by="acks=1"),),
        HELD: (),
    }
    return {
        name.replace("_", "-"): RuleResult(status=status, promise="p", findings=by_status[status])
        for name, status in statuses.items()
    }


def test_a_violated_invariant_comes_before_permitted_anomalies() -> None:
    rules = judged_rules(lost_write=PERMITTED, duplicate=HELD, hw_monotonic=VIOLATED)
    assert in_short_by(rules) == "hw-monotonic broken in t-0 offset 1 despite p; and 1 permitted"
    result = run_result(verdict=Verdict(status=VIOLATED, rules=rules))
    assert list(run_as_mapping(result, REPRODUCE)["rules"]) == ["hw-monotonic", "lost-write", "duplicate"]
    report = markdown_report(result, REPRODUCE)
    assert report.index("**hw-monotonic**") < report.index("**lost-write**")
    assert report.index("| hw-monotonic |") < report.index("| lost-write |")


def test_invariants_are_left_out_if_clients_saw_anomalies() -> None:
    broken = judged_rules(lost_write=VIOLATED, hw_monotonic=VIOLATED)
    assert in_short_by(broken) == "lost m2 despite p"
    permitted = judged_rules(lost_write=PERMITTED, log_matching=PERMITTED)
    assert in_short_by(permitted) == "lost m1, permitted by acks=1"


def test_every_verdict_but_held_has_a_reason() -> None:
    waited = "step 2 of the script waited in vain"
    for status in (INCONCLUSIVE, SKIPPED):
        assert reason(run_result(verdict=verdict(status=status, reasons=(waited,)))) == waited
        several = verdict(status=status, reasons=(waited, "t-0 was not read back"))
        assert reason(run_result(verdict=several)) == f"{waited}, and 1 more"
    rules = {"lost-write": RuleResult(status=INCONCLUSIVE, promise="", findings=())}
    silent = Verdict(status=INCONCLUSIVE, rules=rules, reasons=())
    assert reason(run_result(verdict=silent)) == "not judged: lost-write"
    assert reason(failed_run()).startswith("lost m1")


def test_a_run_names_the_expectation_that_it_missed() -> None:
    missed = (MissedExpectation(line=0, message="the verdict is held, expected violated"),)
    assert reason(run_result(missed=missed, expected=False)) == missed[0].message


def test_the_behaviour_that_makes_the_difference_is_the_reason_and_is_in_the_json() -> None:
    difference = ReleaseDifference(
        switch="follower_truncation", value="high_watermark", since="0.11", step=10
    )
    run = run_result(difference=difference)
    assert reason(run) == (
        "the outcome differs, step 10 waits for something that does not happen: KIP-101, since 0.11 "
        "(tried: with behaviours.follower_truncation=high_watermark it happens)"
    )
    mapping = run_as_mapping(run, REPRODUCE)
    assert mapping["reason"] == reason(run)
    assert mapping["difference"]["switch"] == "follower_truncation"
    assert reason(run) in markdown_report(run, REPRODUCE)


def test_the_behaviour_that_makes_the_difference_follows_the_finding() -> None:
    difference = ReleaseDifference(switch="producer_bumps_epoch", value=False, since="2.5", step=None)
    run = failed_run(difference=difference)
    assert reason(run) == f"{in_short(run)}; {difference_text(run, difference)}"
    assert markdown_report(run, REPRODUCE).count(in_short(run)) == 1


@pytest.mark.parametrize(
    ("release", "switch", "value", "since", "text"),
    [
        ("2.0", "producer_fenced_error", True, None, "Kafka 2.0 lacks this: a coordinator tells a producer"),
        ("3.6", "stale_fetch_response_ignored", True, None, "Kafka 3.6 lacks KAFKA-18991 (tried"),
        ("1.1", "follower_truncation", "answered_epoch", None, "Kafka 1.1 lacks KIP-279 (tried"),
        ("3.9", "producer_fenced_error", False, "2.7", "the outcome differs: a coordinator tells"),
        # Earlier and later releases do not re-elect a preferred leader that already leads.
        (
            "2.0",
            "preferred_leader_reelected",
            False,
            "1.1",
            "Kafka 2.0 lacks this: a preferred replica",
        ),
        (
            "1.0",
            "preferred_leader_reelected",
            True,
            None,
            "differs: a preferred replica that leads",
        ),
    ],
)
def test_the_reason_names_the_behaviour_that_the_release_lacks(
    release: str, switch: str, value: bool | str, since: str | None, text: str
) -> None:
    difference = ReleaseDifference(switch=switch, value=value, since=since, step=None)
    assert text in reason(run_result(plan=plan(kafka=release), difference=difference))
