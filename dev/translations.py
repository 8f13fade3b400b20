"""Compile the message catalogues; a catalogue that has not changed is left alone."""

from pathlib import Path

from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

from app.settings import ROOT

CATALOGUES = ROOT / "app" / "web" / "translations"


def compile_catalogues(folder: Path = CATALOGUES) -> int:
    """Write a `.mo` beside each `.po` that is newer; returns how many were written."""
    written = 0
    for source in folder.glob("*/LC_MESSAGES/*.po"):
        target = source.with_suffix(".mo")
        if target.exists() and target.stat().st_mtime_ns >= source.stat().st_mtime_ns:
            continue
        with source.open("rb") as text:
            catalogue = read_po(text, locale=source.parent.parent.name)
        # A reader must never see half a file, and another process may compile at the same time.
        fresh = target.with_suffix(".mo.new")
        with fresh.open("wb") as compiled:
            write_mo(compiled, catalogue)
        fresh.replace(target)
        written += 1
    return written


if __name__ == "__main__":
    compile_catalogues()
