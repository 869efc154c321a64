"""Answers what brokers of the model do not know: versions, topics, settings, logins."""
