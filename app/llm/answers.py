"""Reads what a model wrote: JSON into the shape asked for, or a SkillFailed that the planner can react to."""

import json
from collections.abc import Sequence
from typing import TypeVar

from openai.types.chat import ChatCompletionToolUnionParam
from pydantic import BaseModel, ValidationError

from app.agent.skill import SkillFailed

M = TypeVar("M", bound=BaseModel)


def check_finish(reason: str) -> None:
    """Raise SkillFailed when the model stopped before it had finished."""
    if reason == "length":
        raise SkillFailed("model_output_cut", "The answer was cut off at its length limit.")
    if reason == "content_filter":
        raise SkillFailed("model_output_filtered", "The model service withheld the answer.")


def read_answer(answer: str, shape: type[M]) -> M:
    """Return the JSON object in `answer` as `shape`. Raises SkillFailed naming the fields that do not fit."""
    try:
        return shape.model_validate_json(json_part(answer))
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False, include_input=False)
    if any(problem["type"] == "json_invalid" for problem in problems):
        raise SkillFailed("model_output_not_json", "The answer is not JSON.")
    fields = sorted({".".join(map(str, problem["loc"])) or "answer" for problem in problems})
    raise SkillFailed("model_output_wrong_shape", f"The answer does not fit: {', '.join(fields)}.")


def json_part(answer: str) -> str:
    """Return `answer` from its first brace to its last: some models put a code fence or a word around the JSON."""
    start, end = answer.find("{"), answer.rfind("}")
    return answer[start : end + 1] if 0 <= start < end else answer


def tool_params(tools: Sequence[tuple[str, str, str]]) -> list[ChatCompletionToolUnionParam]:
    """Return the SDK's form of (name, description, JSON schema) triples."""
    return [
        {
            "type": "function",
            "function": {"name": name, "description": description, "parameters": json.loads(schema)},
        }
        for name, description, schema in tools
    ]
