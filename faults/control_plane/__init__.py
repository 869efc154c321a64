"""What happens to a broker's registration, and to the controller."""
