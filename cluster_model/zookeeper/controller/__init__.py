"""Models the controller on ZooKeeper: its events, state machines, and requests to brokers."""
