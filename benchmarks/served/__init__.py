"""Programs for `benchmarks.served_clients`, one for each client library."""
