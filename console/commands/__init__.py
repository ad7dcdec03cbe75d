"""One file a command: its options, what it asks of the mesh, what it shows."""
