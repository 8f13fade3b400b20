"""Words, colours and glyphs for the values that pages show. Words are msgids, translated where they are rendered."""

from dataclasses import dataclass

from app.agent.values import Category, Priority
from app.knowledge.models import DocState
from app.msgids import msgid
from app.review.inbox_filter import View
from app.review.inbox_state import STATUS_OF, Group, LiveState, Status
from app.staff.models import Role


@dataclass(frozen=True, slots=True)
class Mark:
    """A word with the colour role (`st-<kind>`) and the glyph (`i-st-<kind>`) that go with it."""

    word: str
    kind: str


STATUS = {
    Status.PENDING: Mark(msgid("To do"), "act"),
    Status.RUNNING: Mark(msgid("AI at work"), "run"),
    Status.REVIEW: Mark(msgid("To approve"), "act"),
    Status.ESCALATED: Mark(msgid("Escalated"), "esc"),
    Status.FAILED: Mark(msgid("Failed"), "bad"),
    Status.SENDING: Mark(msgid("Sending"), "run"),
    Status.WAITING: Mark(msgid("Waiting for customer"), "wait"),
    Status.RESOLVED: Mark(msgid("Resolved"), "done"),
    Status.CLOSED: Mark(msgid("Closed"), "closed"),
}
_STATE_WORDS = {
    LiveState.NEW: msgid("To do"),
    LiveState.QUEUED: msgid("In the queue"),
    LiveState.THINKING: msgid("At work"),
    LiveState.CLASSIFYING: msgid("Classifying"),
    LiveState.SEARCHING: msgid("Searching"),
    LiveState.DRAFTING: msgid("Drafting"),
    LiveState.DRAFT_READY: msgid("Draft ready"),
    LiveState.WRITING: msgid("Written by hand"),
    LiveState.ESCALATED: msgid("Escalation"),
    LiveState.FAILED: msgid("Draft failed"),
    LiveState.CANCELLED: msgid("Stopped"),
    LiveState.SENDING: msgid("Sending"),
    LiveState.SEND_FAILED: msgid("Not sent"),
    LiveState.WAITING: msgid("Waiting for customer"),
    LiveState.RESOLVED: msgid("Resolved"),
    LiveState.CLOSED: msgid("Closed"),
    LiveState.SPAM: msgid("Spam"),
}
STATE = {state: Mark(word, STATUS[STATUS_OF[state]].kind) for state, word in _STATE_WORDS.items()}
GROUP = {
    Group.DECIDE: msgid("Needs your decision"),
    Group.AGENT: msgid("AI is working on it"),
    Group.REST: msgid("Waiting or done"),
}
SKILL = {
    "classify_ticket": msgid("Classify"),
    "search_knowledge": msgid("Search"),
    "draft_reply": msgid("Draft"),
}
PRIORITY = {
    Priority.URGENT: msgid("Urgent"),
    Priority.NORMAL: msgid("Normal"),
    Priority.AUTO_REPLY: msgid("Routine"),
}
CATEGORY = {
    Category.COUPON: msgid("Coupons"),
    Category.NEW_USER: msgid("New-user benefits"),
    Category.ACCOUNT: msgid("Account"),
    Category.REFUND: msgid("Refund"),
    Category.RETURN_EXCHANGE: msgid("Return or exchange"),
    Category.INVOICE: msgid("Invoice"),
    Category.DELIVERY: msgid("Delivery"),
    Category.ORDER_CHANGE: msgid("Order change"),
    Category.MEMBERSHIP: msgid("Membership"),
    Category.PAYMENT: msgid("Payment"),
    Category.PRODUCT: msgid("Product"),
    Category.MERCHANT: msgid("Merchant"),
    Category.PRIVACY: msgid("Privacy"),
    Category.COMPLAINT: msgid("Complaint"),
    Category.TECHNICAL: msgid("App problem"),
    Category.OTHER: msgid("Other"),
}
CHANNEL = {
    "app": msgid("App"),
    "web": msgid("Website"),
    "email": msgid("E-mail"),
    "merchant": msgid("Merchant desk"),
    "phone": msgid("Phone"),
}
ROLE = {
    Role.AGENT: msgid("Agent"),
    Role.SUPERVISOR: msgid("Supervisor"),
    Role.ADMIN: msgid("Administrator"),
}
DOC_STATE = {
    DocState.UPLOADED: Mark(msgid("Waiting to be read"), "run"),
    DocState.PARSED: Mark(msgid("Read"), "run"),
    DocState.CHUNKED: Mark(msgid("Embedding"), "run"),
    DocState.EMBEDDED: Mark(msgid("Being switched on"), "run"),
    DocState.ACTIVE: Mark(msgid("In use"), "done"),
    DocState.FAILED: Mark(msgid("Failed"), "bad"),
    DocState.ARCHIVED: Mark(msgid("Replaced"), "closed"),
}


@dataclass(frozen=True, slots=True)
class ViewLabel:
    """A view of the rail: its icon, its name, and what an empty list of it says."""

    view: View
    icon: str
    name: str
    empty: str
    bad: bool = False


VIEWS = (
    ViewLabel(View.REVIEW, "nib", msgid("To approve"), msgid("No draft is waiting for approval."), bad=True),
    ViewLabel(View.URGENT, "bolt", msgid("Urgent"), msgid("Nothing urgent is open.")),
    ViewLabel(View.ESCALATED, "escalate", msgid("Escalated"), msgid("Nothing is escalated.")),
    ViewLabel(View.FAILED, "fail", msgid("Failed"), msgid("Nothing has failed."), bad=True),
    ViewLabel(View.SENT_TODAY, "send", msgid("Sent today"), msgid("Nothing has been sent today yet.")),
    ViewLabel(View.ALL, "stack", msgid("All"), msgid("There are no tickets yet.")),
)
VIEW = {label.view: label for label in VIEWS}
