"""The controller: broker registrations, elections, and requests to brokers."""
