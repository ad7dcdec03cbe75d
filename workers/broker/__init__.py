"""How hints travel: Celery over Redis, Valkey or RabbitMQ, set up so that a worker goes on consuming whatever happens to it."""
