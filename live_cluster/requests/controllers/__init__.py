"""Single requests to a KRaft controller: registrations, heartbeats and changes of ISRs."""
