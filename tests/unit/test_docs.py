"""The programs in README and docs run, and say what the page says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from workers import Settings

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


def blocks(page: str) -> list[str]:
    return BLOCK.findall((ROOT / page).read_text())


def without_log(output: str) -> list[str]:
    return [line for line in output.splitlines() if not re.match(r"\S+ \S+ \[", line)]


def test_the_readme_opens_with_a_program_that_prints_what_it_says() -> None:
    program = blocks("README.md")[0]
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("paid for flour, shipped\n", "")


def test_the_branches_of_the_how_to_meet_again() -> None:
    program = blocks("docs/how-to/branches.md")[0]
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("12 kg, 340 EUR\n", "")


def test_the_listener_of_the_how_to_hears_each_node() -> None:
    program = blocks("docs/how-to/observe.md")[0]
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("order:17 pack completed\norder:17 ship completed\n", "")


def test_the_run_of_the_how_to_is_watched_through_a_callback() -> None:
    program = blocks("docs/how-to/stream.md")[0]
    printed = re.findall(r"```text\n(.*?)```", (ROOT / "docs/how-to/stream.md").read_text(), re.DOTALL)[0]
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == (printed, "")


def test_the_failed_run_of_the_how_to_is_tried_again() -> None:
    program = blocks("docs/how-to/retry-and-limit.md")[0]
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("the card company is busy 2026-12-01 00:00:10+00:00\npaid\n", "")


def test_the_limits_of_the_how_to_are_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (table,) = re.findall(r"```toml\n(.*?)```", (ROOT / "docs/how-to/retry-and-limit.md").read_text(), re.DOTALL)
    (tmp_path / "jarvis.toml").write_text(table)
    monkeypatch.setenv("JARVIS_CONFIG", str(tmp_path / "jarvis.toml"))
    limits = Settings.load().limits
    assert (dict(limits.workflows), dict(limits.roles)) == ({"daily-briefing": 4}, {"research": 2})


def test_the_wait_of_the_how_to_ends_with_its_signal(tmp_path: Path) -> None:
    (tmp_path / "orders.py").write_text(blocks("docs/how-to/wait-for-a-signal.md")[0])
    program = (
        "import orders\nfrom workers.registry import definition\nfrom workflow import ExecutionRequest\n"
        "order = definition('order', 'order:7')\n"
        "order.run(ExecutionRequest.start(orders.Ordered(number=7)))\n"
        "asked = order.inspect().interrupt\n"
        "print(asked.ended_by({'number': 8}), asked.ended_by({'number': 7, 'amount': 340}))\n"
        "print(order.run(ExecutionRequest.signal('order.paid', {'number': 7, 'amount': 340})).execution.result)\n"
    )
    environment = {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("False True\n340\n", "")


def test_the_workflow_of_the_how_to_is_tested_in_memory() -> None:
    page = "docs/how-to/test-a-workflow.md"
    printed = re.findall(r"```text\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)[0]
    ran = subprocess.run([sys.executable, "-c", blocks(page)[0]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (without_log(ran.stdout), ran.stderr) == (printed.splitlines(), "")


def test_every_page_is_linked_and_every_link_leads_somewhere() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    linked = {ROOT / "README.md"}
    for page in pages:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            target = (page.parent / link).resolve()
            assert target.exists(), f"{page.relative_to(ROOT)} links to {link}"
            linked |= {target} if target.is_file() else set(target.glob("*.md"))
    assert [str(page.relative_to(ROOT)) for page in pages if page not in linked] == []


def test_the_signals_of_the_how_to_are_published_once_and_consumed_once() -> None:
    program = blocks("docs/how-to/signals.md")[0]
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert without_log(ran.stdout) == ["True 340", "1 9", "order/18/paid 2 ValueError: out of boxes", "1"]
    assert ran.stderr == ""


def test_the_workflow_of_the_how_to_registers_and_runs(tmp_path: Path) -> None:
    (tmp_path / "orders.py").write_text(blocks("docs/how-to/workflow.md")[0])
    program = (
        "import orders\nfrom workers.registry import definition\n"
        "run = definition('order', 'order:17').run\n"
        "from workflow import ExecutionRequest\n"
        "print(run(ExecutionRequest.start(orders.Ordered(item='flour'))).execution.result[:15])\n"
    )
    environment = {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("label for flour\n", "")


def test_the_sealed_run_of_the_how_to_goes_on_under_a_new_key() -> None:
    program = blocks("docs/how-to/seal-records.md")[0]
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("yes\nNone\n", "")


def test_the_run_in_files_of_the_how_to_is_answered(tmp_path: Path) -> None:
    program = blocks("docs/how-to/keep-runs-in-files.md")[0]
    environment = {"TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("yes\n", "")


@pytest.mark.parametrize(
    ("fault", "told"),
    [("", " passed"), ("    def load(self, partition):\n        return {}\n", "1 failed")],
    ids=["keeps the contract", "forgets"],
)
def test_five_lines_of_the_how_to_prove_a_store(tmp_path: Path, fault: str, told: str) -> None:
    lines, names = blocks("docs/how-to/write-a-store.md")
    assert len([line for line in lines.splitlines() if line]) == 5
    toy = f"from persistence import InMemoryPersistence\n\nclass MyStore(InMemoryPersistence):\n    pass\n{fault}"
    (tmp_path / "my_store.py").write_text(toy)
    (tmp_path / "test_my_store.py").write_text(names + lines)
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "test_my_store.py"]
    environment = {"PYTHONPATH": str(ROOT), "PATH": ""}
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert told in ran.stdout
    assert ran.returncode == bool(fault)


def test_the_run_of_the_how_to_goes_on_in_a_database() -> None:
    program = blocks("docs/how-to/store-in-sql.md")[0]
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("yes\n", "")


@pytest.mark.parametrize(
    "page", ["README.md", *(str(page.relative_to(ROOT)) for page in sorted((ROOT / "docs").rglob("*.md")))]
)
def test_every_link_to_a_file_leads_somewhere(page: str) -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)\)", (ROOT / page).read_text())
    assert [link for link in links if not (ROOT / page).parent.joinpath(link).exists()] == []
