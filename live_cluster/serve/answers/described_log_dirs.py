"""Describes the log directories of a served broker, and moves replicas between them (KIP-113)."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from harrow.cluster_model import errors
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.log.disk import Disk
from harrow.live_cluster.names import Names
from harrow.live_cluster.wire.errors import error_code

_LOG_DIR_NOT_FOUND: Final = "LOG_DIR_NOT_FOUND"
_REPLICA_NOT_AVAILABLE: Final = "REPLICA_NOT_AVAILABLE"
_NO_LAG: Final = 0
"""By how much a log's LEO is below its own high watermark. Only a log that is being copied to
another directory lags, and harrow moves a log at once."""


def described_log_dirs(kind: Any, request: Any, broker: int, disk: Disk, names: Names) -> Any:
    """Return the answer, of the class *kind*, with the sizes of the logs in each directory.

    See ``KafkaApis.handleDescribeLogDirsRequest``.
    """
    requested = None
    if request.topics is not None:
        requested = {
            names.campaign_partition(f"{topic.topic}-{number}")
            for topic in request.topics
            for number in topic.partitions
        }
    result = kind.DescribeLogDirsResult
    results = []
    for log_dir in range(disk.log_dirs):
        has_failed = log_dir in disk.failed_dirs
        sizes = {
            partition: disk.log_file(partition).size_bytes
            for partition, place in disk.dir_by_partition.items()
            if place == log_dir and not has_failed and (requested is None or partition in requested)
        }
        results.append(
            result(
                error_code=error_code(errors.KAFKA_STORAGE_ERROR if has_failed else errors.NONE),
                log_dir=_path(broker, log_dir),
                topics=list(_topics(result.fields["topics"], sizes, names)),
            )
        )
    return kind(error_code=0, results=results)


def _topics(kind: Any, sizes: Mapping[str, int], names: Names) -> Iterator[Any]:
    by_topic: dict[str, list[Any]] = {}
    for partition, size in sizes.items():
        topic, _, number = names.cluster_partition(partition).rpartition("-")
        described = kind.fields["partitions"](
            partition_index=int(number), partition_size=size, offset_lag=_NO_LAG, is_future_key=False
        )
        by_topic.setdefault(topic, []).append(described)
    for topic, partitions in by_topic.items():
        yield kind(name=topic, partitions=partitions)


def altered_log_dirs(request: Any, broker: int, cluster: Cluster, names: Names) -> Any:
    """Move replicas of a broker to the requested directories, and return the answer.

    See ``ReplicaManager.alterReplicaLogDirs``. Kafka copies a log first; here it moves at once.
    """
    kind = request.header.get_response_class()
    numbers = {_path(broker, log_dir): log_dir for log_dir in range(cluster.disks[broker].log_dirs)}
    topics = kind.AlterReplicaLogDirTopicResult
    partitions = topics.AlterReplicaLogDirPartitionResult
    errors_by_topic: dict[str, list[Any]] = {}
    for requested in request.dirs:
        for topic in requested.topics:
            for number in topic.partitions:
                partition = names.campaign_partition(f"{topic.name}-{number}")
                error = _move(cluster, broker, partition, numbers.get(requested.path))
                errors_by_topic.setdefault(topic.name, []).append(
                    partitions(partition_index=number, error_code=error_code(error))
                )
    return kind(
        results=[topics(topic_name=name, partitions=results) for name, results in errors_by_topic.items()]
    )


def _move(cluster: Cluster, broker: int, partition: str, log_dir: int | None) -> str:
    """Move a replica of a broker to a directory, and return the error."""
    disk, logs = cluster.disks[broker], cluster.brokers[broker].replicas.logs
    if log_dir is None:
        return _LOG_DIR_NOT_FOUND
    if not {log_dir, disk.dir_of(partition)}.isdisjoint(disk.failed_dirs.keys() | logs.offline_dirs.keys()):
        return errors.KAFKA_STORAGE_ERROR
    if cluster.partition_state(partition) is None:
        return errors.UNKNOWN_TOPIC_OR_PARTITION
    if not logs.has(partition):
        return _REPLICA_NOT_AVAILABLE
    disk.move(partition, log_dir)
    return errors.NONE


def _path(broker: int, log_dir: int) -> str:
    return f"/broker-{broker}/log-dir-{log_dir}"
