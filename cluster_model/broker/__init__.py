"""A broker: requests, partitions it leads, replicas it follows."""
