"""A page in a real browser, and the marks of the tests that need one."""

from __future__ import annotations

import json
import shutil
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("bokeh")
pytest.importorskip("selenium", reason="selenium is not installed")

CHROMIUM, DRIVER = (
    shutil.which("chromium") or shutil.which("google-chrome"),
    shutil.which("chromedriver"),
)
IN_A_BROWSER = [
    pytest.mark.integration,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="no chromium and chromedriver on this machine"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


#: Without a network, Chromium's own requests would be refused, many at a time.
ARGUMENTS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-quic",
    "--disable-renderer-backgrounding",  # a page keeps its timers when the machine is busy
    "--disable-backgrounding-occluded-windows",
    "--disable-background-timer-throttling",
]


class Page:
    """A page in headless Chromium."""

    def __init__(self) -> None:
        self.driver = self._browser()

    def _browser(self):
        from selenium.webdriver import Chrome
        from selenium.webdriver.chrome.options import Options
        from selenium.webdriver.chrome.service import Service

        options = Options()
        options.binary_location = CHROMIUM
        for argument in ARGUMENTS:
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        driver = Chrome(options=options, service=Service(DRIVER))
        driver.set_page_load_timeout(60)
        driver.set_script_timeout(60)
        return driver

    def renew(self) -> None:
        self.driver.quit()
        self.driver = self._browser()

    def go(self, address: str) -> None:
        """Open an address. If the renderer does not answer, a new browser is started, once."""
        from selenium.common.exceptions import TimeoutException

        try:
            self.driver.get(address)
        except TimeoutException:
            self.renew()
            self.driver.get(address)

    def open(self, file: Path, part: str = "") -> float:
        """Open a file and wait until every chart is drawn; return the seconds that took.

        A page that stands still for a minute is opened once more, in a new browser.
        """
        seconds = self._drawn(file.as_uri() + part)
        if seconds is None:
            self.renew()
            seconds = self._drawn(file.as_uri() + part)
        assert seconds is not None, self.js("return window.simsched")
        return seconds

    def _drawn(self, address: str) -> float | None:
        started = time.monotonic()
        self.go(address)
        while not self.js("return window.simsched && window.simsched.done"):
            if time.monotonic() - started > 60:
                return None
            time.sleep(0.02)
        return time.monotonic() - started

    def js(self, script: str, *arguments):
        return self.driver.execute_script(script, *arguments)

    def click(self, selector: str) -> None:
        self.js("document.querySelector(arguments[0]).click()", selector)

    def range(self, prefix: str = "r0") -> list[float]:
        return self.js(
            f"const r = {model(prefix + '-time')}; return [r.start, r.end]",
        )

    def settle(self) -> float:
        """Wait for two frames, and return the milliseconds that the last drawing took."""
        return self.driver.execute_async_script(
            "const done = arguments[0];"
            "requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(() =>"
            " done(window.simsched.lastRender))))"
        )

    def complaints(self) -> list[str]:
        return [m["message"] for m in self.driver.get_log("browser") if m["level"] in ("SEVERE", "WARNING")]

    def requested(self) -> list[str]:
        messages = [json.loads(m["message"])["message"] for m in self.driver.get_log("performance")]
        urls = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
        return [u for u in urls if not u.startswith(("data:", "blob:", "about:"))]

    def resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        time.sleep(0.3)
        self.settle()


def model(name: str) -> str:
    """JavaScript for the Bokeh model of that name."""
    return f"Bokeh.documents.map(d => d.get_model_by_name('{name}')).find(m => m)"
