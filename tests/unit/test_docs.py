"""The programs in README and docs run, and say what the page says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


def blocks(page: str) -> list[str]:
    return BLOCK.findall((ROOT / page).read_text())


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


@pytest.mark.parametrize(
    "page", ["README.md", *(str(page.relative_to(ROOT)) for page in sorted((ROOT / "docs").rglob("*.md")))]
)
def test_every_link_to_a_file_leads_somewhere(page: str) -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)\)", (ROOT / page).read_text())
    assert [link for link in links if not (ROOT / page).parent.joinpath(link).exists()] == []
