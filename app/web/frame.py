"""What every page has around its content: who is signed in, the mode the system runs in, where one is."""

from flask import Flask, request
from flask_babel import get_locale

from app.httpkit.container import container
from app.web import labels
from app.web.inbox_regions import amount, view_counts

THEMES = ("light", "dark")


def init_frame(app: Flask) -> None:
    """Give templates the things of the frame and the words for our values."""
    app.jinja_env.globals.update(labels=labels, view_counts=view_counts)
    app.jinja_env.filters["amount"] = amount
    app.context_processor(_frame)


def _frame() -> dict[str, object]:
    settings = container().settings
    locale = get_locale()
    return {
        "offline_mode": settings.offline,
        "model_name": "" if settings.offline else settings.llm_model,
        "theme": request.cookies.get("theme") if request.cookies.get("theme") in THEMES else None,
        "locale": locale.language if locale else "zh",
        "here": request.full_path.rstrip("?"),
    }
