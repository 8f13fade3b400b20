"""gunicorn's settings. gevent: thousands of open live streams cost a greenlet each, not a thread.

The application is not preloaded: its feed reader and connection pools belong to a worker and must not be forked.
"""

from app.settings import Settings

_settings = Settings()

bind = f"{_settings.host}:{_settings.port}"
worker_class = "gevent"
workers = _settings.web_processes
worker_connections = 2_000
preload_app = False
# Less than the 5 s after which honcho kills.
graceful_timeout = 3
timeout = 30
keepalive = 15
loglevel = "warning"
control_socket_disable = True
