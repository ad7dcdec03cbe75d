"""The processes of the mesh: Celery workers, the sweeper, the consumers, the private server and what keeps them running."""
