"""How many requests were compared, what differed, and recordings of that."""
