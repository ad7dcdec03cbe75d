"""The memory adapters stand alone."""

import importlib
import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["mesh.heartbeats", "mesh.knowledge"])
def test_importing_a_store_loads_no_redis_client(module):
    program = f"import {module}, sys; sys.exit('redis' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize("module", ["mesh.heartbeats", "mesh.knowledge"])
def test_every_public_name_is_there(module):
    loaded = importlib.import_module(module)
    assert all(getattr(loaded, name) for name in loaded.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        _ = loaded.nothing
