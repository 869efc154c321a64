"""The benchmark of costs predicts them with the model, and compares ratios of medians."""

from benchmarks.costs import CASES, MeasuredCase, MeasuredLatency, cost_table, predict


def test_the_model_predicts_a_flush_per_replica_from_one_measured_flush() -> None:
    times = {"flush_us": 5_000, "latency_us": 500, "client_us": 200}
    free, flushed = (
        predict(MeasuredCase(name="x", beside="x", flush=flush), "4.3.1", **times) for flush in (0, 1)
    )
    assert 9_000 < flushed.p50 - free.p50 < 12_000


def test_the_time_of_the_client_is_added_to_what_the_model_predicts() -> None:
    case = MeasuredCase(name="acks=0", beside="acks=0", acks="0")
    assert predict(case, "4.3.1", flush_us=400, latency_us=500, client_us=200) == MeasuredLatency(200, 200)


def test_a_ratio_is_close_within_a_factor_of_two() -> None:
    measured = {case.name: MeasuredLatency(1_000, 2_000) for case in CASES}
    predicted = {**measured, "acks=all": MeasuredLatency(2_000, 4_000), "acks=0": MeasuredLatency(0, 0)}
    rows = {row.split(" | ")[0].strip("| "): row for row in cost_table(measured, predicted).splitlines()}
    assert rows["acks=all"].endswith("| acks=1 | 1.00 | 2.00 | yes |")
    assert rows["acks=all, linger.ms=5"].endswith("| acks=all | 1.00 | 0.50 | yes |")
    assert rows["acks=0"].endswith("| acks=1 | 1.00 | 0.00 | no |")
