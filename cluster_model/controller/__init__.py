"""Has what ZooKeeper and KRaft share: interface, assignment, elections, channel to controllers."""
