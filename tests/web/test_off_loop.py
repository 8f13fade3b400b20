"""Long computing leaves gevent's loop free, where live pages are served."""

import subprocess
import sys

from app.httpkit.off_loop import off_loop
from app.settings import ROOT
from app.staff.passwords import check_password

PROGRAM = """
from gevent import monkey
monkey.patch_all()
import gevent
from app.httpkit.off_loop import off_loop
from app.staff.passwords import check_password, hash_password

turns = 0

def others():
    global turns
    while True:
        turns += 1
        gevent.sleep(0)

kept = hash_password("secret")
gevent.spawn(others)
right = off_loop(check_password)(kept, "secret").right
print(right, turns > 0)
"""


def test_others_go_on_while_a_password_is_checked() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == ["True", "True"], done.stderr


def test_without_gevent_nothing_changes() -> None:
    assert off_loop(check_password) is check_password
