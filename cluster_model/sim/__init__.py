"""The simulator: virtual time, processes, and the network between them."""
