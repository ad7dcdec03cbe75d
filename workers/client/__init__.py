"""The mesh as its users reach it, from any process."""

from workers.client.mesh_client import MeshClient, RunHandle, RunResult

__all__ = ["MeshClient", "RunHandle", "RunResult"]
