"""Results for people, rendered by Rich."""
