"""Describes the log directories of a served broker (``KafkaApis.handleDescribeLogDirsRequest``)."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from harrow.cluster_model import errors
from harrow.cluster_model.log.disk import Disk
from harrow.live_cluster.names import Names
from harrow.live_cluster.wire.errors import error_code

_NO_LAG: Final = 0
"""By how much a log's LEO is below its own high watermark. Only a log that is being copied to
another directory lags, and harrow moves a log at once."""


def described_log_dirs(kind: Any, request: Any, broker: int, disk: Disk, names: Names) -> Any:
    """Return the answer, of the class *kind*, with the sizes of the logs in each directory."""
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
                log_dir=log_dir_path(broker, log_dir),
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


def log_dir_path(broker: int, log_dir: int) -> str:
    """Return what clients take for the path of a log directory."""
    return f"/broker-{broker}/log-dir-{log_dir}"
