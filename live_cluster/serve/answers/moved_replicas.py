"""Moves replicas between the log directories of a served broker (KIP-113)."""

from typing import Any, Final

from harrow.cluster_model import errors
from harrow.cluster_model.cluster import Cluster
from harrow.live_cluster.names import Names
from harrow.live_cluster.serve.answers.described_log_dirs import log_dir_path
from harrow.live_cluster.wire.errors import error_code

_LOG_DIR_NOT_FOUND: Final = "LOG_DIR_NOT_FOUND"
_REPLICA_NOT_AVAILABLE: Final = "REPLICA_NOT_AVAILABLE"


def move_replicas(request: Any, broker: int, cluster: Cluster, names: Names) -> Any:
    """Move replicas of a broker to the requested directories, and return the answer.

    See ``ReplicaManager.alterReplicaLogDirs``. Kafka copies a log first; here it moves at once.
    """
    kind = request.header.get_response_class()
    numbers = {log_dir_path(broker, number): number for number in range(cluster.disks[broker].log_dirs)}
    topics = kind.AlterReplicaLogDirTopicResult
    errors_by_topic: dict[str, list[Any]] = {}
    for requested in request.dirs:
        for topic in requested.topics:
            for number in topic.partitions:
                log_dir, partition = numbers.get(requested.path), f"{topic.name}-{number}"
                if log_dir is None:
                    error = _LOG_DIR_NOT_FOUND
                elif number < 0:
                    error = errors.UNKNOWN_TOPIC_OR_PARTITION
                else:
                    error = _move(cluster, broker, names.campaign_partition(partition), log_dir)
                errors_by_topic.setdefault(topic.name, []).append(
                    topics.AlterReplicaLogDirPartitionResult(
                        partition_index=number, error_code=error_code(error)
                    )
                )
    return kind(
        results=[topics(topic_name=name, partitions=results) for name, results in errors_by_topic.items()]
    )


def _move(cluster: Cluster, broker: int, partition: str, log_dir: int) -> str:
    """Move a replica of a live broker to a directory, and return the error."""
    disk, logs = cluster.disks[broker], cluster.brokers[broker].replicas.logs
    failed = disk.failed_dirs.keys() | logs.offline_dirs.keys()
    if log_dir in failed or disk.dir_of(partition) in failed:
        return errors.KAFKA_STORAGE_ERROR
    if cluster.partition_state(partition) is None:
        return errors.UNKNOWN_TOPIC_OR_PARTITION
    if not logs.has(partition):
        return _REPLICA_NOT_AVAILABLE
    disk.move(partition, log_dir)
    return errors.NONE
