"""Opens the ports of a served cluster, and reads and writes their sockets."""
