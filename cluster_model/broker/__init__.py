"""A broker: its requests, and its partitions as leader and follower."""
