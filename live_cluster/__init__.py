"""Real brokers as a target: getting Kafka, processes, and what is known of them."""
