"""JSON for other systems under /api/v1, over the same services as the pages. Described in docs/api.md."""

from app.api import messages, runs, tickets

BLUEPRINTS = (tickets.bp, messages.bp, runs.bp)
