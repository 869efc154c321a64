"""Messages that kafka-python has no schemas of, as it wants them: their fields are those of Kafka's ``common/message``."""
