"""Links between processes on one machine: proxies in front of brokers and ZooKeeper, on which faults act."""
