"""Models ZooKeeper itself: znodes, sessions, a single server, and the client of brokers."""
