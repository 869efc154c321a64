"""Changes the user's settings until a fault model runs with them.

Kafka refuses transactions with ``acks=1``, for example, so a fault model with an application
cannot run with that setting. The advice says with which settings it can.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final

from harrow.campaigns.advise.axis import Axis
from harrow.campaigns.assess.fault_model import FaultModel
from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.problem import CampaignError
from harrow.cluster_model.lazy_dataclass import replace
from harrow.cluster_model.settings import IDEMPOTENCE

_TOGETHER: Final = ("acks", IDEMPOTENCE)
"""Settings that may both have to change: transactions need values of both."""


def changed_to_fit(model: FaultModel, axes: Sequence[Axis], own_plan: Plan) -> FaultModel:
    """Return a fault model with a ``changed_plan``, if one of its settings makes it fit.

    *own_plan* has the user's settings.
    """
    if model.plan is not None:
        return model
    (path,) = resolve(model.argument)
    for options in _changes(axes, own_plan):
        try:
            campaign = load_campaign(path, (*model.overrides, *options))
        except CampaignError:
            continue
        return replace(model, changed_plan=campaign.plans[0])
    return model


def _changes(axes: Sequence[Axis], plan: Plan) -> Iterator[tuple[str, ...]]:
    """Yield options that change one setting, then options that change several."""
    changes = {axis.name: list(_options(axis, plan)) for axis in axes}
    for options in changes.values():
        yield from options
    together = [options for name, options in changes.items() if name in _TOGETHER]
    yield from (sum(options, ()) for options in product(*together))


def _options(axis: Axis, plan: Plan) -> Iterator[tuple[str, ...]]:
    for level in axis.levels([plan]):
        if not level.own:
            yield tuple(axis.options(plan, {axis.name: level.values[0]}))
