"""Runs the examples of docs/api.md in order: each answers with the status and the fields that the page shows."""

import json
import re
import shlex
from string import Template
from urllib.parse import urlsplit

from werkzeug.test import TestResponse

from app.settings import ROOT
from tests.api.caller import Caller

BLOCK = re.compile(r"^```(sh|json)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def run_curl(api: Caller, command: str) -> TestResponse:
    """Do what the curl command would, by the options that the page uses."""
    words = shlex.split(command.replace("\\\n", " "))
    assert words.pop(0) == "curl"
    method, data, headers, url = "GET", None, {}, ""
    while words:
        word = words.pop(0)
        if word == "-X":
            method = words.pop(0)
        elif word == "-H":
            name, value = words.pop(0).split(": ", 1)
            headers[name] = value
        elif word == "-d":
            data = words.pop(0)
        elif word.startswith("-"):
            assert word in ("-i", "-s", "-sN"), word
        else:
            url = word
    parts = urlsplit(url)
    assert parts.netloc == "draftdesk.test"
    return api.client.open(f"{parts.path}?{parts.query}", method=method, headers=headers, data=data)


def shape(value: object) -> object:
    """Return the names in a JSON value, without the values."""
    if isinstance(value, dict):
        return {name: shape(inner) for name, inner in value.items()}
    return [shape(inner) for inner in value] if isinstance(value, list) else None


def test_the_examples(api: Caller) -> None:
    variables = {"DRAFTDESK": "http://draftdesk.test", "TOKEN": api.token}
    answer: TestResponse | None = None
    examples = 0
    for kind, block in BLOCK.findall((ROOT / "docs" / "api.md").read_text(encoding="utf-8")):
        if kind == "json" and answer is not None and answer.status_code != 401:
            assert shape(json.loads(block)) == shape(answer.get_json()), block
        elif block.startswith("curl"):
            command, _, status = block.rstrip().rpartition("   # ")
            answer = run_curl(api, Template(command).substitute(variables))
            assert answer.status_code == int(status), command
            examples += 1
            if status == "201":
                variables["RUN"] = answer.get_json()["run_id"]
    assert answer is not None
    assert "event: run_created\n" in answer.get_data(as_text=True)
    assert examples == 9
