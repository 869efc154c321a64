"""The simulator: virtual time, processes, the network between them, and the cluster they make up."""
