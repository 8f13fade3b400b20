"""HTML pages: one blueprint a page family. A view parses, calls one service, renders."""

from app.web import admin_runs, auth, health, inbox, knowledge, live, messages, new_ticket, preferences, review, tickets

BLUEPRINTS = (
    health.blueprint,
    auth.blueprint,
    preferences.blueprint,
    inbox.blueprint,
    new_ticket.blueprint,
    tickets.blueprint,
    messages.blueprint,
    review.blueprint,
    live.blueprint,
    knowledge.blueprint,
    admin_runs.blueprint,
)
