"""The registration of every fault that a campaign can name."""

from typing import Final

from faults.broker_crash import BrokerCrash, BrokerRestart
from faults.broker_isolation import BrokerIsolation
from faults.broker_pause import BrokerPause, BrokerResume
from faults.controller_failover import ControllerFailover
from faults.fault import Fault
from faults.message import Message, Release
from faults.network_ack_loss import NetworkAckLoss
from faults.partition import NetworkPartition
from faults.session_expiry import SessionExpiry
from faults.slow_follower import SlowFollower

FAULTS: Final[dict[str, type[Fault]]] = {
    fault.name: fault
    for fault in (
        BrokerCrash,
        BrokerRestart,
        BrokerPause,
        BrokerResume,
        BrokerIsolation,
        ControllerFailover,
        SessionExpiry,
        NetworkAckLoss,
        SlowFollower,
        NetworkPartition,
        Message,
        Release,
    )
}
"""Fault classes by the name that a campaign uses."""
