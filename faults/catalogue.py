"""The registration of every fault that a campaign can name."""

from typing import Final

from harrow.cluster_model.registry import Registry
from harrow.faults.bit_rot import BitRot
from harrow.faults.broker_crash import BrokerCrash, BrokerRestart
from harrow.faults.broker_isolation import BrokerIsolation
from harrow.faults.broker_pause import BrokerPause, BrokerResume
from harrow.faults.broker_slow import BrokerSlow
from harrow.faults.broker_stop import BrokerBounce, BrokerStop
from harrow.faults.client_processes import ClientCrash, ClientPause, ClientZombie
from harrow.faults.controller_failover import ControllerFailover
from harrow.faults.disk_full import DiskFull
from harrow.faults.disk_loss import DiskLoss
from harrow.faults.fault import Fault
from harrow.faults.link_reset import LinkReset
from harrow.faults.link_slow import LinkSlow
from harrow.faults.log_dir_failure import LogDirFailure
from harrow.faults.message import Message, Release
from harrow.faults.network_ack_loss import NetworkAckLoss
from harrow.faults.network_split import NetworkSplit
from harrow.faults.partition import NetworkPartition
from harrow.faults.rolling_restart import RollingRestart
from harrow.faults.session_expiry import SessionExpiry
from harrow.faults.slow_follower import SlowFollower
from harrow.faults.stale_checkpoint import StaleCheckpoint
from harrow.faults.torn_write import TornWrite

FAULTS: Final[Registry[str, type[Fault]]] = Registry(
    (fault.name, fault)
    for fault in (
        BrokerCrash,
        BrokerRestart,
        BrokerStop,
        BrokerBounce,
        RollingRestart,
        BrokerPause,
        BrokerResume,
        BrokerSlow,
        BrokerIsolation,
        DiskLoss,
        TornWrite,
        BitRot,
        LogDirFailure,
        DiskFull,
        StaleCheckpoint,
        ControllerFailover,
        SessionExpiry,
        NetworkAckLoss,
        SlowFollower,
        NetworkPartition,
        NetworkSplit,
        LinkSlow,
        LinkReset,
        ClientCrash,
        ClientPause,
        ClientZombie,
        Message,
        Release,
    )
)
"""Fault classes by the name that a campaign uses."""
