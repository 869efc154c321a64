"""What happens to producers and consumers: their processes die or stand still."""
