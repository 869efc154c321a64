"""Whether brokers can create the internal topics that the clients of a campaign need."""

from collections.abc import Iterable
from typing import Any, Final

from harrow.campaigns.language.readers.cluster import CheckedCluster
from harrow.campaigns.language.readers.draft import Draft
from harrow.campaigns.language.readers.effective_settings import EffectiveSettings, plain
from harrow.campaigns.language.spelling import counted
from harrow.campaigns.language.yaml_positions import Path
from harrow.cluster_model.coordinators.internal_topics import internal_topic
from harrow.cluster_model.release import RELEASES
from harrow.cluster_model.settings import broker_config
from harrow.cluster_model.topology import CONSUMER_OFFSETS, TRANSACTION_STATE, Coordinated

_FACTORS: Final = {
    CONSUMER_OFFSETS: "offsets.topic.replication.factor",
    TRANSACTION_STATE: "transaction.state.log.replication.factor",
}


def check_internal_topics(
    draft: Draft,
    settings: EffectiveSettings,
    cluster: CheckedCluster,
    clients: Iterable[tuple[Path, Any]],
) -> None:
    """Note which internal topics there are, and report a replication factor that is larger than the number of brokers: nobody would ever find a coordinator (KAFKA-3959).

    *clients* come with their places, by which the first that needs a topic is named where no setting says its replication factor.
    """
    if settings.release not in RELEASES or not draft.is_intact("cluster", "brokers"):
        return
    given = settings.broker()
    known = {topic.name for topic in cluster.spec.topics}
    config = broker_config(settings.release, plain(given))
    brokers = len(cluster.spec.brokers)
    for path, client in clients:
        for name in client.internal_topics() if isinstance(client, Coordinated) else ():
            topic = internal_topic(name, config)
            factor = topic.replication_factor
            cluster.references.add_internal_topic(name, topic.partitions)
            if name in known or factor <= brokers:
                continue
            known.add(name)
            setting = _FACTORS[name]
            place = given[setting].path if setting in given else path
            there_are = f"there {'is' if brokers == 1 else 'are'} {counted(brokers, 'broker')}"
            draft.problem(
                place, f"{client.name} needs {name}, which has {setting}={factor} replicas, and {there_are}"
            )
