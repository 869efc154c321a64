"""The registration of every fault that a campaign can name."""

from typing import Final

from harrow.cluster_model.registry import Registry
from harrow.faults.brokers.broker_crash import BrokerCrash
from harrow.faults.brokers.broker_isolation import BrokerIsolation
from harrow.faults.brokers.broker_pause import BrokerPause, BrokerResume
from harrow.faults.brokers.broker_restart import BrokerRestart
from harrow.faults.brokers.broker_slow import BrokerSlow
from harrow.faults.brokers.broker_stop import BrokerBounce, BrokerStop
from harrow.faults.brokers.rolling_restart import RollingRestart
from harrow.faults.clients.applications import ApplicationCrash, ApplicationPause, RebalanceStorm, SlowPoll
from harrow.faults.clients.client_processes import ClientCrash, ClientPause, ClientZombie
from harrow.faults.clocks.clock_skew import ClockSkew
from harrow.faults.control_plane.controller_failover import ControllerFailover
from harrow.faults.control_plane.session_expiry import SessionExpiry
from harrow.faults.disks.bit_rot import BitRot
from harrow.faults.disks.disk_loss import DiskLoss
from harrow.faults.disks.disk_slow import DiskSlow
from harrow.faults.disks.log_dirs import DiskFull, LogDirFailure
from harrow.faults.disks.stale_checkpoint import StaleCheckpoint
from harrow.faults.disks.torn_write import TornWrite
from harrow.faults.fault import Fault
from harrow.faults.links.link_reset import LinkReset
from harrow.faults.links.link_slow import LinkSlow
from harrow.faults.links.message import Message, Release
from harrow.faults.links.network_ack_loss import NetworkAckLoss
from harrow.faults.links.network_split import NetworkSplit
from harrow.faults.links.partition import NetworkPartition
from harrow.faults.links.slow_follower import SlowFollower

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
        DiskSlow,
        StaleCheckpoint,
        ClockSkew,
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
        ApplicationCrash,
        ApplicationPause,
        SlowPoll,
        RebalanceStorm,
        Message,
        Release,
    )
)
"""Fault classes by the name that a campaign uses."""
