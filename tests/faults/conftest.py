"""The arenas that all tests of this package share, and a way to perform many cases at once and look at each."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.fleet import Fleet

ARENAS = 5
"""Schedules performed at once; each mostly waits."""


@pytest.fixture(scope="package")
def fleet(var_dir: Path) -> Iterator[Fleet]:
    """The arenas; in a random order of modules the package may be left and come back to, and they start anew."""
    folder = var_dir / "faults"
    folder.mkdir()
    with Fleet(folder, ARENAS) as started:
        yield started
    shutil.rmtree(folder)
