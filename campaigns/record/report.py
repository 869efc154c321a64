"""Reports on runs: the JSON, the sentence about an anomaly, the command that repeats a run.

What harrow shows on the terminal, the files under ``results/``, and the machine-readable stream are
all built from these mappings. Nothing here prints.
"""

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.plan_reach import reach_of
from harrow.campaigns.language.spelling import listed, option_words, printable
from harrow.campaigns.language.units import milliseconds, rough_duration_text, value_text
from harrow.campaigns.probes.probes import PROBES, in_reach, never_reached
from harrow.campaigns.probes.reach import ProbeReach
from harrow.campaigns.record.phrases import because, preventions, timed_sentence
from harrow.campaigns.record.service_report import service_as_mapping
from harrow.campaigns.run.required_probes import UnreachedProbes
from harrow.campaigns.run.run_result import InjectedFault, RealTarget, ReleaseDifference, RunResult
from harrow.campaigns.version import identity, name_ending, version
from harrow.checks.evidence import FinalLog
from harrow.checks.finding import (
    HELD,
    INCONCLUSIVE,
    PERMITTED,
    SKIPPED,
    VIOLATED,
    Finding,
    RuleResult,
    worst,
    worst_first,
)
from harrow.checks.history.witness import partition_text, record_text
from harrow.checks.incident import Incident, incidents
from harrow.checks.link import Link
from harrow.checks.prevention import Prevention, Trial
from harrow.checks.rules.catalogue import RULES
from harrow.cluster_model.invariants.catalogue import INVARIANTS
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.release.profiles import SWITCHES

SCHEMA: Final = "harrow.run/1"
BASE: Final = "base"
"""The name that stands for a campaign without a variant."""

AS_EXPECTED: Final = "as expected"
UNEXPECTED: Final = "UNEXPECTED"
OTHERWISE: Final = "otherwise"
"""The outcome if a run misses expectations, but without an unexpected violation, and these were
written for another release."""
UNDECIDED: Final = "undecided"
NOT_RUN: Final = "skipped"

_SUBJECTS_SHOWN: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingGroup:
    """The findings of one rule that the same setting permits, or that nothing permits."""

    rule: str
    promise: str
    permitted_by: str | None
    findings: tuple[Finding, ...]

    def anomaly_text(self) -> str:
        """Return the anomaly in words, as in ``lost m1, m2, m3, m4 and 5 more``."""
        rule = RULES.get(self.rule)
        verb = self.rule if rule is None else rule.verb or rule.name
        is_about_place = rule is not None and rule.is_about_place
        name, shown_max = (place, 1) if is_about_place else (subject, _SUBJECTS_SHOWN)
        names = list(dict.fromkeys(name(finding) for finding in self.findings))
        shown = ", ".join(names[:shown_max])
        rest = len(names) - shown_max
        return f"{verb} {shown} and {rest} more" if rest > 0 else f"{verb} {shown}"

    def measured_against(self) -> str:
        """Return the promise that was broken, or the setting that permits the anomaly."""
        if self.permitted_by is not None:
            return f"permitted by {self.permitted_by}"
        return f"despite {self.promise}" if self.promise else "with nothing that permits it"

    def sentence(self) -> str:
        """Return the anomaly and the promise or setting, as in ``lost m1 despite acks=all``."""
        return f"{self.anomaly_text()}{',' if self.permitted_by else ''} {self.measured_against()}"

    def incidents(self) -> list[Incident]:
        """Return the findings grouped by cause."""
        return incidents(self.findings)

    def is_of_invariant(self) -> bool:
        """Return whether the rule is an invariant of the model, which clients cannot observe."""
        return self.rule in INVARIANTS


def anomalies(result: RunResult) -> list[FindingGroup]:
    """Return the anomalies of a run: broken promises first, and in each part invariants last."""
    return anomalies_by(result.verdict.rules)


def anomalies_by(rules: Mapping[str, RuleResult]) -> list[FindingGroup]:
    """Return the anomalies in the results of rules."""
    groups: list[FindingGroup] = []
    for rule, judged in rules.items():
        by_setting: dict[str | None, list[Finding]] = {}
        for finding in judged.findings:
            by_setting.setdefault(finding.permitted_by, []).append(finding)
        groups += [
            FindingGroup(rule=rule, promise=judged.promise, permitted_by=setting, findings=tuple(findings))
            for setting, findings in by_setting.items()
        ]
    return sorted(groups, key=lambda anomaly: (anomaly.permitted_by is not None, anomaly.is_of_invariant()))


def in_short(result: RunResult) -> str:
    """Return the anomalies of a run on one line.

    Broken invariants are named only if clients observed no anomaly. If a promise was broken,
    permitted anomalies are only counted.
    """
    return in_short_by(result.verdict.rules)


def in_short_by(rules: Mapping[str, RuleResult]) -> str:
    """Return the anomalies in the results of rules on one line."""
    groups = anomalies_by(rules)
    broken = of_clients_or_invariants([anomaly for anomaly in groups if anomaly.permitted_by is None])
    permitted = of_clients_or_invariants([anomaly for anomaly in groups if anomaly.permitted_by is not None])
    sentences = [anomaly.sentence() for anomaly in broken or permitted]
    count = sum(len(anomaly.findings) for anomaly in permitted if not anomaly.is_of_invariant())
    return "; ".join([*sentences, f"and {count} permitted"] if broken and count else sentences)


def of_clients_or_invariants(groups: Sequence[FindingGroup]) -> Sequence[FindingGroup]:
    """Return the anomalies that clients observed. If there are none, return those of invariants."""
    return [anomaly for anomaly in groups if not anomaly.is_of_invariant()] or groups


def subject(finding: Finding) -> str:
    """Return the record that a finding is about. If it has none, return its place."""
    return printable(record_text(finding.value)) if finding.value is not None else place(finding)


def others_of(incident: Incident) -> str:
    """Name the other findings of the same cause; empty if there are none."""
    others = [subject(finding) for finding in incident.findings[1:]]
    if not others:
        return ""
    shown = ", ".join(others[:_SUBJECTS_SHOWN])
    rest = len(others) - _SUBJECTS_SHOWN
    return f"and {shown} by the same cause" if rest <= 0 else f"and {shown} and {rest} more by the same cause"


def place(finding: Finding) -> str:
    """Return the place of a finding, such as ``t-0 offset 1``, or the cluster."""
    partition = printable(partition_text(finding.partition)) or "the cluster"
    return partition if finding.offset is None else f"{partition} offset {finding.offset}"


def outcome(result: RunResult) -> str:
    """Compare a run with its expectations, and return one of the five outcomes above.

    An inconclusive run is undecided, unless the campaign expects the run to be inconclusive, or an
    assertion of the script had failed before. If the campaign was written for another release, only
    a violation that it does not expect makes the run unexpected.
    """
    if result.verdict.status == SKIPPED:
        return NOT_RUN
    missed_on_the_way = result.plan.written_for is None and any(missed.line for missed in result.missed)
    inconclusive = result.verdict.status == INCONCLUSIVE
    if inconclusive and result.plan.expect.verdict != INCONCLUSIVE and not missed_on_the_way:
        return UNDECIDED
    if result.expected:
        return AS_EXPECTED
    return UNEXPECTED if result.plan.written_for is None or _breaks_more(result) else OTHERWISE


def _breaks_more(result: RunResult) -> bool:
    """Return whether a run breaks a promise that its campaign does not expect to be broken."""
    expect = result.plan.expect
    expected = {rule for rule, status in expect.rules if status == VIOLATED}
    broken = {rule for rule, judged in result.verdict.rules.items() if judged.status == VIOLATED}
    return expect.verdict != VIOLATED and not broken <= expected and not repaired_flaws(result)


def repaired_flaws(result: RunResult) -> tuple[str, ...]:
    """Return the flaws of real brokers that the campaign's switches repair in the model.

    They are returned only if they explain all violations. A flaw explains a violation if its
    finding lists the switch as a remedy.
    """
    if result.target is None:
        return ()
    release = result.target.release
    set_here = result.plan.behaviours.items()
    repaired = {name for name, value in set_here if value != SWITCHES[name].value_in(release)}
    broken = [
        repaired.intersection(
            name for prevention in finding.prevented_by for name, _ in prevention.remedy.switches
        )
        for judged in result.verdict.rules.values()
        if judged.status == VIOLATED
        for finding in judged.findings
        if finding.permitted_by is None
    ]
    return tuple(sorted(set[str]().union(*broken))) if all(broken) else ()


def reason(result: RunResult) -> str:
    """Return the reason for a run's verdict, in a line that every report shows.

    The reason is the anomalies, the missed expectations, or why the run is inconclusive. If the
    campaign was written for another release, the behaviour that makes the difference follows the
    anomalies. The reason for a run that held is its longest outage, if it had one.
    """
    verdict, summary = result.verdict, in_short(result)
    if result.difference is not None:
        difference = difference_text(result, result.difference)
        return (
            f"{summary}; {difference}" if verdict.status in (VIOLATED, PERMITTED) and summary else difference
        )
    unmet = outcome(result) not in (AS_EXPECTED, UNDECIDED, NOT_RUN)
    causes = list(verdict.reasons)
    if verdict.status == INCONCLUSIVE and not causes:
        open_rules = [name for name, judged in verdict.rules.items() if judged.status == INCONCLUSIVE]
        causes = [f"not judged: {listed(open_rules)}"]
    if verdict.status not in (INCONCLUSIVE, SKIPPED) and summary:
        causes = [summary]
    elif unmet:
        causes += [missed.message for missed in result.missed]
    if causes:
        return causes[0] if len(causes) == 1 else f"{causes[0]}, and {len(causes) - 1} more"
    return _outage_text(longest_outage_us(result)) if verdict.status == HELD else ""


def difference_text(result: RunResult, difference: ReleaseDifference) -> str:
    """Name the behaviour that makes the outcome differ between releases, and how this was tried."""
    judged = result.verdict.rules.get("lost-write")
    is_preserved = result.plan.expect.lost and judged is not None and judged.status == HELD
    effect = "nothing is lost" if is_preserved else "the outcome differs"
    behaviour = _behaviour(result.plan, difference)
    tried = f"(tried: with behaviours.{difference.switch}={value_text(difference.value)}"
    if difference.step is None:
        return f"{effect}: {behaviour} {tried} it is as in {result.plan.written_release})"
    step = f"step {difference.step} waits for something that does not happen"
    return f"{effect}, {step}: {behaviour} {tried} it happens)"


def _behaviour(plan: Plan, difference: ReleaseDifference) -> str:
    """Describe what one of the two releases has and the other lacks.

    This is a repair, or else the meaning of the switch, which describes its safe value.
    """
    switch, other_value = SWITCHES[difference.switch], difference.value
    value_here = switch.value_in(plan.kafka)
    since = f", since {difference.since}" if difference.since else ""
    brought = [repair.name for repair in switch.repairs if repair.since == difference.since]
    lacked = [
        repair.name
        for repair in switch.repairs
        if repair.is_missing(value_here) and not repair.is_missing(other_value)
    ]
    if brought:
        return f"{brought[0]}{since}"
    if lacked:
        return f"Kafka {plan.kafka} lacks {listed(lacked)}"
    if value_here == switch.safe:
        return f"{switch.meaning}{since}"
    if other_value == switch.safe:
        return f"Kafka {plan.kafka} lacks this: {switch.meaning}"
    return f"behaviours.{switch.name} is {value_text(value_here)}{since}"


def longest_outage_us(result: RunResult) -> int:
    """Return the length of a run's longest outage, or 0."""
    return max((outage.length_us for outage in result.service.outages), default=0)


def _outage_text(length_us: int) -> str:
    return f"longest outage {rough_duration_text(length_us)}" if length_us else ""


def variant_name(plan: Plan) -> str:
    """Return the name of a plan for ``--variant``."""
    return BASE if plan.variant is None else plan.variant


def reproduce_command(
    argument: str,
    seed: int | None,
    variant: str | None,
    overrides: Sequence[str] = (),
    target: str | None = None,
    then: Sequence[str] = (),
) -> str:
    """Return the command that runs a plan again. Without a *target*, it runs on the model.

    Without a *seed*, the campaign's applies. *overrides* are applied to the campaign, and *then* to
    the plan that the seed draws from it.
    """
    words = ["harrow", "run", argument]
    if seed is not None:
        words += ["--seed", str(seed)]
    if variant is not None:
        words += ["--variant", variant]
    for override in overrides:
        words += option_words(override)
    for override in then:
        words += ["--then", override]
    if target is not None:
        words += ["--target", target]
    return shlex.join(words)


def run_id(result: RunResult) -> str:
    """Return the id of a run. It is the same on every machine, except on real brokers."""
    return run_name_of(result.plan_digest(), result.seed, result.target)


def run_name_of(plan_digest: str, seed: int, target: RealTarget | None) -> str:
    """Return the id of a run from its inputs, because the run may not have started yet.

    On real brokers, the id has the time at which the run began, because each run is different.
    """
    name = f"{plan_digest[:8]}-{seed}{name_ending()}"
    return (
        name if target is None else f"{name}-{target.kind}-{target.release}-{target.metadata}-{target.began}"
    )


def run_as_mapping(result: RunResult, reproduce: str) -> dict[str, Any]:
    verdict = result.verdict
    return {
        "campaign": result.plan.campaign,
        "plan_digest": result.plan_digest(),
        "run_id": run_id(result),
        **identity(),
        "seed": result.seed,
        "kafka": result.plan.kafka,
        "written_for": result.plan.written_for,
        "metadata": result.plan.metadata if result.target is None else result.target.metadata,
        "internal_topics": sorted(reach_of(result.plan).topics),
        "target": {"kind": "model"} if result.target is None else asdict(result.target),
        "verdict": verdict.status,
        "reason": reason(result),
        "reasons": list(verdict.reasons),
        "difference": None if result.difference is None else asdict(result.difference),
        "variant": result.plan.variant,
        "drawn": dict(result.drawn),
        "expected": result.expected,
        "missed": [{"line": missed.line, "message": missed.message} for missed in result.missed],
        "hurried": [
            {
                "step": step.number,
                "line": step.line,
                "waited_ms": milliseconds(step.waited_us),
                "missing": step.missing,
            }
            for step in result.timed_out_steps
        ],
        "unseen": [{"line": unseen.line, "message": unseen.message} for unseen in result.unseen],
        "trace_digest": result.trace_digest,
        "events": result.events,
        "simulated_ms": result.simulated_us // 1_000,
        "wall_ms": result.wall_ms,
        "rules": {name: _rule_as_mapping(judged) for name, judged in worst_first(verdict.rules).items()},
        "not_tried": list(verdict.not_tried),
        "faults": [fault_as_mapping(fault) for fault in result.faults],
        "service": service_as_mapping(result.service),
        "probes": dict(sorted(result.probes.items())),
        "probes_missed": list(result.probes_missed),
        "replicas": {
            partition: {str(broker): _replica_as_mapping(log) for broker, log in sorted(replicas.items())}
            for partition, replicas in result.evidence.replicas.items()
        },
        "processes": {str(process): name for process, name in result.evidence.process_names.items()},
        "reproduce": reproduce,
    }


def fault_as_mapping(fault: InjectedFault) -> dict[str, Any]:
    return {"at_ms": milliseconds(fault.at_us), "fault": fault.fault, **dict(fault.details)}


def document(runs: Sequence[Mapping[str, Any]], unreached: Sequence[UnreachedProbes] = ()) -> dict[str, Any]:
    """Return the JSON document of several runs.

    *unreached* are the required probes that no run of a plan reached.
    """
    verdicts = [run["verdict"] for run in runs]
    return {
        "schema": SCHEMA,
        "version": version(),
        "verdict": worst([*verdicts, INCONCLUSIVE] if unreached else verdicts),
        "reasons": [missed.reason() for missed in unreached],
        "probes_never_reached": list(never_reached([run["probes"] for run in runs], _in_reach(runs))),
        "runs": list(runs),
    }


def _in_reach(runs: Sequence[Mapping[str, Any]]) -> Collection[str]:
    """Return the probes that the runs could reach. If a record lacks the data, return all."""
    reach = ProbeReach()
    for run in runs:
        if "metadata" not in run:
            return tuple(PROBES)
        reach |= ProbeReach(
            control_planes=frozenset({run["metadata"]}), topics=frozenset(run["internal_topics"])
        )
    return in_reach(reach)


def _rule_as_mapping(judged: RuleResult) -> dict[str, Any]:
    return {
        "status": judged.status,
        "count": len(judged.findings),
        "promise": judged.promise,
        "findings": [_incident_as_mapping(incident) for incident in incidents(judged.findings)],
    }


def _incident_as_mapping(incident: Incident) -> dict[str, Any]:
    """Return the first finding of a cause, with a list of all findings of that cause."""
    members = [
        {"partition": member.partition, "offset": member.offset, "value": member.value}
        for member in incident.findings
    ]
    return {**finding_as_mapping(incident.first), "count": len(members), "members": members}


def finding_as_mapping(finding: Finding) -> dict[str, Any]:
    line: dict[str, Any] = {
        "partition": finding.partition,
        "offset": finding.offset,
        "value": finding.value,
        "because": because(finding),
        "chain": [_link_as_mapping(link) for link in finding.chain],
        "causes": [_data(link) for link in finding.causes],
        "prevented_by": list(preventions(finding)),
        "preventions": [
            _prevention(prevention)
            for prevention in finding.prevented_by
            if prevention.held or prevention.trial is None
        ],
        "tried_in_vain": [
            _prevention(prevention) for prevention in finding.prevented_by if prevention.held is False
        ],
        "not_tried": [
            _prevention(prevention)
            for prevention in finding.prevented_by
            if prevention.held is None and prevention.trial is not None
        ],
        "no_remedy": list(finding.no_remedy),
    }
    if finding.permitted_by is not None:
        line["permitted_by"] = finding.permitted_by
    return {**line, **{name: value for name, value in finding.details if name not in line}}


def _prevention(prevention: Prevention) -> dict[str, Any]:
    remedy, trial = prevention.remedy, prevention.trial
    return {
        "kind": prevention.kind,
        "name": prevention.name,
        "value": _plain(prevention.value),
        "tried": prevention.held is not None,
        "held": prevention.held,
        "text": prevention.text,
        "meaning": prevention.meaning,
        "remedy": {
            "settings": dict(remedy.settings),
            "release": remedy.release,
            "switches": dict(remedy.switches),
            "fields": {name: _plain(value) for name, value in remedy.fields},
        },
        "trial": None if trial is None else _trial(trial),
    }


def _trial(trial: Trial) -> dict[str, Any]:
    fields = asdict(trial)
    if fields["refuted_by"] is not None:
        fields["refuted_by"] = {name: _plain(value) for name, value in fields["refuted_by"].items()}
    return {name: _plain(value) for name, value in fields.items()}


def _link_as_mapping(link: Link) -> dict[str, Any]:
    fields = {
        "event": link.event,
        "at_ms": None if link.at_us is None else milliseconds(link.at_us),
        "broker": link.broker,
        "offset": link.offset,
        "text": timed_sentence(link),
        "actor": link.actor,
        "decides": link.decides or None,
        "fault": link.kind.is_fault or None,
        "strike": link.strike,
        **_data(link),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _data(link: Link) -> dict[str, Any]:
    """Return the data of a link, without its time and its actor."""
    return {
        "kind": link.kind.name,
        "operands": {name: _plain(value) for name, value in link.operands.items()},
    }


def _plain(value: Any) -> Any:
    return [_plain(part) for part in value] if isinstance(value, tuple) else value


def _replica_as_mapping(log: FinalLog) -> dict[str, Any]:
    return {"leo": log.leo, "hw": log.hw, "epochs": [list(entry) for entry in log.epochs]}
