"""A campaign can declare disks, networks, client quotas, throttled replicas and later brokers."""

import pytest

from harrow.campaigns.language.plan_file import campaign_text
from harrow.cluster_model.topology import BrokerSpec, QuotaSpec
from tests.campaigns.language.campaign_texts import plan, problems

QUOTAS = """
name: x
cluster:
  quotas:
    - {producer_byte_rate: 64KB/s}
    - {client: bulk, producer_byte_rate: 1MB/s, consumer_byte_rate: 500B/s}
workload: {producers: [{name: bulk}]}
"""
JOINING_BROKER = "name: x\ncluster: {brokers: [{id: 0}, {id: 1, joins: 30s}, {id: 2, joins: never}]}"
THROTTLE = "throttled.replicas"


def test_a_quota_is_for_one_client_or_for_all_clients_without_their_own() -> None:
    quotas = plan(QUOTAS).cluster.quotas
    assert quotas == (
        QuotaSpec(producer_byte_rate=64_000),
        QuotaSpec(client="bulk", producer_byte_rate=1_000_000, consumer_byte_rate=500),
    )


@pytest.mark.parametrize(
    ("disk", "costs"),
    [
        ("{}", (1_000, None)),
        ("{kind: hdd}", (10_000, 150_000_000)),
        ("{kind: hdd, flush: 2ms}", (2_000, 150_000_000)),
        ("{write: 1GB/s}", (1_000, 1_000_000_000)),
        ("{flush: 0s}", (0, None)),
    ],
)
def test_a_disk_costs_what_its_kind_costs_unless_the_campaign_says_more(
    disk: str, costs: tuple[int, int | None]
) -> None:
    assert plan(f"name: x\ncluster: {{disk: {disk}}}").cluster.disk.costs == costs


@pytest.mark.parametrize("text", ["1Gbit/s", "1000Mbit/s", "125MB/s", "125000KB/s"])
def test_a_bandwidth_counts_bytes_or_bits(text: str) -> None:
    network = plan(f"name: x\ncluster: {{network: {{bandwidth: {text}}}}}").cluster.network
    assert network.bytes_per_second == 125_000_000


def test_a_broker_joins_at_its_time_or_at_its_step_of_the_script() -> None:
    cluster = plan(JOINING_BROKER).cluster
    assert cluster.brokers == (
        BrokerSpec(id=0),
        BrokerSpec(id=1, joins_us=30_000_000),
        BrokerSpec(id=2, joins_us=None),
    )
    assert [broker.id for broker in cluster.initial_brokers()] == [0]
    assert cluster.topics[0].replication_factor == 1


@pytest.mark.parametrize("text", [QUOTAS, JOINING_BROKER], ids=["quotas", "later"])
def test_a_written_plan_loads_as_the_same_plan(text: str) -> None:
    first = plan(text)
    assert plan(campaign_text(first)).cluster == first.cluster


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        ("disk: {kind: floppy}", "`floppy` is not one of ssd, nvme, hdd, cloud"),
        ("disk: {flush: never}", "`never` is not a duration"),
        ("disk: {page_cache: -1}", "-1 is too small: at least 0"),
        ("network: {bandwidth: 1Gb/s}", "`1Gb/s` is not a bandwidth"),
        ("quotas: [{client: nobody, producer_byte_rate: 1B/s}]", "unknown client `nobody`"),
        ("quotas: [{}]", "a quota needs a `producer_byte_rate` or a `consumer_byte_rate`"),
        (
            "quotas: [{producer_byte_rate: 1B/s}, {consumer_byte_rate: 1B/s}]",
            "the default quota is listed twice",
        ),
        ("quotas: [{producer_byte_rate: 0B/s}]", "`0B/s` is not a bandwidth"),
        (f"topics: [{{name: t, settings: {{leader.replication.{THROTTLE}: 0-1}}}}]", "expected a list such as 0:1,0:2"),
        ("brokers: [{id: 0, joins: 1s}]", "a cluster needs a broker at the start"),
        (
            "brokers: [{id: 0}, {id: 1, joins: 1s}], topics: [{name: t, replication_factor: 2}]",
            "larger than the number of brokers at the start, 1",
        ),
        (
            "brokers: [{id: 0}, {id: 1, joins: 1s}], topics: [{name: t, assignment: [[0, 1]]}]",
            "broker 1 joins only after the topic is created",
        ),
        ("brokers: [{id: 0}, {id: 1, joins: 1s}], controller: 1", "broker 1 joins later"),
    ],
)  # fmt: skip
def test_an_impossible_cluster_is_refused(cluster: str, message: str) -> None:
    (problem,) = problems(f"name: x\ncluster: {{{cluster}}}")
    assert message in problem


COMBINED = """\
name: x
kafka: "4.0"
cluster:
  kraft: {combined: true, voters: 5}
"""
_NEED = "5 voters need as many brokers with `combined: true`, but"


def test_combined_controllers_are_at_most_as_many_as_brokers() -> None:
    assert problems(COMBINED) == [f"4:35: {_NEED} there are 3"]
    assert problems(COMBINED, "cluster.brokers=4") == [f"4:35: {_NEED} there are 4"]
    by_campaign = COMBINED + "  brokers: [{id: 0}, {id: 1}, {id: 2}, {id: 3}, {id: 4, joins: 3s}]\n"
    assert problems(by_campaign) == [f"4:35: {_NEED} there are 4 at the start"]
    assert plan(COMBINED, "cluster.brokers=5").cluster.controller_ids() == (0, 1, 2, 3, 4)
    by_option = problems('name: x\nkafka: "4.0"\n', "cluster.kraft.combined=true", "cluster.kraft.voters=5")
    assert by_option == [f"--set: cluster.kraft.voters=5: {_NEED} there are 3"]


def test_combined_voters_are_at_most_as_many_as_the_fewest_brokers_that_a_seed_draws() -> None:
    swarm = "swarm: {brokers: 4..6, aims: {share: 0.5, any_of: [{probe: log-compacted AIM}]}}\n"
    swarming = COMBINED + swarm
    assert problems(swarming.replace("AIM", "")) == [f"4:35: {_NEED} a seed may draw 4"]
    assert problems(swarming.replace("4..6", "5..6").replace(" AIM", ", brokers: 3")) == [
        f"4:35: {_NEED} a seed may draw 3"
    ]
    assert plan(swarming.replace("4..6", "5..6").replace("AIM", "")).cluster.voters == 5


@pytest.mark.parametrize("written", ["", ", voters: 2"])
def test_by_default_all_brokers_are_voters_if_there_are_fewer_than_three(written: str) -> None:
    cluster = plan(COMBINED.replace(", voters: 5", written), "cluster.brokers=2").cluster
    assert cluster.controller_ids() == (0, 1)


def test_unused_voters_are_never_too_many() -> None:
    assert plan(COMBINED.replace("4.0", "2.4")).cluster.voters == 5
    assert plan(COMBINED.replace("combined: true", "combined: false")).cluster.voters == 5


def test_a_lag_in_records_is_allowed_only_with_the_behaviour_that_uses_it() -> None:
    lag = "settings: {replica.lag.max.messages: 4}"
    (problem,) = problems(f"name: x\n{lag}")
    assert "`behaviours: {isr_lag_counts_messages: true}` brings it back" in problem
    assert plan(f"name: x\n{lag}\nbehaviours: {{isr_lag_counts_messages: true}}").cluster.settings
