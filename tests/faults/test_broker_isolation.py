"""`broker_isolation` cuts the links between a broker and the selected nodes."""

from harrow.faults.brokers import BrokerIsolation
from harrow.faults.effects import Cut
from tests.faults.test_faults import FakeEnvironment


def test_isolation_from_brokers_leaves_the_link_to_zookeeper() -> None:
    isolation = BrokerIsolation(broker=1, from_="brokers")
    assert isolation.effects(FakeEnvironment()) == [Cut(1, 0), Cut(1, 2), Cut(0, 1), Cut(2, 1)]


def test_isolation_from_the_quorum_is_isolation_from_zookeeper() -> None:
    for word in ("quorum", "zookeeper"):
        isolation = BrokerIsolation(broker=1, from_=word)
        assert isolation.effects(FakeEnvironment()) == [Cut(1, "zookeeper"), Cut("zookeeper", 1)]


def test_the_only_broker_may_be_isolated_from_brokers() -> None:
    class OneBroker(FakeEnvironment):
        def broker_ids(self) -> tuple[int, ...]:
            return (0,)

    isolation = BrokerIsolation(broker=0, from_="brokers")
    assert isolation.applies(OneBroker())
    assert isolation.effects(OneBroker()) == []
