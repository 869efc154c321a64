"""Single requests to a broker as coordinator of groups and transactions, and to the model's."""
