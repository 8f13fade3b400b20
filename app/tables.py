"""All tables: importing a room's models registers them. A process that maps one row needs those it refers to."""

from app.db.base import Base
from app.delivery import models as delivery
from app.intake import models as intake
from app.knowledge import models as knowledge
from app.review import models as review
from app.runs import models as runs
from app.staff import models as staff
from app.tickets import composer
from app.tickets import models as tickets

ROOMS = (composer, delivery, intake, knowledge, review, runs, staff, tickets)
metadata = Base.metadata
