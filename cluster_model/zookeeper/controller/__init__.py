"""The controller of a ZooKeeper cluster: its events, its state machines, its requests to brokers."""
