"""Processes on this machine: brokers, ZooKeeper, controllers; all end with harrow, whatever ends it."""
