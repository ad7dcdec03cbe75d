"""What hears the bus: heartbeats are recorded, alerts delivered, and signals given to runs that wait for them."""
