"""What a failed call means, in words that are safe to show: never a key, an address or the body of an answer."""

from json import JSONDecodeError

import openai

from app.msgids import msgid

LONGEST_WAIT_S = 2.0
"""A provider that asks for more patience than this is not waited for."""

TIMEOUT = "timeout"
"""The code of a call that was given up after our own limit."""
NO_ANSWER = msgid("The model did not answer in time.")
NO_CONNECTION = msgid("The model can't be reached.")
BROKE_OFF = msgid("The connection to the model broke off.")
KEY_REFUSED = msgid("The model service refuses the key.")
OUT_OF_CREDIT = msgid("The model service refuses: no credit is left.")
UNKNOWN_MODEL = msgid("The model service does not know this model or address.")
REFUSED = msgid("The model service refuses the request.")
BUSY = msgid("The model service is busy or over its quota.")
FAULTY = msgid("The model service has a fault.")
NOT_UNDERSTOOD = msgid("The model service answers in a form that can't be read.")

_BY_STATUS = {401: KEY_REFUSED, 403: KEY_REFUSED, 402: OUT_OF_CREDIT, 404: UNKNOWN_MODEL, 408: NO_ANSWER, 429: BUSY}


class CallFailed(Exception):
    """One attempt failed. `message` is an English msgid; `retry_after_s` is set only when asking again is safe."""

    def __init__(self, code: str, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.message = message
        self.retry_after_s = retry_after_s


def read_failure(error: openai.OpenAIError | TimeoutError | JSONDecodeError) -> CallFailed:
    """Return what `error` means; nothing of its text is kept."""
    if isinstance(error, openai.APITimeoutError | TimeoutError):
        return CallFailed(TIMEOUT, NO_ANSWER)
    if isinstance(error, openai.APIConnectionError):
        if _is_refused_connection(error):
            return CallFailed("unreachable", NO_CONNECTION, 0.0)
        return CallFailed("broke_off", BROKE_OFF)
    if isinstance(error, openai.APIStatusError):
        return _read_status(error)
    if isinstance(error, openai.APIResponseValidationError | JSONDecodeError):
        return CallFailed("unreadable", NOT_UNDERSTOOD)
    return CallFailed("provider", FAULTY)


def _read_status(error: openai.APIStatusError) -> CallFailed:
    status = error.status_code
    message = _BY_STATUS.get(status, FAULTY if status >= 500 else REFUSED)
    return CallFailed(f"http_{status}", message, _short_wait(error) if status in (429, 503) else None)


def _short_wait(error: openai.APIStatusError) -> float | None:
    """Return the seconds that the provider asks us to wait, if it does and they are few."""
    try:
        seconds = float(error.response.headers.get("retry-after", ""))
    except ValueError:
        return None
    return seconds if 0 <= seconds <= LONGEST_WAIT_S else None


def _is_refused_connection(error: openai.APIConnectionError) -> bool:
    """True when no byte was sent: the connection itself could not be made."""
    return type(error.__cause__).__name__ == "ConnectError"
