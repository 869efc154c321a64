"""Speaking with brokers, a request at a time: every API and version, with the schemas of kafka-python."""
