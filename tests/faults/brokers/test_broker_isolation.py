"""`broker_isolation`: which links are cut, by whom the broker is cut off from."""

from harrow.faults.brokers.broker_isolation import BrokerIsolation
from tests.faults.test_faults import FakeEnvironment


def test_from_the_other_brokers_alone() -> None:
    environment = FakeEnvironment()
    BrokerIsolation(broker=1, from_="brokers").inject(environment)
    assert environment.did == [("cut", 1, 0), ("cut", 1, 2), ("cut", 0, 1), ("cut", 2, 1)]


def test_from_the_quorum_is_another_word_for_from_zookeeper() -> None:
    one, other = FakeEnvironment(), FakeEnvironment()
    BrokerIsolation(broker=1, from_="quorum").inject(one)
    BrokerIsolation(broker=1, from_="zookeeper").inject(other)
    assert one.did == other.did == [("cut", 1, "zookeeper"), ("cut", "zookeeper", 1)]
