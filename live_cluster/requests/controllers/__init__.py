"""Single requests to a controller of KRaft, and to the model's: who registers, who is alive, what ISR a leader wants."""
