"""Both languages are whole: every text has its Chinese, and English pages show no Chinese but people's own words."""

import re
from io import BytesIO
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog
from babel.messages.frontend import CommandLineInterface
from babel.messages.pofile import read_po
from flask.testing import FlaskClient

import app
from app.errors import AppError
from app.settings import ROOT
from app.staff.models import Role
from app.web import labels
from dev.translations import CATALOGUES
from tests.conftest import Login
from tests.web.pages import ENGLISH, send, text_of

CHINESE = re.compile(r"[\u4e00-\u9fff]+")
PLACES = re.compile(r"%\((\w+)\)[sd]|\{(\w+)\}|%%")


@pytest.fixture(scope="module")
def chinese() -> Catalog:
    return read_po(BytesIO((CATALOGUES / "zh" / "LC_MESSAGES" / "messages.po").read_bytes()), locale="zh")


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    """Every text in the source, as `make messages` finds it."""
    target = tmp_path_factory.mktemp("texts") / "messages.pot"
    CommandLineInterface().run(
        ["pybabel", "-q", "extract", "-F", str(ROOT / "babel.toml"), "-o", str(target), str(ROOT)]
    )
    return read_po(BytesIO(target.read_bytes()))


def forms(message_id: str | tuple[str, ...]) -> tuple[str, ...]:
    return message_id if isinstance(message_id, tuple) else (message_id,)


def test_every_text_has_its_chinese(texts: Catalog, chinese: Catalog) -> None:
    missing = []
    for message in texts:
        if message.id:
            found = chinese.get(message.id)
            if found is None or not all(forms(found.string)) or not found.string or found.fuzzy:
                missing.append(message.id)
    assert missing == []


def test_no_chinese_is_left_over_or_broken(texts: Catalog, chinese: Catalog) -> None:
    for message in chinese:
        if not message.id:
            continue
        assert texts.get(message.id) is not None, f"no longer used: {message.id}"
        wanted = set(PLACES.findall(forms(message.id)[-1]))
        for translated in forms(message.string):
            assert set(PLACES.findall(translated)) == wanted, message.id


def test_every_error_of_ours_is_extracted() -> None:
    """`babel.toml` names the class of each error, so that its words reach the catalogue."""
    config = (ROOT / "babel.toml").read_text()
    source = "\n".join(path.read_text() for path in Path(app.__path__[0]).rglob("*.py"))
    own_words = {error.__name__ for error in _subclasses(AppError) if re.search(rf"\b{error.__name__}\(\s*\"", source)}
    assert {name for name in own_words if f'"{name}"' not in config} == set()


def _subclasses(error: type[AppError]) -> set[type[AppError]]:
    return {error}.union(*(_subclasses(below) for below in error.__subclasses__()))


@pytest.mark.parametrize(
    "path",
    ["/sign-in", "/", "/?view=review&q=x", "/tickets/new", "/knowledge", "/knowledge/search?question=x", "/nothing"],
)
def test_english_pages_show_no_chinese(login: Login, client: FlaskClient, path: str) -> None:
    visitor = client if path == "/sign-in" else login("boss", Role.ADMIN)
    page = visitor.get(path, headers=ENGLISH).get_data(as_text=True)
    assert set(CHINESE.findall(page)) <= {"中文"}
    assert 'lang="en"' in page or "<html" not in page


def test_english_errors_show_no_chinese(login: Login) -> None:
    client = login("agent")
    assert send(client, "/preferences/language", locale="en").status_code == 303
    page = text_of(send(client, "/tickets/new", subject="", customer_id="中"), 422)
    assert set(CHINESE.findall(page)) <= {"中文", "中"}
    refused = text_of(client.get("/knowledge"), 403)
    assert set(CHINESE.findall(refused)) <= {"中文"}, "nothing but the name of the other language in the rail"


def test_the_choice_of_a_person_outlives_the_browser(login: Login) -> None:
    send(login("agent"), "/preferences/language", locale="en")
    assert "New ticket" in text_of(login("agent").get("/", headers={"Accept-Language": "zh-CN"}))


def test_strangers_get_what_their_browser_asks_for(client: FlaskClient) -> None:
    for accepts, words in (("en-GB,en;q=0.9", "Sign in"), ("zh-TW", "登录"), ("fr", "登录"), ("", "登录")):
        assert words in text_of(client.get("/sign-in", headers={"Accept-Language": accepts}))
    send(client, "/preferences/language", locale="en", next="/sign-in")
    assert "Sign in" in text_of(client.get("/sign-in", headers={"Accept-Language": "zh"}))


def test_every_value_has_a_word(chinese: Catalog) -> None:
    tables = (labels.STATUS, labels.STATE, labels.GROUP, labels.PRIORITY, labels.CATEGORY, labels.CHANNEL, labels.ROLE)
    for table in (*tables, labels.DOC_STATE):
        kinds = {type(key) for key in table}
        for kind in kinds - {str}:
            assert set(table) == set(kind)
        for entry in table.values():
            assert chinese.get(entry.word if isinstance(entry, labels.Mark) else entry)
