"""What pages are made of: vendored files are what they claim, icons exist, both dark themes are the same."""

import re
from hashlib import sha256

from app.settings import ROOT

STATIC, TEMPLATES = ROOT / "static", ROOT / "templates"


def test_vendored_files_are_the_ones_written_down() -> None:
    table = (STATIC / "vendor" / "VENDORED.md").read_text()
    files = sorted((STATIC / "vendor").glob("*.js"))
    assert files
    for file in files:
        assert f"`{file.name}`" in table
        assert sha256(file.read_bytes()).hexdigest() in table


def test_every_icon_that_a_template_names_is_in_the_sprite() -> None:
    sprite = set(re.findall(r'id="i-([\w-]+)"', (STATIC / "icons.svg").read_text()))
    named = {
        name
        for template in TEMPLATES.rglob("*.html")
        for name in re.findall(r'\b(?:icon|empty)\("([a-z][\w-]*)"[,)]', template.read_text())
    }
    assert named
    assert named <= sprite


def test_the_dark_theme_is_the_same_by_system_and_by_choice() -> None:
    tokens = (STATIC / "css" / "tokens.css").read_text()
    blocks = re.findall(r'data-theme="(?:light|dark)"\]\)? \{(.*?)\}', tokens, re.DOTALL)
    assert len(blocks) == 2
    by_system, by_choice = (sorted(re.findall(r"--[\w-]+: [^;]+", block)) for block in blocks)
    assert by_system == by_choice


def test_components_read_colours_from_the_tokens() -> None:
    for sheet in (STATIC / "css").glob("*.css"):
        text = sheet.read_text()
        assert len(text.splitlines()) < 400, sheet.name
        if sheet.name != "tokens.css":
            assert not re.findall(r"#[0-9a-fA-F]{3,8}\b(?![\w-]* \{)", text), sheet.name
