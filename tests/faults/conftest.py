"""The arenas that all tests of this package share, and a way to perform many cases at once and look at each."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.fleet import Fleet

ARENAS = 5
"""Schedules performed at once; each mostly waits."""


@pytest.fixture(scope="package")
def fleet(var_dir: Path) -> Iterator[Fleet]:
    """The arenas; started by the first test that needs them."""
    folder = var_dir / "faults"
    folder.mkdir()
    with Fleet(folder, ARENAS) as started:
        yield started
