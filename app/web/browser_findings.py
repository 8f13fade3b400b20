"""The findings of the lint in the form that a page takes."""

from dataclasses import dataclass

from app.guard.links import find_links
from app.guard.lint import Finding, lint
from app.httpkit.container import container
from app.review.links import known_links


@dataclass(frozen=True, slots=True)
class BrowserFinding:
    """A finding with its place in UTF-16 units, which is how browsers count."""

    kind: str
    start: int
    end: int
    text: str
    label: str


def browser_findings(text: str) -> tuple[BrowserFinding, ...]:
    """Return what must change in `text` before it may be sent, for a page."""
    return tuple(_for_browser(text, finding) for finding in lint(text, _known_links(text)))


def _known_links(text: str) -> frozenset[str]:
    """Ask the database only about a text that has links: most have none, and this runs while people type."""
    if not find_links(text):
        return frozenset()
    with container().transaction() as session:
        return known_links(session, text)


def _for_browser(text: str, finding: Finding) -> BrowserFinding:
    start = _utf16_length(text[: finding.start])
    return BrowserFinding(finding.kind, start, start + _utf16_length(finding.text), finding.text, finding.label)


def _utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
