"""Find a Chromium for the browser tests, or get one: Playwright's own, or the distribution's for root on Debian."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MAC_APP = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")
HINT = "No Chromium for the browser tests. Run: {line}"


class NoBrowser(Exception):
    """There is none and none could be had; the message is the one line to run."""


def find_chromium() -> str | None:
    """Return the path of a Chromium that is there: PLAYWRIGHT_CHROMIUM, Playwright's own, or an installed one."""
    named = os.environ.get("PLAYWRIGHT_CHROMIUM")
    if named:
        return named
    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
    if Path(own).exists():
        return own
    installed = next((path for name in NAMES if (path := shutil.which(name))), None)
    return installed or (str(MAC_APP) if MAC_APP.exists() else None)


def get_chromium() -> str:
    """Return the path of a Chromium, installing one when there is none. Raises NoBrowser."""
    found = find_chromium()
    if found:
        return found
    print("Getting a Chromium for the browser tests ...", flush=True)
    may_install = os.geteuid() == 0 and shutil.which("apt-get") is not None
    ways = [[sys.executable, "-m", "playwright", "install", "chromium"]]
    if may_install:
        ways = [["apt-get", "update", "-q"], ["apt-get", "install", "-qy", "chromium"], *ways]
    for way in ways:
        subprocess.run(way, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        found = find_chromium()
        if found:
            return found
    line = "apt-get install chromium" if shutil.which("apt-get") else "playwright install chromium"
    raise NoBrowser(HINT.format(line=line if may_install else f"sudo {line}" if "apt" in line else line))


if __name__ == "__main__":
    try:
        print(f"Browser: {get_chromium()}")
    except NoBrowser as nothing:
        sys.exit(str(nothing))
