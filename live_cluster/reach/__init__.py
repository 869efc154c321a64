"""What a campaign asks for that real brokers cannot do or show."""
