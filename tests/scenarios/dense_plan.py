"""standard.yaml with many more faults.

A few seeds of it reach states for which standard.yaml itself needs hundreds.
"""

from dataclasses import replace
from functools import cache

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.language.plan import Plan
from harrow.cluster_model.sim.virtual_time import US_PER_MS, US_PER_SECOND
from harrow.faults.brokers import BrokerCrash, BrokerPause
from harrow.faults.fault import Fault
from harrow.faults.injection import Rate
from harrow.faults.links import NetworkPartition

_S = US_PER_SECOND


@cache
def standard_plan() -> Plan:
    """Return standard.yaml."""
    return load_campaign(resolve("standard")[0]).plans[0]


@cache
def dense_plan(*, power_loss: bool = False) -> Plan:
    """Return standard.yaml with a fault every two seconds: crashes, long pauses, partitions."""
    pause = BrokerPause(broker="any", duration=(5 * _S, 30 * _S))
    faults: list[Fault] = [pause, pause]
    faults.append(BrokerCrash(broker="any", kind="process", restart_after=(100 * US_PER_MS, 3 * _S)))
    faults += [
        NetworkPartition(between=(broker,), and_=("zookeeper",), duration=(5 * _S, 30 * _S))
        for broker in range(3)
    ]
    faults += [
        NetworkPartition(between=(broker,), and_=((broker + 1) % 3,), duration=(5 * _S, 20 * _S))
        for broker in range(3)
    ]
    if power_loss:
        faults += [BrokerCrash(broker="any", kind="power_loss", restart_after=(_S, 10 * _S))] * 5
    injection = standard_plan().faults[0]
    assert isinstance(injection.timing, Rate)
    timing = replace(injection.timing, mean_us=2 * _S)
    return replace(
        standard_plan(), faults=(replace(injection, timing=timing, faults=(*injection.faults, *faults)),)
    )
