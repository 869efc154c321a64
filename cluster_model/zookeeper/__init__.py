"""ZooKeeper: its server, its client, and what Kafka keeps in it."""
