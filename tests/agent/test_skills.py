"""The list of skills."""

from app.agent.ports import PLANNING
from app.skills import RETRY_SAFE, make_skills
from tests.agent.parts import FixedClassifier, FixedDrafter, FixedRetriever


def test_the_names_that_may_be_begun_again_are_those_of_the_skills_that_say_so_and_of_planning() -> None:
    skills = make_skills(FixedClassifier(), FixedRetriever(), FixedDrafter())
    assert {skill.name for skill in skills if skill.retry_safe} | {PLANNING} == RETRY_SAFE
