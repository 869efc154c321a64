"""An ensemble of ZooKeeper servers: election, leader, followers, and what each keeps on its disk."""
