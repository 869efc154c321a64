"""What a run leaves behind, and reading it back."""
