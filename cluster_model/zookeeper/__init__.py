"""Models ZooKeeper as a control plane, and the brokers' part in it."""
