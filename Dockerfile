# One image for every process of the mesh; docker-compose.yml says which one each container runs.
FROM python:3.11-slim-bookworm

ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /srv/jarvis

COPY requirements/runtime.lock requirements/runtime.lock
RUN pip install --require-hashes -r requirements/runtime.lock

COPY pyproject.toml README.md LICENSE ./
COPY persistence persistence
COPY workflow workflow
COPY bus bus
COPY mesh mesh
COPY workers workers
COPY console console
COPY examples examples
RUN pip install --no-deps --no-build-isolation .

RUN useradd --create-home --uid 10001 jarvis && mkdir -p /var/lib/jarvis && chown jarvis /var/lib/jarvis
USER jarvis
WORKDIR /var/lib/jarvis
CMD ["celery", "-A", "workers", "worker", "--without-gossip", "--without-mingle", "--without-heartbeat"]
