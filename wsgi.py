"""What gunicorn serves: `gunicorn wsgi:app`."""

from app.factory import create_app
from app.logs import configure_logging

configure_logging()
app = create_app()
