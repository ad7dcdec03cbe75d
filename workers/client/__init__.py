"""The mesh as its users reach it, from any process."""

from workers.client.handle import RunHandle, RunResult
from workers.client.mesh_client import MeshClient

__all__ = ["MeshClient", "RunHandle", "RunResult"]
