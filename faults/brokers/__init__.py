"""What happens to brokers: they die, stop, stand still, are slow or cut off."""
