"""The parts of a provider's answers that we read, checked as they come in; whatever else is in them is left alone."""

from pydantic import BaseModel


class Usage(BaseModel):
    """Tokens by the provider's count."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class FunctionCall(BaseModel):
    """The function that is called; `arguments` is text, not yet validated."""

    name: str
    arguments: str | None = None


class ToolCall(BaseModel):
    """One call that the model asks for."""

    type: str = "function"
    function: FunctionCall | None = None


class Message(BaseModel):
    """What the model wrote, whole."""

    content: str | None = None
    tool_calls: list[ToolCall] | None = None


class Choice(BaseModel):
    """One answer and why it ended."""

    message: Message
    finish_reason: str | None = None


class Completion(BaseModel):
    """A whole answer."""

    choices: list[Choice]
    usage: Usage | None = None


class Delta(BaseModel):
    """What the model has written since the last piece."""

    content: str | None = None


class PieceChoice(BaseModel):
    """A piece of one answer."""

    delta: Delta | None = None
    finish_reason: str | None = None


class Piece(BaseModel):
    """A piece of a streamed answer; the last one has the usage and no choices."""

    choices: list[PieceChoice] | None = None
    usage: Usage | None = None
