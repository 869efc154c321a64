"""Rules over the history alone: what Jepsen's Kafka workload calls anomalies, in one pass and linear time."""
