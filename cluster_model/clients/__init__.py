"""Models Kafka's clients: producers, consumers, and the code that both use."""
