"""Rules over the history alone: the anomalies of Jepsen's Kafka workload, in linear time."""
