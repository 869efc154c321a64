"""Models a broker, which handles requests, and leads or follows partitions."""
