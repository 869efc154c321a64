"""`broker_isolation`: which links are cut, by whom the broker is cut off from."""

from faults.broker_isolation import BrokerIsolation
from tests.unit.test_faults import FakeSurroundings


def test_from_the_other_brokers_alone() -> None:
    surroundings = FakeSurroundings()
    assert BrokerIsolation(broker=1, from_="brokers").inject(surroundings)
    assert surroundings.did == [("cut", 1, 0), ("cut", 1, 2), ("cut", 0, 1), ("cut", 2, 1)]
