"""What a worker process does beside its tasks: it beats, watches its children, and gives back what it holds when it goes."""
