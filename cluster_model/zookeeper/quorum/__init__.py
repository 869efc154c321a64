"""Models a ZooKeeper ensemble: election, leader, followers, and each server's disk."""
