"""Models coordinators of transactions and groups, which lead partitions of internal topics."""
