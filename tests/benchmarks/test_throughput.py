"""The benchmark of throughput predicts rates with the model, and compares their ratios."""

from benchmarks.costs import CASES, MeasuredCase, plan_of
from benchmarks.throughput import predicted_rate, rate_table

RECORDS_PER_BATCH = 16
FLUSH_US = 5_000


def test_a_broker_acks_one_batch_of_a_partition_per_flush() -> None:
    case = MeasuredCase(name="x", beside="x", acks="1", flush=1)
    rate = predicted_rate(plan_of(case, "4.3.1", FLUSH_US, latency_us=500), client_rate=10_000)
    limit = RECORDS_PER_BATCH * 1_000_000 / FLUSH_US
    assert limit / 2 < rate <= limit


def test_nothing_limits_acks_0_but_the_client() -> None:
    case = MeasuredCase(name="x", beside="x", acks="0", flush=1)
    rate = predicted_rate(plan_of(case, "4.3.1", FLUSH_US, latency_us=500), client_rate=10_000)
    assert 9_000 < rate < 11_000


def test_the_ratios_of_rates_are_compared() -> None:
    measured = {case.name: 1_000.0 for case in CASES}
    rows = {
        row.split(" | ")[0].strip("| "): row
        for row in rate_table(measured, {**measured, "acks=all": 2_001.0}).splitlines()
    }
    assert rows["acks=all"].endswith("| acks=1 | 1.00 | 2.00 | no |")
    assert rows["acks=1"].endswith("| acks=1 | 1.00 | 1.00 | yes |")
