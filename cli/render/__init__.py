"""Results for people, as Rich renders them."""
