"""Getting Kafka: which releases there are, their jars, where they are kept, and Java."""
