"""Which call of a planner is let through: known skill, its phase, its level, its arguments. Pure.

What is refused is data for the planner, never an exception: it may correct itself.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json

from app.agent.masking import without_secrets
from app.agent.ports import CallSkill, SkillOffer
from app.agent.skill import Level, Phase, Skill
from app.agent.steps import is_answerable
from app.agent.values import Observation

AnySkill = Skill[Any, Any]

ARGUMENTS_LIMIT = 20_000
"""Longest arguments that are read at all, characters."""
_NAME_LIMIT = 64
_CREDENTIAL_WORDS = (
    "password", "passwd", "passphrase", "pwd", "token", "apikey", "accesskey", "privatekey", "secret", "cookie",
    "authorization", "credential", "sessionid", "bearer",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Admitted:
    """A call that may be made: the skill and its validated parameters; `arguments` is what is kept (JSON text)."""

    skill: AnySkill
    params: BaseModel
    arguments: str

    @property
    def name(self) -> str:
        """The skill's name."""
        return self.skill.name


@dataclass(frozen=True, slots=True)
class Refused:
    """A call that may not be made; `name` and `arguments` (JSON text) are what may be kept, never a credential."""

    name: str
    code: str
    message: str
    arguments: str = "{}"


def open_phase(observation: Observation) -> Phase:
    """Return the one phase that is open: a search needs a class, a draft needs passages that suffice."""
    if observation.classification is None:
        return Phase.CLASSIFY
    return Phase.DRAFT if is_answerable(observation) else Phase.SEARCH


def offers(skills: Sequence[AnySkill], observation: Observation) -> tuple[SkillOffer, ...]:
    """Return the skills that the planner may choose from now."""
    phase = open_phase(observation)
    return tuple(
        SkillOffer(skill.name, skill.description, _schema(skill.Params))
        for skill in skills
        if skill.phase is phase and skill.level <= Level.DRAFT
    )


@cache
def _schema(params: type[BaseModel]) -> str:
    return to_json(params.model_json_schema()).decode()


def admit(call: CallSkill, skills: Sequence[AnySkill], observation: Observation) -> Admitted | Refused:
    """Check one call against every guard."""
    name = _printable(call.name[:_NAME_LIMIT])
    skill = next((skill for skill in skills if skill.name == call.name), None)
    if skill is None:
        known = ", ".join(skill.name for skill in skills)
        return Refused(name, "unknown_skill", f"There is no such skill. Skills: {known}.")
    if skill.level > Level.DRAFT:
        return Refused(name, "forbidden_level", "Only a person may do this.")
    phase = open_phase(observation)
    if skill.phase is not phase:
        return Refused(name, "wrong_phase", f"Not now: the run is at '{phase}'.")
    return _admit_arguments(skill, call.arguments or "{}")


def _admit_arguments(skill: AnySkill, text: str) -> Admitted | Refused:
    if len(text) > ARGUMENTS_LIMIT:
        return Refused(skill.name, "bad_arguments", "The arguments are too long.")
    try:
        arguments = from_json(text, allow_inf_nan=False)
    except ValueError:
        return Refused(skill.name, "bad_arguments", "The arguments are not JSON.")
    if not _is_finite(arguments):
        return Refused(skill.name, "bad_arguments", "A number is out of range.")
    forbidden = sorted({key for key in _keys(arguments) if is_credential_name(key)})
    if forbidden:
        names = ", ".join(_printable(str(without_secrets(name[:_NAME_LIMIT]))) for name in forbidden)
        return Refused(skill.name, "forbidden_parameter", f"A skill never takes credentials: {names}.")
    try:
        params = skill.Params.model_validate(arguments)
    except ValidationError as error:
        return Refused(skill.name, "bad_arguments", _words(error), _kept(arguments))
    return Admitted(skill, params, _kept(params.model_dump(mode="json", exclude_none=True)))


def is_credential_name(name: str) -> bool:
    """Return whether a parameter of this name would carry a credential."""
    letters = "".join(character for character in name.casefold() if character.isalnum())
    return any(word in letters for word in _CREDENTIAL_WORDS)


def _keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from _keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _keys(inner)


def _is_finite(value: object) -> bool:
    """False when a number in it reads as infinite, like 1e400, which JSON text can't hold."""
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def _kept(arguments: object) -> str:
    return to_json(without_secrets(arguments)).decode()


def _printable(text: str) -> str:
    """Return a model's word without what PostgreSQL can't store: control characters, halves of surrogate pairs."""
    return "".join(filter(str.isprintable, text))


def _words(error: ValidationError) -> str:
    details = error.errors(include_url=False, include_context=False, include_input=False)[:5]
    words = "; ".join(f"{'.'.join(str(part) for part in detail['loc'])}: {detail['msg']}" for detail in details)
    return _printable(str(without_secrets(words)))
