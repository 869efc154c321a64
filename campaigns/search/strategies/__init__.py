"""Hypothesis strategies for campaigns and their parts, such as clusters, faults and scripts.

They are derived from the types into which campaign files are read, so a new fault or setting needs
no code here. They draw the structure of campaigns, never a seed. Hypothesis then shrinks a campaign
to fewer faults on fewer brokers with simpler settings. See docs/how-to/hypothesis.md.
"""

try:
    import hypothesis as _hypothesis  # noqa: F401 - imported first, so that its absence is reported in one line
except ModuleNotFoundError as _error:
    if _error.name != "hypothesis":
        raise
    raise ImportError(
        "harrow.campaigns.search.strategies needs Hypothesis: pip install 'kafka-harrow[hypothesis]'",
        name=_error.name,
    ) from None

from harrow.campaigns.search.strategies.clusters import clusters, settings
from harrow.campaigns.search.strategies.conditions import conditions
from harrow.campaigns.search.strategies.faults import faults
from harrow.campaigns.search.strategies.field_values import specs
from harrow.campaigns.search.strategies.open_choices import DrawnStream, drawn_from
from harrow.campaigns.search.strategies.plans import plans, schedules
from harrow.campaigns.search.strategies.scripts import scripts
from harrow.campaigns.search.strategies.search import Search, search, without_folder
from harrow.campaigns.search.strategies.workloads import Workload, producers, workloads

__all__ = [
    "DrawnStream",
    "Search",
    "Workload",
    "clusters",
    "conditions",
    "drawn_from",
    "faults",
    "plans",
    "producers",
    "schedules",
    "scripts",
    "search",
    "settings",
    "specs",
    "without_folder",
    "workloads",
]
