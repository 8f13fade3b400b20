"""Streams are kept short and go when nothing happens any more; PostgreSQL has what they had."""

from redis import Redis

from app.bootstrap import Container
from app.live.publisher import STREAM_LENGTH, STREAM_LIFE_S, thread_stream
from tests.factories import make_ticket
from tests.live.conftest import Happen


def left_s(redis: "Redis", key: str) -> int:
    """How many seconds a stream has left."""
    left = redis.ttl(key)
    assert isinstance(left, int)
    return left


def test_a_stream_lives_on_with_each_event(container: Container, happen: Happen) -> None:
    made = make_ticket(container)
    stream = thread_stream(made.thread_id)
    assert 0 < left_s(container.redis, stream) <= STREAM_LIFE_S
    container.redis.expire(stream, 5)
    happen(made)
    assert left_s(container.redis, stream) > 5


def test_a_stream_is_cut_to_its_length(container: Container, happen: Happen) -> None:
    made = make_ticket(container)
    stream = thread_stream(made.thread_id)
    filler = container.redis.pipeline(transaction=False)
    for number in range(2, 2 * STREAM_LENGTH):
        filler.xadd(stream, {"type": "x"}, id=f"1-{number}")
    filler.execute()
    happen(made)
    # Redis cuts whole nodes of its tree only, a hundred entries each.
    assert container.redis.xlen(stream) <= STREAM_LENGTH + 100
