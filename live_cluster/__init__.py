"""Real brokers: downloads Kafka, starts processes, runs campaigns on them, and observes them."""
