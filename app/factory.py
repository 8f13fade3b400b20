"""create_app: a Flask application on the parts of the process. Blueprints, error pages, nothing else."""

from flask import Flask
from werkzeug.middleware.proxy_fix import ProxyFix

from app.api import BLUEPRINTS as API_BLUEPRINTS
from app.bootstrap import Container, build_container
from app.cli import register as register_commands
from app.httpkit.assets import init_assets
from app.httpkit.auth import init_auth
from app.httpkit.bodies import measure_body
from app.httpkit.container import EXTENSION
from app.httpkit.errors import init_errors
from app.httpkit.htmx import init_htmx
from app.httpkit.language import init_language
from app.httpkit.security import init_security, without_csrf
from app.httpkit.tracing import init_tracing
from app.settings import ROOT, Settings
from app.web import BLUEPRINTS as WEB_BLUEPRINTS
from app.web.admin import mount_dashboard
from app.web.frame import init_frame
from app.web.knowledge import make_room_for_uploads

FORM_BYTES = 2**20
"""The largest body of a request; uploads of documents and the API have limits of their own."""


def create_app(container: Container | None = None) -> Flask:
    """Return the web application; without a container one is built from the environment."""
    container = container or build_container(Settings())
    settings = container.settings
    app = Flask("draftdesk", template_folder=str(ROOT / "templates"), static_folder=str(ROOT / "static"))
    app.config["MAX_CONTENT_LENGTH"] = app.config["MAX_FORM_MEMORY_SIZE"] = FORM_BYTES
    if settings.trusted_proxies:
        hops = settings.trusted_proxies
        app.wsgi_app = ProxyFix(app.wsgi_app, x_for=hops, x_proto=hops, x_host=hops)  # type: ignore[method-assign]
    app.extensions[EXTENSION] = container
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True

    init_tracing(app)
    app.before_request(measure_body)  # both before the CSRF check, which reads the body
    app.before_request(make_room_for_uploads)
    init_security(app, settings)
    init_htmx(app)
    init_auth(app)
    init_language(app, time_zone=settings.time_zone)
    init_assets(app)
    init_errors(app)
    init_frame(app)
    for blueprint in WEB_BLUEPRINTS:
        app.register_blueprint(blueprint)
    for blueprint in API_BLUEPRINTS:
        without_csrf(blueprint)
        app.register_blueprint(blueprint)
    mount_dashboard(app, redis_url=settings.redis_url)
    register_commands(app)
    return app
