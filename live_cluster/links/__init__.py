"""Links between processes on one machine: proxies for brokers and ZooKeeper, and their faults."""
