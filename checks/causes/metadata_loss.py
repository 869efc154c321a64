"""What follows when the quorum of KRaft loses what it had committed: brokers go by a cluster that was.

Replicas are in ISRs again that had left them, leaders of the past lead, epochs are given away twice. Kafka promises nothing
of that (a quorum stands for the disks of its majority), so whatever breaks from then on is permitted by the disks.
"""

from dataclasses import replace

from harrow.checks import promise
from harrow.checks.causes import catalogue
from harrow.checks.finding import Finding
from harrow.checks.index import Index


def excused_by_metadata_loss(index: Index, finding: Finding) -> Finding:
    """Return a finding, permitted where it came about after committed metadata had been lost with disks."""
    lost_us = index.metadata_lost_us
    if lost_us is None or finding.permitted_by is not None:
        return finding
    latest_us = max((link.at_us for link in finding.chain if link.at_us is not None), default=lost_us)
    if latest_us < lost_us:
        return finding
    # What says that nothing permits it is wrong now.
    told = (link for link in finding.chain if link.kind is not catalogue.committed_record_lost)
    chain = (*told, catalogue.metadata_lost.conclude())
    return replace(finding, chain=chain, permitted_by=promise.DISK_FAILURE, prevented_by=())
