"""What would have prevented a finding, by trying it: the same run again, with one thing changed.

Rules propose candidates by what they know of a cause (`harrow.checks.prevention`), and are often wrong: of the
repairs that came after a release one may help and the next may not. So each candidate is tried with the plan and
the seed, and so the choices, of the run, and with the setting or the switch that it stands for. It *held* if the rule

- could be judged, on no less than in the run: what was not acked, read back or in sync cannot be missed,
- finds nothing of the same cause, and nothing about a record or place that this cause had struck in the run, and
- finds no broken promise of a cause that the run did not have: nothing worse took its place.

What is changed can change what happens afterwards, for a fault may then find another leader. So what held is what
would have helped in this run, and no law; what did not hold is refuted.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import INCONCLUSIVE, Finding, RuleResult
from harrow.checks.link import cause_key
from harrow.checks.prevention import REPAIR, SAFE_SETTINGS, Prevention, by_behaviour, together
from harrow.cluster_model.history import OK
from harrow.cluster_model.release import switch_docs
from harrow.cluster_model.settings import (
    BROKER,
    CONSUMER,
    MIN_ISR,
    PRODUCER,
    SETTINGS,
    TOPIC,
    Value,
    conflicts,
    reconciled,
)
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.cluster_model.topology import ClusterSpec, TopicSpec

_EVENTS_FACTOR: Final = 4
_EVENTS_MIN: Final = 100_000
"""A run that takes so many more events has fallen into a loop of its own, and shows nothing."""

_SCRIPT_US: Final = 60 * US_PER_SECOND
"""How much longer a script may wait: longer than any of Kafka's timeouts by default."""

_Cause = tuple[str | None, frozenset[Hashable]]
"""What permits findings, and the kinds of their causes: they are proven together."""


def proven(result: RunResult, run: Callable[[Plan, int], RunResult] = run_plan) -> RunResult:
    """Return a run whose findings say of each candidate whether it held; those that cannot be tried are left out.

    A candidate costs one run, however many findings propose it. Repairs of later releases, which build on each
    other, are tried for a cause until something has held, and so is what no rule has proposed: flaws that were
    switched on, the other repairs, the safest settings, and in the end all together.
    """
    if not any(judged.findings for judged in result.verdict.rules.values()):
        return result
    trials = _Trials(result, run)
    rules = {name: trials.proven(name, rule) for name, rule in result.verdict.rules.items()}
    return replace(result, verdict=replace(result.verdict, rules=rules))


class _Trials:
    """The runs that are made to try what may have prevented the findings of another."""

    def __init__(self, result: RunResult, run: Callable[[Plan, int], RunResult]) -> None:
        self._result = result
        self._run = run
        self._last_resorts = by_behaviour(result.evidence, switch_docs())
        self._plans: dict[Prevention, Plan | None] = {}
        self._rules: dict[Prevention, Mapping[str, RuleResult]] = {}

    def proven(self, name: str, rule: RuleResult) -> RuleResult:
        """Return what a rule says, with candidates that have been tried."""
        by_cause: dict[_Cause, list[Finding]] = {}
        for finding in rule.findings:
            by_cause.setdefault(_cause(finding), []).append(finding)
        tried = {cause: tuple(self._tried(name, findings, by_cause)) for cause, findings in by_cause.items()}
        findings = tuple(replace(each, prevented_by=tried[_cause(each)]) for each in rule.findings)
        return replace(rule, findings=findings)

    def _tried(
        self, rule: str, findings: Sequence[Finding], known: Collection[_Cause]
    ) -> Iterator[Prevention]:
        """Yield the candidates for findings of one cause, with what came of them."""
        proposed = self._possible(way for finding in findings for way in finding.prevented_by)
        others = self._possible((*proposed, *self._last_resorts))
        everything = (*others, SAFE_SETTINGS)
        found = False
        for candidate in dict.fromkeys(
            (*proposed, together(proposed), *others, SAFE_SETTINGS, together(others), together(everything))
        ):
            if found and (candidate.kind == REPAIR or candidate not in proposed):
                continue
            plan = self._plan(candidate)
            if plan is not None:
                held = _holds(self._rules_with(candidate, plan).get(rule), findings, known)
                found = found or held
                yield replace(candidate, held=held)

    def _possible(self, candidates: Iterable[Prevention]) -> list[Prevention]:
        """Return those that can be tried, each once."""
        return [candidate for candidate in dict.fromkeys(candidates) if self._plan(candidate) is not None]

    def _plan(self, candidate: Prevention) -> Plan | None:
        if candidate not in self._plans:
            self._plans[candidate] = with_prevention(self._result.plan, candidate)
        return self._plans[candidate]

    def _rules_with(self, candidate: Prevention, plan: Plan) -> Mapping[str, RuleResult]:
        """Return what the rules say of the run with a candidate, nothing if that shows nothing."""
        if candidate not in self._rules:
            first = self._result
            again = self._run(_limited(plan, first), first.seed)
            shows = again.given_up is None and _judged_on(first) <= _judged_on(again)
            self._rules[candidate] = again.verdict.rules if shows else {}
        return self._rules[candidate]


def _limited(plan: Plan, first: RunResult) -> Plan:
    """Return a plan that takes not much longer than the first run did.

    A script that waits for the failure itself waits in vain once it is prevented.
    """
    return replace(
        plan,
        events_limit=min(plan.events_limit, max(_EVENTS_MIN, _EVENTS_FACTOR * first.events)),
        script_limit_us=min(plan.script_limit_us, first.simulated_us + _SCRIPT_US),
    )


def _judged_on(result: RunResult) -> frozenset[Hashable]:
    """Return what a run got back to judge: acks, partitions that were read to their end, replicas in sync."""
    evidence = result.evidence
    in_sync = {
        (partition, broker)
        for partition, replicas in evidence.replicas.items()
        for broker, log in replicas.items()
        if log.in_sync
    }
    has_acks = any(operation.type == OK and any(operation.sends()) for operation in evidence.operations)
    return frozenset({*evidence.read_back, *in_sync, *({OK} if has_acks else ())})


def _cause(finding: Finding) -> _Cause:
    return finding.permitted_by, frozenset(map(cause_key, finding.causes))


def _place(finding: Finding) -> Hashable:
    return finding.partition, finding.offset if finding.value is None else str(finding.value)


def _holds(rule: RuleResult | None, findings: Sequence[Finding], known: Collection[_Cause]) -> bool:
    """Return whether a rule holds in another run, as far as the one cause of *findings* goes."""
    if rule is None or rule.status == INCONCLUSIVE:
        return False
    cause, places = _cause(findings[0]), set(map(_place, findings))
    return not any(
        _cause(finding) == cause
        or _place(finding) in places
        or (finding.permitted_by is None and _cause(finding) not in known)
        for finding in rule.findings
    )


def with_prevention(plan: Plan, prevention: Prevention) -> Plan | None:
    """Return a plan with the settings and switches of a prevention.

    None if the model or the plan's release does not know them, if Kafka refuses them, or if the plan has them already.
    """
    switched = replace(plan, behaviours={**plan.behaviours, **dict(prevention.switches)})
    chosen = dict(prevention.settings)
    known = {
        scope: {name: value for name, value in chosen.items() if _knows(scope, name, plan.kafka)}
        for scope in (BROKER, TOPIC, PRODUCER, CONSUMER)
    }
    if chosen.keys() - {name for names in known.values() for name in names}:
        return None
    changed = replace(
        switched,
        cluster=_with_settings(plan.cluster, known[BROKER], known[TOPIC]),
        producers=tuple(
            replace(client, settings=_reconciled(switched, client.settings, known[PRODUCER]))
            for client in plan.producers
        ),
        consumers=tuple(
            replace(client, settings={**client.settings, **known[CONSUMER]}) for client in plan.consumers
        ),
    )
    behaviours = changed.behaviour_switches()
    refused = any(list(conflicts(plan.kafka, client.settings, behaviours)) for client in changed.producers)
    return None if refused or changed == plan else changed


def _knows(scope: str, name: str, release: str) -> bool:
    return (scope, name) in SETTINGS and SETTINGS[scope, name].exists_in(release)


def _reconciled(plan: Plan, own: Mapping[str, Value], chosen: Mapping[str, Value]) -> dict[str, Value]:
    """Return a producer's settings with others; of its own gives way what Kafka does not take beside them."""
    if not chosen:
        return dict(own)
    kept = {name: value for name, value in own.items() if name not in chosen}
    return {**reconciled(plan.kafka, kept, plan.behaviour_switches(), fixed=chosen), **chosen}


def _with_settings(
    cluster: ClusterSpec, of_brokers: Mapping[str, Value], of_topics: Mapping[str, Value]
) -> ClusterSpec:
    """Return a cluster with settings everywhere; a topic needs no more replicas in sync than it has."""

    def of(topic: TopicSpec) -> dict[str, Value]:
        replicas = len(topic.assignment[0]) if topic.assignment else topic.replication_factor
        settings = {**topic.settings, **of_topics}
        if MIN_ISR in of_topics:
            settings[MIN_ISR] = min(int(of_topics[MIN_ISR]), replicas)
        return settings

    return replace(
        cluster,
        settings={**cluster.settings, **of_brokers},
        brokers=tuple(
            replace(broker, settings={**broker.settings, **of_brokers} if broker.settings else {})
            for broker in cluster.brokers
        ),
        topics=tuple(replace(topic, settings=of(topic)) for topic in cluster.topics),
    )
