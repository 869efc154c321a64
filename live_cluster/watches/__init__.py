"""What is seen of real brokers: threads that ask again and again, and what they have found out."""
