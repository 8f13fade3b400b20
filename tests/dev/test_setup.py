"""The set-up makes what is missing, finishes what was cut off, and does nothing otherwise."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from app.settings import ROOT


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project without packages, with the real set-up."""
    (tmp_path / "dev").mkdir()
    shutil.copy(ROOT / "dev" / "setup.py", tmp_path / "dev")
    (tmp_path / "requirements.lock").write_text("# nothing\n")
    return tmp_path


def set_up(project: Path) -> tuple[int, list[str]]:
    """Run the set-up in `project`; returns its exit code and its lines."""
    done = subprocess.run(
        [sys.executable, "-m", "dev.setup"], cwd=project, capture_output=True, text=True, check=False, timeout=120
    )
    return done.returncode, (done.stdout + done.stderr).splitlines()


def test_an_installation_that_was_cut_off_is_done_again(project: Path) -> None:
    half = project / ".venv" / "bin"
    half.mkdir(parents=True)
    (half / "python").symlink_to("/nowhere/python")
    code, lines = set_up(project)
    assert code == 0, lines
    assert "Making a virtual environment" in lines[0]
    stamp = project / ".venv" / "requirements.sha256"
    assert stamp.exists()
    assert set_up(project) == (0, []), "nothing is left to do"

    (project / "requirements.lock").write_text("./no-such-package.whl\n")
    code, lines = set_up(project)
    assert code == 1
    assert [line for line in lines if line.startswith("The packages could not be installed")]
    assert not [line for line in lines if "Traceback" in line or "virtual environment" in line], (
        "the environment is kept"
    )
    assert not stamp.exists(), "the next start tries again"


def test_a_folder_that_can_not_be_written(project: Path) -> None:
    (project / ".setup.lock").mkdir()
    code, lines = set_up(project)
    assert code == 1
    assert len(lines) == 1
    assert lines[0].startswith(f"DraftDesk can't be set up in {project / '.setup.lock'}: ")
