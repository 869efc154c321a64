"""Finds the anomalies of Jepsen's Kafka workload in a history alone, in linear time."""
