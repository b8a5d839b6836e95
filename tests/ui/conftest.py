"""A real browser in front of the real program."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import Browser, Page, Request, expect, sync_playwright

from needs import lacking
from servers import dying_with_parent
from ui.lake import fill

PATIENCE_MS = 30_000  # the machine may be busy with other tests
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


@dataclass(frozen=True)
class Served:
    """The program, and where it says that it can be opened."""

    url: str
    warehouse: Path

    @property
    def origin(self) -> str:
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"

    def table(self, name: str, view: str = "overview", query: str = "") -> str:
        return f"{self.origin}/table/{quote(name)}/{view}{query}"


@dataclass
class Visit:
    """A page of the browser, and everything it asked for or complained about."""

    page: Page
    served: Served
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def goto(self, url: str) -> Page:
        self.page.goto(url)
        return self.page

    @property
    def outside(self) -> list[str]:
        return [url for url in self.requests if not url.startswith(f"{self.served.origin}/")]


Open = Callable[..., AbstractContextManager[Visit]]


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with tables to look at; tests that change it take a copy."""
    folder = tmp_path_factory.mktemp("lake") / "warehouse"
    fill(folder)
    return folder


@contextmanager
def served(warehouse: Path, *arguments: str) -> Iterator[Served]:
    """``emberlake ui`` in a process of its own, at a free port."""
    command = [sys.executable, "-m", "emberlake", "ui", "--port", "0", "--json"]
    command += ["--warehouse", str(warehouse), *arguments]
    with subprocess.Popen(
        dying_with_parent(command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            line = process.stdout.readline()
            assert line, process.stderr.read()
            yield Served(json.loads(line)["url"], warehouse)
        finally:
            process.terminate()


@pytest.fixture(scope="session")
def site(lake: Path) -> Iterator[Served]:
    """The pages of the lake, read-only."""
    with served(lake) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, for one file of tests.

    While it is open, its driver occupies the event loop of the process: no other test can run one.
    """
    program = next((path for name in CHROMIUM if (path := shutil.which(name))), None)
    if program is None:
        lacking("there is no Chromium; run .ci/browser")
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        # The sandbox needs rights that containers do not give; only our own pages are opened.
        found = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def visit(browser: Browser) -> Open:
    """Opens a page: ``with visit(site, width=400) as visiting``."""

    @contextmanager
    def opened(
        running: Served,
        width: int = 1400,
        height: int = 900,
        scheme: str = "light",
        **other: Any,
    ) -> Iterator[Visit]:
        size: Any = {"width": width, "height": height}
        context = browser.new_context(viewport=size, color_scheme=scheme, **other)  # type: ignore[arg-type]
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        visiting = Visit(page, running)

        def asked(request: Request) -> None:
            visiting.requests.append(request.url)

        page.on("request", asked)
        page.on("console", lambda message: visiting.complaints.append(message.text))
        page.on("pageerror", lambda error: visiting.complaints.append(str(error)))
        try:
            page.goto(running.url)
            yield visiting
        finally:
            context.close()

    return opened


def views_of(running: Served) -> Sequence[str]:
    """Pages that show everything there is to show."""
    asked = "?filter=" + quote("dt >= '2026-06-09' AND user_id < 10")
    return [
        f"{running.origin}/",
        f"{running.origin}/database/shop",
        running.table("shop.orders"),
        running.table("shop.orders", "history"),
        running.table("logs.events", "partitions"),
        running.table("shop.orders", "buckets"),
        running.table("logs.events", "plan", asked),
        running.table("shop.orders", "rows"),
        running.table("shop.orders", "check"),
    ]
