"""What acks, flushes, lingering and replicas cost in throughput: of real brokers and of the model.

Run ``python -m benchmarks.throughput RELEASE [ROUNDS]`` with a release that ``harrow kafka get``
has downloaded. It needs a JDK. Kafka's Java producer, on which the model's is modelled, sends
records of 1 kB to one partition as fast as it can, case after case, in one process, which drops the
first seconds of each case. (Kafka's own ``kafka-producer-perf-test`` is in none of the jars that
brokers need, and librdkafka fills batches by other rules.) The model then runs the same cases. It
gets the flush and the latency as in `benchmarks.costs`, and one more number: the rate of acks=0,
where the producer never waits. Processes of the model use no processor time, so its producer gets
no more records than that.

A busy machine measures its scheduler. Start the benchmark with ``chrt --rr 1`` if other processes
run. The table is that of docs/evidence/costs.md.
"""

import argparse
import statistics
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from benchmarks.costs import CASES, CLOSE_FACTOR, RECORD_BYTES, MeasuredCase, brokers, measure, plan_of
from benchmarks.kafka_jvm import median_flush_us, run_java
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.record.markdown import table
from harrow.campaigns.run.runner import run_plan
from harrow.cluster_model.history import OK, SEND
from harrow.cluster_model.sim.virtual_time import US_PER_MS, US_PER_SECOND

_CASE_S: Final = 3
_PROGRAM: Final = """\
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.producer.*;

/** Sends records without a pause: each line of a file has a topic and settings. */
public class Saturate {
    static final long NS = 1_000_000_000L;

    public static void main(String[] arguments) throws Exception {
        byte[] value = new byte[Integer.parseInt(arguments[1])];
        long seconds = Long.parseLong(arguments[2]);
        for (String line : Files.readAllLines(Path.of(arguments[3]))) {
            String[] words = line.split(" ");
            Properties settings = new Properties();
            settings.put("bootstrap.servers", arguments[0]);
            for (String role : List.of("key", "value"))
                settings.put(role + ".serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
            for (String word : Arrays.asList(words).subList(1, words.length))
                settings.put(word.split("=")[0], word.split("=")[1]);
            System.out.println(rate(new KafkaProducer<>(settings), new ProducerRecord<>(words[0], 0, null, value), seconds));
        }
    }

    static long rate(KafkaProducer<byte[], byte[]> producer, ProducerRecord<byte[], byte[]> record, long seconds) {
        AtomicLong acked = new AtomicLong();
        long warm = System.nanoTime() + seconds * NS / 2, end = warm + seconds * NS, now = 0, from = 0, before = 0;
        while (now < end) {
            producer.send(record, (sent, error) -> {
                if (error == null) acked.incrementAndGet();
                else System.exit(1);
            });
            now = System.nanoTime();
            if (from == 0 && now >= warm) {
                from = now;
                before = acked.get();
            }
        }
        long rate = (acked.get() - before) * NS / (now - from);
        producer.close();
        return rate;
    }
}
"""
_MODEL_US: Final = US_PER_SECOND // 2
_FREE: Final = "acks=0"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("release")
    parser.add_argument("rounds", nargs="?", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place, brokers(options.release, Path(place)) as servers:
        folder = Path(place)
        _, round_trip_us = measure(servers, 1)
        measured = measured_rates(servers, options.release, folder, options.rounds)
        flush_us = median_flush_us(options.release, folder)
    latency_us = round_trip_us // 2
    predicted = {
        case.name: predicted_rate(plan_of(case, options.release, flush_us, latency_us), measured[_FREE])
        for case in CASES
    }
    print(
        f"A flush takes {flush_us / US_PER_MS:.2f} ms (median); a message {latency_us / US_PER_MS:.2f} ms.\n"
    )
    print(rate_table(measured, predicted))


def measured_rates(servers: str, release: str, folder: Path, rounds: int) -> Mapping[str, float]:
    """Return how many records per second each case acks; the median of all rounds."""
    cases = folder / "cases"
    # The first round warms up.
    lines = [_line(case) for _ in range(rounds + 1) for case in CASES]
    cases.write_text("\n".join(lines), encoding="utf-8")
    printed = run_java(_PROGRAM, release, folder, servers, str(RECORD_BYTES), str(_CASE_S), cases)
    rates = [*map(int, printed)][len(CASES) :]
    return {case.name: statistics.median(rates[index :: len(CASES)]) for index, case in enumerate(CASES)}


def _line(case: MeasuredCase) -> str:
    return f"{case.topic} acks={case.acks} linger.ms={case.linger_ms} enable.idempotence=false"


def predicted_rate(plan: Plan, client_rate: float) -> float:
    """Return how many records per second the model acks if it gets as many as the client sends."""
    (producer,) = plan.producers
    interval_us = round(US_PER_SECOND / client_rate)
    producer = replace(producer, interval_us=interval_us, stop_us=_MODEL_US)
    result = run_plan(replace(plan, producers=(producer,), duration_us=_MODEL_US), 1)
    acked = sum(
        operation.type == OK and _MODEL_US // 4 <= operation.time_us < _MODEL_US
        for operation in result.evidence.operations
        if operation.f == SEND
    )
    return acked * US_PER_SECOND / (_MODEL_US * 3 // 4)


def rate_table(measured: Mapping[str, float], predicted: Mapping[str, float]) -> str:
    """Return the table: rates, and each as a multiple of the rate it is beside."""
    rows = []
    for case in CASES:
        real, model = measured[case.name], predicted[case.name]
        ratios = real / measured[case.beside], model / predicted[case.beside]
        rows.append(
            (
                case.name,
                *(f"{rate:,.0f}/s".replace(",", " ") for rate in (real, model)),
                case.beside,
                *(f"{ratio:.2f}" for ratio in ratios),
                "yes" if max(ratios) / min(ratios) <= CLOSE_FACTOR else "no",
            )
        )
    columns = ("real", "model", "beside", "ratio, real", "ratio, model")
    return table(("settings", *columns, f"within a factor of {CLOSE_FACTOR:.0f}"), rows)


if __name__ == "__main__":
    main()
