"""What the project's shape promises and no tool says for us. Layers are import-linter's part, in pyproject.toml."""

import ast
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from alembic import command

from app.db.signals import JobName
from app.embedded import ServiceUrls
from app.live.job_queue import QUEUE_OF
from app.settings import ROOT, Settings
from dev.database import alembic_config

LINES_OF_A_FILE = 400
OURS = ("app", "dev", "jobs", "bench", "tests", "templates", "static")
MAY_COMMIT = {Path("app/db"), Path("app/runs")}
READS_ENVIRONMENT = {Path("app/settings.py")}


def sources(*suffixes: str, folders: tuple[str, ...] = OURS) -> Iterator[Path]:
    """Yield our own files of these kinds, relative to the root; vendored ones are not ours."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in suffixes and not {"vendor", "__pycache__"} & set(path.parts):
                yield path.relative_to(ROOT)


def test_no_file_is_too_long_to_read() -> None:
    lengths = {path: len((ROOT / path).read_text().splitlines()) for path in sources(".py", ".html", ".js", ".css")}
    assert lengths
    assert {path: lines for path, lines in lengths.items() if lines > LINES_OF_A_FILE} == {}


def test_only_entry_points_and_the_ledger_commit() -> None:
    committing = {
        path
        for path in sources(".py", folders=("app", "jobs"))
        for node in ast.walk(ast.parse((ROOT / path).read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "commit"
    }
    assert {path for path in committing if not MAY_COMMIT & set(path.parents)} == set()


def test_only_the_settings_read_the_environment() -> None:
    reading = {
        path
        for path in sources(".py", folders=("app", "jobs", "bench"))
        for node in ast.walk(ast.parse((ROOT / path).read_text()))
        if isinstance(node, ast.Attribute) and ast.unparse(node) in ("os.environ", "os.getenv")
    }
    assert reading - READS_ENVIRONMENT == set()


@pytest.mark.parametrize("name", list(JobName))
def test_every_job_has_a_function_and_a_queue(name: JobName) -> None:
    module, _, function = name.value.rpartition(".")
    spec = find_spec(module)
    assert spec is not None, f"{module} does not exist"
    assert spec.origin is not None
    tree = ast.parse(Path(spec.origin).read_text())
    assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert name in QUEUE_OF


@pytest.mark.parametrize("readme", ["README.md", "README.zh-CN.md"])
def test_every_setting_stands_in_the_readme(readme: str) -> None:
    rows = re.findall(r"^\| `([A-Z_]+)` \| `?([^|`]*)`? \|", (ROOT / readme).read_text(), re.MULTILINE)
    written = {name.lower(): default.strip() for name, default in rows}
    assert written.keys() == Settings.model_fields.keys()
    for name, field in Settings.model_fields.items():
        if isinstance(field.default, int | float | str) and not isinstance(field.default, bool):
            assert written[name] == str(field.default) or not field.default, name


def test_every_requirement_has_its_reason() -> None:
    reasons = (ROOT / "docs" / "dependencies.md").read_text()
    for listing in ("requirements.in", "requirements-dev.in"):
        for line in (ROOT / listing).read_text().splitlines():
            name = re.match(r"[A-Za-z][\w.-]*", line)
            if name:
                assert f"| {name.group()} |" in reasons, f"{name.group()} of {listing}"


def test_migrations_make_what_the_models_say(services: ServiceUrls) -> None:
    command.check(alembic_config(services.database_url))
