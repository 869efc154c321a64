"""What happens to links, and to single messages on them."""
