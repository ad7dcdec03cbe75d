"""The ownership of a data folder."""

import os
import shutil

import pytest

from workers.errors import FolderInUseError
from workers.processes import owner_of
from workers.processes.claim import PATIENCE_SECONDS, claim_folder


def test_the_owner_is_known_until_it_gives_the_folder_back(tmp_path):
    claim = claim_folder(tmp_path / "data")
    assert owner_of(tmp_path / "data") == os.getpid()
    with pytest.raises(FolderInUseError, match=f"in use by process {os.getpid()}") as refusal:
        claim_folder(tmp_path / "data")
    assert refusal.value.pid == os.getpid()
    claim.release()
    claim_folder(tmp_path / "data").release()


def test_what_a_dead_owner_left_is_waited_for_and_then_named(tmp_path):
    claim = claim_folder(tmp_path)
    (tmp_path / "owner.lock").write_text('{"pid": 1, "started": "long ago"}')
    slept: list[float] = []
    with pytest.raises(FolderInUseError, match=r"What an earlier run left still holds .*: wait a moment") as refusal:
        claim_folder(tmp_path, clock=lambda: sum(slept), sleep=slept.append)
    assert refusal.value.pid is None
    assert sum(slept) == pytest.approx(PATIENCE_SECONDS, abs=0.1)
    claim.release()


def test_the_folder_is_free_once_the_dead_owners_guardian_is_done(tmp_path):
    claim = claim_folder(tmp_path)
    (tmp_path / "owner.lock").write_text("")
    claim_folder(tmp_path, sleep=lambda _: claim.release()).release()


def test_the_lock_of_a_removed_folder_keeps_nobody_out(tmp_path):
    folder = tmp_path / "data"
    first = claim_folder(folder)
    shutil.rmtree(folder)
    second = claim_folder(folder)
    assert (folder / "owner.lock").exists()
    first.release()
    second.release()


def test_a_copy_of_a_folder_in_use_has_no_owner(tmp_path):
    claim = claim_folder(tmp_path / "data")
    shutil.copytree(tmp_path / "data", tmp_path / "copy")
    assert owner_of(tmp_path / "copy") is None
    claim_folder(tmp_path / "copy").release()
    claim.release()


def test_an_owner_that_has_let_go_but_is_not_yet_dead_is_waited_for(tmp_path):
    claim = claim_folder(tmp_path)
    name = (tmp_path / "owner.lock").read_bytes()
    claim.release()
    (tmp_path / "owner.lock").write_bytes(name)
    slept: list[float] = []

    def die(seconds: float) -> None:
        slept.append(seconds)
        (tmp_path / "owner.lock").write_bytes(name.replace(b'"started": "', b'"started": "not '))

    claim_folder(tmp_path, sleep=die).release()
    assert len(slept) == 1


@pytest.mark.parametrize("content", [None, "", "{}", "[]", '{"pid": 1, "started": "long ago"}'])
def test_a_folder_without_a_living_owner_has_none(tmp_path, content):
    if content is not None:
        (tmp_path / "owner.lock").write_text(content)
    assert owner_of(tmp_path) is None
