"""The table of runs groups them by campaign and marks unexpected ones."""

import io
import re
from pathlib import Path

from rich.console import Console

from harrow.campaigns.language.loader import Campaign
from harrow.campaigns.language.plan import Expectation
from harrow.campaigns.record.report import reproduce_command
from harrow.campaigns.run.run_result import MissedExpectation, ReleaseDifference, RunResult
from harrow.campaigns.storage.location import location
from harrow.checks.finding import HELD, INCONCLUSIVE, PERMITTED, RuleResult, Verdict
from harrow.cli.commands.run_selection import Selection
from harrow.cli.commands.run_tally import FinishedRun, Tally
from harrow.cli.render.run import RunTable
from tests.campaigns.record.run_results import failed_run, lost_record, plan, run_result, verdict


def rendered(
    *results: RunResult,
    width: int = 1000,
    quiet: bool = False,
    verbose: bool = False,
    folder: Path | None = None,
) -> str:
    """Return the printed table of the runs of one campaign."""
    stream = io.StringIO()
    console = Console(file=stream, width=width, highlight=False, markup=False, emoji=False)
    seeds = {result.seed for result in results}
    plans = tuple({result.plan.digest(): result.plan for result in results}.values())
    campaign = Campaign(name="loss", description="Why it is lost.", path=Path("loss.yaml"), plans=plans)
    table = RunTable(console, several_seeds=len(seeds) > 1, quiet=quiet, verbose=verbose)
    table.begin(Selection(campaign=campaign, argument="loss", plans=plans))
    tally = Tally(planned=len(results))
    for result in results:
        reproduce = reproduce_command("loss", result.seed, result.plan.variant)
        place = None if folder is None else location(folder)
        run = FinishedRun(result=result, reproduce=reproduce, file=campaign.path, folder=place)
        tally.add(run)
        table.add(run)
    table.end()
    table.finish(tally)
    return stream.getvalue()


def variant(name: str, **changes: object) -> RunResult:
    return run_result(plan=plan(variant=name, expect=Expectation(verdict=HELD)), **changes)


def test_variants_are_listed_under_their_campaign() -> None:
    shown = rendered(run_result(lost_record("m1")), variant("0.11")).splitlines()
    assert shown[:3] == [
        "loss",
        "  ✗ violated      as expected  base  lost m1 despite acks=all",
        "  ✓ held          as expected  0.11",
    ]
    assert "2 runs of 1 campaign: 1 held, 1 violated; all as expected" in shown


def test_verbose_lists_expectations_that_brokers_could_not_show() -> None:
    unseen = (
        MissedExpectation(line=0, message="maximal_isr cannot be set on real brokers of this release"),
        MissedExpectation(line=42, message="LEO is 1, expected 2"),
    )
    shown = rendered(run_result(lost_record("m1"), unseen=unseen), verbose=True)
    assert "unseen maximal_isr cannot be set on real brokers of this release\n" in shown
    assert "unseen loss.yaml:42: LEO is 1, expected 2\n" in shown
    assert "unseen" not in rendered(run_result(lost_record("m1"), unseen=unseen))


def test_missed_expectations_that_a_release_difference_does_not_explain_are_shown() -> None:
    missed = (MissedExpectation(line=42, message="LEO is 1, expected 2"),)
    later = plan(written_for="0.10.2", written_release="0.10.2", expect=Expectation(verdict=HELD))

    def shown(step: int | None) -> str:
        difference = ReleaseDifference(switch="follower_truncation", value="", since="0.11", step=step)
        return rendered(
            run_result(
                lost_record("m1", permitted_by="acks"),
                plan=later,
                expected=False,
                missed=missed,
                difference=difference,
            )
        )

    assert "otherwise loss.yaml:42: LEO is 1, expected 2\n" in shown(step=3)
    assert "LEO is 1" not in shown(step=None), "the restored behaviour meets every expectation"


def test_the_suggested_diff_command_works() -> None:
    folder, held_run = Path("results") / "loss" / "0123-0-0.1.0", variant("0.11")
    loss, second_loss = run_result(lost_record("m1")), run_result(lost_record("m1"), plan=plan(variant="b"))
    command = "harrow diff loss/0123-0-0.1.0"
    assert rendered(loss, held_run, folder=folder).splitlines()[-1] == f"look at it: {command}"
    two = rendered(loss, second_loss, folder=folder).splitlines()
    assert two[-2:] == [f"look at it: {command}", f"            {command}"]
    elsewhere = rendered(loss, folder=Path("my runs") / "loss" / "x").splitlines()[-1]
    assert elsewhere == "look at it: harrow diff 'my runs/loss/x'"
    assert command in rendered(failed_run(), folder=folder)


def test_no_diff_command_is_suggested_without_findings_or_with_many() -> None:
    folder, loss = Path("results") / "loss" / "0123-0-0.1.0", run_result(lost_record("m1"))
    assert "look at it" not in rendered(loss)
    assert "look at it" not in rendered(loss, folder=folder, quiet=True)
    assert "look at it" not in rendered(variant("0.11"), folder=folder)
    assert "look at it" not in rendered(loss, run_result(lost_record("m1"), seed=1), folder=folder)
    assert "look at it" not in rendered(*[loss] * 4, folder=folder)


def test_unexpected_runs_are_marked_without_colours() -> None:
    shown = rendered(failed_run())
    assert "✗ violated      UNEXPECTED   lost m1 despite acks=all" in shown
    assert "        1.200s broker 0 acked m1\n" in shown
    assert "             - m1 was committed, and no setting permits its loss\n" in shown
    assert (
        "        prevented by this (confirmed by a rerun):\n          KIP-101, from 0.11 on: a follower asks"
        in shown
    )
    assert "loss.yaml:42: m1 is not acked" in shown
    assert "reproduce harrow run loss --seed 0" in shown
    assert "exit 1: a promise was broken or an expectation missed" in shown


def test_a_campaign_without_expectations_is_not_marked_as_expected() -> None:
    shown = rendered(run_result(plan=plan()))
    assert shown.splitlines()[1] == "  ✓ held"


def test_an_inconclusive_run_shows_its_reason_once() -> None:
    undecided = verdict(status=INCONCLUSIVE, reasons=("step 2 waited in vain",))
    shown = rendered(run_result(plan=plan(), verdict=undecided))
    assert "? inconclusive" in shown
    assert re.search(r"\? inconclusive +step 2 waited in vain\n", shown)
    assert shown.count("waited in vain") == 1
    assert "exit 3: inconclusive, or nothing ran" in shown


def test_an_inconclusive_run_shows_each_of_its_reasons_once() -> None:
    undecided = verdict(status=INCONCLUSIVE, reasons=("step 2 waited in vain", "no record was sent"))
    shown = rendered(run_result(plan=plan(), verdict=undecided))
    assert re.search(r"\? inconclusive +step 2 waited in vain, and 1 more\n +undecided no record", shown)
    assert (shown.count("waited in vain"), shown.count("no record")) == (1, 1)


def test_seeds_are_grouped_by_outcome() -> None:
    good = [run_result(seed=seed) for seed in range(20)]
    bad = [failed_run(seed=seed, plan=good[0].plan) for seed in (20, 25)]
    shown = rendered(*good, *bad)
    assert "as expected  20 seeds: 0..20" in shown
    assert "UNEXPECTED   2 seeds: 20, 25" in shown
    assert "seed 20: lost m1 despite acks=all" in shown
    assert shown.count("broker 0 acked m1") == 1
    assert "Not as expected:\n  harrow run loss --seed 20\n  harrow run loss --seed 25\n" in shown


def test_quiet_prints_failures_only() -> None:
    assert rendered(run_result(), quiet=True) == ""
    shown = rendered(run_result(), failed_run(plan=plan(variant="bad")), quiet=True)
    assert "bad" in shown
    assert "as expected  base" not in shown


def test_verbose_prints_everything() -> None:
    result = run_result(lost_record("m1", permitted_by="acks=1"))
    shown = rendered(result, verbose=True)
    for phrase in (
        "Why it is lost.",
        f"Kafka 0.10.2, seed 0, 9.000 s of cluster time, 118 steps, trace {result.trace_digest}",
        "lost-write   permitted  1         acks=all",
        "the other 1  held",
        "1.2005 s  broker_crash  broker=1 restart_after=-",
        "truncated-below-hw  1",
        "t-0      0       1    1   0@0          m0",
    ):
        assert phrase in shown
    assert "isr-shrank-to-one  " not in shown
    assert "rare states never reached: controller-changed, " in shown


def test_the_rare_states_that_no_run_reached_take_two_lines_unless_verbose() -> None:
    lines = rendered(run_result(), run_result(seed=1), width=80).splitlines()
    (start,) = [number for number, line in enumerate(lines) if line.startswith("rare states never reached: ")]
    unreached = " ".join(line.strip() for line in lines[start : start + 2])
    assert re.search(r" and \d+ more \(--verbose lists all\)$", unreached)
    assert "log-dir-failed" not in unreached
    assert "log-dir-failed" in rendered(run_result(), run_result(seed=1), verbose=True)


def test_a_long_line_goes_below_in_a_narrow_terminal() -> None:
    findings = [lost_record(f"producer-0:{number}") for number in range(9)]
    shown = rendered(run_result(*findings), width=80)
    assert "as expected\n" in "\n".join(line.rstrip() for line in shown.splitlines())
    assert max(map(len, shown.splitlines())) <= 80
    assert "and 5 more" in shown


def test_markup_in_a_campaign_is_text() -> None:
    shown = rendered(run_result(lost_record("[bold]m1[/bold] :smile:")))
    assert "lost [bold]m1[/bold] :smile: despite" in shown


def test_several_seeds_list_the_permitted_anomalies() -> None:
    runs = [
        run_result(
            lost_record("m1", permitted_by="acks=1"), lost_record("m2", permitted_by="acks=1"), seed=0
        ),
        run_result(lost_record("m1", permitted_by="acks=1"), seed=1),
        run_result(lost_record("m3", permitted_by="log.flush.interval.messages"), seed=2),
    ]
    assert (
        "permitted: lost-write in 2 runs by acks=1, lost-write in 1 run by log.flush.interval.messages"
        in rendered(*runs)
    )
    assert "permitted:" not in rendered(run_result(seed=0), run_result(seed=1))


def test_several_seeds_list_a_permitted_broken_invariant_if_clients_saw_no_anomaly() -> None:
    broken = RuleResult(
        status=PERMITTED,
        promise="in-sync replicas",
        findings=(lost_record("m1", permitted_by="a power loss"),),
    )
    only_inside = Verdict(status=PERMITTED, rules={"isr-holds-committed": broken}, reasons=())
    runs = [
        run_result(lost_record("m1", permitted_by="acks=1"), seed=0),
        run_result(verdict=only_inside, seed=1),
    ]
    assert (
        "permitted: lost-write in 1 run by acks=1, isr-holds-committed in 1 run by a power loss"
        in rendered(*runs)
    )
