"""The planner that asks a model: it sees the ticket, the class, bounds and summaries, never the knowledge text."""

import json
from collections.abc import Sequence

from openai.types.chat import ChatCompletionMessageParam

from app.agent.ports import PLANNING, CallSkill, Finish, Plan, SkillOffer
from app.agent.skill import CallLog
from app.agent.values import Observation, ToolMessage
from app.llm.client import ChatClient, ChatRequest, Tool
from app.llm.prompting import Prompt, load_prompt, plain
from app.llm.ticket_text import earlier_part, fence_for, hint_part, past_part, ticket_part

NOTHING_YET = "还没有"


class ModelPlanner:
    """Implements `agent.ports.Planner` by function calling."""

    def __init__(self, client: ChatClient) -> None:
        self._client = client
        self._prompt = load_prompt("plan")

    async def plan(self, observation: Observation, offers: Sequence[SkillOffer], calls: CallLog) -> Plan:
        """Return the model's next move; its arguments are passed on as text.

        Raises ModelUnavailable, SkillFailed when it broke off before it had chosen.
        """
        if not offers:
            return Finish("no skill is on offer")
        request = ChatRequest("plan", self._prompt.version, _messages(self._prompt, observation))
        tools = [Tool(offer.name, offer.description, offer.parameters) for offer in offers]
        choice = await self._client.choose_tool(request, tools, calls)
        if choice is None:
            return Finish("the model sees nothing more to do")
        return CallSkill(choice.name, choice.arguments)


def _messages(prompt: Prompt, observation: Observation) -> tuple[ChatCompletionMessageParam, ...]:
    ticket, fence = observation.ticket, fence_for(observation)
    user = prompt.render(
        "user",
        number=str(ticket.number),
        channel=ticket.channel,
        ticket=ticket_part(ticket, fence),
        past=past_part(ticket.past, fence),
        hint=hint_part(observation.hint, fence),
        earlier=earlier_part(observation.earlier_failure, fence),
    )
    messages: list[ChatCompletionMessageParam] = [
        {"role": "system", "content": prompt.render("system")},
        {"role": "user", "content": user},
    ]
    for number, turn in enumerate(observation.turns, start=1):
        if turn.skill != PLANNING:
            messages.extend(_turn(number, turn))
    messages.append({"role": "user", "content": _progress(prompt, observation)})
    return tuple(messages)


def _turn(number: int, turn: ToolMessage) -> tuple[ChatCompletionMessageParam, ChatCompletionMessageParam]:
    call_id = f"call_{number}"
    outcome = f"失败：{turn.summary}" if turn.failed else turn.summary
    return (
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": call_id,
                    "type": "function",
                    "function": {"name": turn.skill, "arguments": _valid_json(turn.arguments)},
                }
            ],
        },
        {"role": "tool", "tool_call_id": call_id, "content": plain(outcome)},
    )


def _valid_json(arguments: str) -> str:
    """Return `arguments`, or an empty object: providers refuse a history whose arguments are no JSON."""
    try:
        return arguments if isinstance(json.loads(arguments), dict) else "{}"
    except ValueError:
        return "{}"


def _progress(prompt: Prompt, observation: Observation) -> str:
    found, search = observation.classification, observation.search
    return prompt.render(
        "progress",
        classification=f"{found.category}，紧急程度 {found.priority}" if found else NOTHING_YET,
        search=(
            f"做过 {observation.searches} 次，最近一次有 {len(search.passages)} 段，判定 {search.verdict.outcome}"
            if search
            else NOTHING_YET
        ),
        draft="已写好" if observation.draft else NOTHING_YET,
    )
