"""Writes a campaign to start from, with an imported cluster and the settings of its clients."""

from collections.abc import Sequence
from typing import Final

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.language.plan_file import campaign_text
from harrow.campaigns.language.spelling import listed
from harrow.campaigns.language.template import new_campaign
from harrow.campaigns.sources.cluster_import import Imported
from harrow.cluster_model.lazy_dataclass import replace
from harrow.cluster_model.settings import CONSUMER, PRODUCER
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.faults.brokers import BrokerCrash, BrokerPause

_SOME_SECONDS: Final = (US_PER_SECOND, 10 * US_PER_SECOND)
_FILE: Final = "imported.yaml"


def imported_campaign(name: str, imported: Imported, files: Sequence[str]) -> str:
    """Return a campaign with an imported cluster, and the workload of `harrow new`.

    It has a producer or a consumer for each file of a client, and crashes and pauses of brokers.

    Raises:
        UnwritablePlanError: No campaign can express it.

    """
    template = load_text(new_campaign(name), name).plans[0]
    (plan,) = load_text(f"cluster: {_FILE}\n", name, cluster_files={_FILE: imported.text}).plans
    producers, consumers = (
        [settings for of, settings in imported.clients if of == scope] for scope in (PRODUCER, CONSUMER)
    )
    (producer,), (consumer,) = template.producers, template.consumers
    (injection,) = template.faults
    faults = (
        BrokerCrash(broker="any", restart_after=_SOME_SECONDS),
        BrokerPause(broker="any", duration=_SOME_SECONDS),
    )
    plan = replace(
        template,
        kafka=plan.kafka,
        cluster=plan.cluster,
        producers=tuple(
            replace(producer, name=f"producer-{index}", settings=settings)
            for index, settings in enumerate(producers or [producer.settings])
        ),
        consumers=tuple(
            replace(consumer, name=f"consumer-{index}", settings=settings)
            for index, settings in enumerate(consumers or [consumer.settings])
        ),
        faults=(replace(injection, faults=faults),),
    )
    origin = f"A cluster of Kafka {imported.release} for the model, imported from {listed(files)}."
    return campaign_text(plan, comments=[f"{origin} Adapt the workload, the faults and the expectations."])
