"""Adds the reports of a consumer's process to the history and the trace."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from harrow.cluster_model import errors
from harrow.cluster_model.events import (
    CommitFailed,
    GroupOffsetFound,
    PartitionsAssigned,
    PartitionsRevoked,
    RecordsProcessed,
)
from harrow.cluster_model.history import ASSIGN, FAIL, INFO, INVOKE, OK, SUBSCRIBE
from harrow.live_cluster.clients.client_host import ClientHost

_MAY_BE_STORED: Final = frozenset(
    {errors.NETWORK_EXCEPTION, errors.REQUEST_TIMED_OUT, "_TIMED_OUT", "_TRANSPORT"}
)
"""Errors after which a commit may have been stored, by the names of Kafka and librdkafka."""


class MemberSession:
    """One process of a consumer, whose reports go to the history and the trace.

    ``process`` is the number of the process in the history.
    """

    def __init__(self, host: ClientHost, process: int, name: str, group: str, topics: Sequence[str]) -> None:
        self._host = host
        self.process = process
        self._name = name
        self._group = group
        self._topics = topics
        self._generation = -1

    def take(self, report: Mapping[str, Any]) -> None:
        host, name, group = self._host, self._name, self._group
        at_us = host.clock.us_of(report["at"])
        if "records" in report:
            self.take_poll(report)
        elif "subscribed" in report:
            read = [p for p in host.partitions if p.rpartition("-")[0] in self._topics]
            host.reports.add_assignment(self.process, SUBSCRIBE, read, at_us)
        elif "assigned" in report:
            self._generation = report["generation"]
            host.report(PartitionsAssigned, name, group, self._generation, tuple(report["assigned"]))
            host.reports.add_assignment(self.process, ASSIGN, report["owned"], at_us)
        elif "revoked" in report:
            revoked, is_lost = tuple(report["revoked"]), report["lost"]
            host.report(PartitionsRevoked, name, group, self._generation, revoked, is_lost)
            host.reports.add_assignment(self.process, ASSIGN, report["owned"], at_us)
        elif "rewound" in report:
            host.reports.add_assignment(self.process, ASSIGN, (), at_us)
            host.reports.add_assignment(self.process, ASSIGN, report["rewound"], at_us)
        elif "found" in report:
            for partition, offset in report["found"].items():
                host.report(GroupOffsetFound, name, partition, offset)
        elif "processed" in report:
            for partition, (end, values) in report["processed"].items():
                host.report(RecordsProcessed, name, group, partition, end, tuple(values))
        else:
            self._take_commit(report, at_us)

    def take_poll(self, report: Mapping[str, Any]) -> dict[str, list[tuple[int, str]]]:
        """Add the result of a poll, and return it."""
        records = {
            partition: [(offset, value) for offset, value in pairs]
            for partition, pairs in report["records"].items()
        }
        us_of = self._host.clock.us_of
        if records:
            self._host.reports.add_poll(self.process, records, us_of(report["invoked"]), us_of(report["at"]))
        return records

    def _take_commit(self, report: Mapping[str, Any], at_us: int) -> None:
        reports, error = self._host.reports, report.get("error")
        if "committing" in report:
            reports.add_commit(self.process, INVOKE, report["committing"], at_us)
        elif "outcome" in report:
            # The commit was part of a transaction.
            reports.add_commit(self.process, report["outcome"], report["committed"], at_us, error)
        elif error is None:
            reports.add_commit(self.process, OK, report["committed"], at_us)
        else:
            type_ = INFO if error in _MAY_BE_STORED else FAIL
            offsets = report["committed"]
            reports.add_commit(self.process, type_, offsets, at_us, error)
            self._host.report(CommitFailed, self._name, self._group, error, tuple(offsets.items()))
