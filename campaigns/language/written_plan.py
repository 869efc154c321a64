"""A plan as a campaign file that options (``--set key=value``) are laid over, as on a command line."""

from collections.abc import Sequence

from harrow.campaigns.language import yaml_positions as nodes
from harrow.campaigns.language.overlay import OverrideError, overridden, parse_override
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.problem import CampaignError, Problem
from harrow.campaigns.language.readers.draft import Draft, Report
from harrow.campaigns.language.readers.plan_reader import read_plan
from harrow.campaigns.language.spelling import printable
from harrow.campaigns.language.writers.plan import document
from harrow.campaigns.language.writers.section import UnwritablePlanError
from harrow.campaigns.language.yaml_text import yaml_text


class WrittenPlan:
    """A plan that can be had with options; what comes of them is what the loader makes of them.

    Raises:
        UnwritablePlanError: no campaign file says this plan.

    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        root = nodes.without(_root(yaml_text(document(plan), ())), [("name",)])
        assert isinstance(root, nodes.MapNode), "a plan is written as a mapping"
        self._root = root
        read = self._read(root, Report())
        if read is None or read.digest() != plan.digest():
            raise UnwritablePlanError("a campaign file says something else")

    def with_options(self, options: Sequence[str]) -> Plan | None:
        """Return the plan with options; None if they are refused, or change nothing."""
        plan, _ = self._with(options)
        return None if plan is None or plan.digest() == self._plan.digest() else plan

    def changed_by(self, options: Sequence[str], name: str) -> Plan:
        """Return the plan with options, which messages call by *name*.

        Raises:
            CampaignError: they are refused.

        """
        plan, report = self._with(options)
        if plan is None:
            raise CampaignError(
                Problem(name, 0, 0, f"{printable(mark.option or ' '.join(options))}: {message}")
                for mark, message in report.found
            )
        return plan

    def _with(self, options: Sequence[str]) -> tuple[Plan | None, Report]:
        root, report = self._root, Report()
        for option in options:
            try:
                root = overridden(root, parse_override(option))
            except OverrideError as error:
                report.add(*error.mistake, None)
        return self._read(root, report), report

    def _read(self, root: nodes.MapNode, report: Report) -> Plan | None:
        plan = read_plan(Draft(root, self._plan.variant, report), self._plan.campaign, ())
        return None if report.found else plan


def _root(text: str) -> nodes.Node:
    return nodes.compose(text).root
