"""Models ZooKeeper itself: znodes, sessions, a single server, and the client that brokers use."""
