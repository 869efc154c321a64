"""Coordinators of transactions and groups: the leaders of partitions of internal topics."""
