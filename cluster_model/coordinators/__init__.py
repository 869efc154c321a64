"""Coordinators of transactions and groups: what they keep in internal topics, and the leaders of these that are them."""
