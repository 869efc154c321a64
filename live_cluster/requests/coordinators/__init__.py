"""Single requests to a broker as the coordinator of groups and transactions."""
