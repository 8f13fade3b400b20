"""What is logged never holds what a customer wrote."""

import logging
import threading

import pytest
from pydantic import ValidationError
from sqlalchemy.exc import DataError

from app.agent.values import TicketFacts
from app.bootstrap import Container
from app.ids import new_id
from app.tickets.models import Customer
from jobs.schedule import Periodic, run_schedule

WORDS = "my card is 6222 0210"


def test_an_error_of_the_database_is_logged_without_the_values(
    container: Container, caplog: pytest.LogCaptureFixture
) -> None:
    stopping = threading.Event()

    def store(parts: Container) -> None:
        stopping.set()
        with parts.transaction() as session:
            session.add(Customer(id=new_id(), external_id="C-1", name=f"{WORDS}\0"))

    with pytest.raises(DataError):
        store(container)
    stopping.clear()
    with caplog.at_level(logging.DEBUG):
        run_schedule(container, stopping, (Periodic("store", 60, store),))
    assert "DataError" in caplog.text
    assert WORDS not in caplog.text


def test_a_value_that_does_not_fit_is_refused_without_naming_it() -> None:
    with pytest.raises(ValidationError) as refused:
        TicketFacts.model_validate({"subject": [WORDS], "content": WORDS})
    assert WORDS not in str(refused.value)
