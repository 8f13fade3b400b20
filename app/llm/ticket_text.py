"""The parts that prompts share: the ticket, earlier tickets and a colleague's wish, each fenced as data."""

from app.agent.values import Observation, PastTicket, TicketFacts
from app.llm.prompting import Fence


def fence_for(observation: Observation, *more: str) -> Fence:
    """Return one fence for everything of this run that strangers wrote, and `more`."""
    ticket = observation.ticket
    past = [entry.subject for entry in ticket.past]
    return Fence(
        ticket.subject, ticket.content, observation.hint or "", observation.earlier_failure or "", *past, *more
    )


def ticket_part(ticket: TicketFacts, fence: Fence) -> str:
    """Return subject and content, fenced."""
    return fence.wrap("客户来信", f"标题：{ticket.subject}\n\n{ticket.content}")


def past_part(past: tuple[PastTicket, ...], fence: Fence) -> str:
    """Return the customer's earlier tickets in summary, fenced."""
    if not past:
        return "这位客户没有更早的工单。"
    lines = [f"#{entry.number} {entry.subject}（{entry.category or '未分类'}，{entry.status}）" for entry in past]
    return fence.wrap("这位客户更早的工单", "\n".join(lines))


def hint_part(hint: str | None, fence: Fence) -> str:
    """Return what a colleague asked for when the run was started, fenced; empty without one."""
    return fence.wrap("同事的要求", hint) if hint else ""


def earlier_part(failure: str | None, fence: Fence) -> str:
    """Return why the last attempt at this ticket failed, fenced; empty when there was none."""
    if not failure:
        return ""
    return "这张工单上一次没有处理完，已经做成的步骤保留着。\n" + fence.wrap("上一次失败的原因", failure)
