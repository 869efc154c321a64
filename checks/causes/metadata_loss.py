"""Permits what follows when the KRaft quorum loses committed metadata.

Replicas are back in ISRs that they had left, former leaders lead, and epochs are assigned twice.
Kafka promises nothing in that case, because a quorum relies on the disks of its majority. Whatever
breaks from then on is permitted by disk failure.
"""

from dataclasses import replace

from harrow.checks import promise
from harrow.checks.causes import catalogue
from harrow.checks.finding import Finding
from harrow.checks.index import Index


def excused_by_metadata_loss(index: Index, finding: Finding) -> Finding:
    """Permit a finding that came about after committed metadata had been lost with disks."""
    lost_us = index.metadata_lost_us
    if lost_us is None or finding.permitted_by is not None:
        return finding
    latest_us = max((link.at_us for link in finding.chain if link.at_us is not None), default=lost_us)
    if latest_us < lost_us:
        return finding
    # The conclusion that nothing permits the loss is wrong now.
    kept_links = (link for link in finding.chain if link.kind is not catalogue.committed_record_lost)
    chain = (*kept_links, catalogue.metadata_lost.conclude())
    return replace(finding, chain=chain, permitted_by=promise.DISK_FAILURE, prevented_by=())
