"""Writes plans as campaign files, as the inverse of the loader, and applies options to plans."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Final

from harrow.campaigns.language import yaml_positions as nodes
from harrow.campaigns.language.loader import CampaignError, load_text, problems_in
from harrow.campaigns.language.overlay import OverrideError, apply_override, parse_override
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.problem import Problem
from harrow.campaigns.language.readers.draft import Draft, Report
from harrow.campaigns.language.readers.plan_reader import read_plan
from harrow.campaigns.language.spelling import printable
from harrow.campaigns.language.writers.plan import document
from harrow.campaigns.language.writers.section import UnwritablePlanError
from harrow.campaigns.language.yaml_text import yaml_text
from harrow.cluster_model.fields import MessageRuleNameMarker, fields_of
from harrow.cluster_model.lazy_dataclass import replace
from harrow.faults.action import Action

__all__ = ["UnwritablePlanError", "WrittenPlan", "campaign_text"]

_FILE: Final = "campaign.yaml"


def campaign_text(plan: Plan, *, comments: Sequence[str] = (), name: str | None = None) -> str:
    """Return the text of a campaign file that loads as *plan*, with the same digest.

    *comments* are paragraphs above the first key. *name* renames the campaign, which changes its
    digest. The same plan gives the same text.

    Raises:
        UnwritablePlanError: The loader would refuse the file, which can happen with a plan that a
            program has built.

    """
    renamed = plan if name is None else replace(plan, campaign=name)
    text = yaml_text(document(renamed), comments)
    try:
        loaded = load_text(text, _FILE).plans[0]
    except CampaignError as error:
        problems = "; ".join(problem.message for problem in error.problems)
        raise UnwritablePlanError(f"no campaign file can express this plan: {problems}") from None
    if loaded.digest() != renamed.digest():
        names = [
            item.name
            for item in fields(Plan)
            if replace(loaded, **{item.name: getattr(renamed, item.name)}).digest() != loaded.digest()
        ]
        raise UnwritablePlanError(f"a campaign file would change {', '.join(names)}")
    return text


class WrittenPlan:
    """A plan to which options (``--set key=value``) can be applied as on a command line.

    Raises:
        UnwritablePlanError: No campaign file can express this plan.

    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        root = nodes.without(nodes.compose(yaml_text(document(plan), ())).root, [("name",)])
        assert isinstance(root, nodes.MapNode), "a plan is written as a mapping"
        self._root = root
        self._rules: tuple[nodes.Node, ...] = ()
        """The steps with message rules that `actions` has read."""
        loaded = self._read(root, Report())
        if loaded is None or loaded.digest() != plan.digest():
            raise UnwritablePlanError("a campaign file would change the plan")

    def with_options(self, options: Sequence[str]) -> Plan | None:
        """Return the plan with the options applied; None if they are refused or change nothing."""
        plan, _ = self._apply_options(options)
        return None if plan is None or plan.digest() == self._plan.digest() else plan

    def changed_by(self, options: Sequence[str], name: str) -> Plan:
        """Return the plan with the options applied. Messages call the source of the options *name*.

        Raises:
            CampaignError: The options are refused.

        """
        plan, report = self._apply_options(options)
        if plan is None:
            raise CampaignError(
                Problem(name, 0, 0, f"{printable(mark.option or ' '.join(options))}: {message}")
                for mark, message in report.mistakes
            )
        return plan

    def actions(self, text: str, file: str) -> tuple[Action, ...]:
        """Read the actions in *text*, which are written as after ``do`` in a script of this plan.

        Messages call the text *file*. An action may name the message rule of an earlier one.

        Raises:
            CampaignError: The text has mistakes.

        """
        report = Report()
        try:
            document = nodes.compose(text)
        except nodes.YamlError as error:
            report.mistakes.update({mistake: [None] for mistake in error.mistakes})
            raise CampaignError(problems_in(text, file, report)) from None
        mark = document.root.mark
        step = nodes.MapNode({"do": nodes.MapEntry(mark, document.root)}, mark)
        steps = (*self._rules, step)
        script = nodes.MapEntry(mark, nodes.ListNode(steps, mark))
        report.mistakes.update({mistake: [None] for mistake in document.mistakes})
        plan = self._read(replace(self._root, entries={**self._root.entries, "script": script}), report)
        if plan is None:
            raise CampaignError(problems_in(text, file, report))
        actions = plan.script[-1].actions
        if any(item.kind is MessageRuleNameMarker for action in actions for item in fields_of(type(action))):
            self._rules = steps
        return actions

    def succeeded_by(self, plan: Plan) -> "WrittenPlan":
        """Return another plan, whose actions may name the message rules that this one has read."""
        other = WrittenPlan(plan)
        other._rules = self._rules
        return other

    def _apply_options(self, options: Sequence[str]) -> tuple[Plan | None, Report]:
        root, report = self._root, Report()
        for option in options:
            try:
                root = apply_override(root, parse_override(option))
            except OverrideError as error:
                report.add(*error.mistake, None)
        return self._read(root, report), report

    def _read(self, root: nodes.MapNode, report: Report) -> Plan | None:
        plan = read_plan(Draft(root, self._plan.variant, report), self._plan.campaign, ())
        return None if report.mistakes else plan
