"""Run by the Python that has Playwright: open one page in several ways, and print what was seen."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright  # type: ignore[import-not-found]

_COLUMN = """([id, at]) => [...document.querySelectorAll(`#${id} tbody tr`)]
    .filter((row) => !row.hidden).map((row) => row.cells[at].textContent)"""

_HOVERED = """(mark) => [getComputedStyle(mark).filter,
    mark.parentElement.querySelector("title").textContent]"""

_TOOLS = """[...document.querySelectorAll("nav, .tools, .skip")]
    .some((each) => each.checkVisibility())"""

_CUT = """[...document.querySelectorAll(".scroll")]
    .some((each) => each.scrollHeight > each.clientHeight + 1)"""

_ARGUMENTS = ["--no-sandbox", "--no-zygote", "--in-process-gpu", "--use-gl=angle"]
_ARGUMENTS += ["--use-angle=swiftshader", "--enable-unsafe-swiftshader"]


def main(ask: dict[str, Any]) -> dict[str, Any]:
    """Answer for each of the views that are asked for."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=ask["chromium"], args=_ARGUMENTS)
        try:
            return {name: _view(chromium, ask, view) for name, view in ask["views"].items()}
        finally:
            chromium.close()


def _view(chromium: Any, ask: dict[str, Any], view: dict[str, Any]) -> dict[str, Any]:
    context = chromium.new_context(
        viewport={"width": view.get("width", 1280), "height": view.get("height", 900)},
        color_scheme="dark" if view.get("dark") else "light",
        java_script_enabled=view.get("script", True),
    )
    page = context.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda each: said.append(f"{each.type}: {each.text}"))
    page.on("pageerror", lambda error: said.append(f"error: {error}"))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(view.get("url", ask["url"]))
    for step in view.get("steps", ()):
        _step(page, *step)
    seen: dict[str, Any] = {"text": page.inner_text("body")}
    if view.get("script", True):
        seen |= _by_script(page, ask, view)
    if "screenshot" in view:
        page.screenshot(path=view["screenshot"], full_page="height" not in view)
    context.close()
    return {**seen, "said": said, "asked": asked}


def _step(page: Any, kind: str, *given: Any) -> None:
    """Something that a reader does, or waits for."""
    if kind == "goto":
        page.goto(given[0])
    elif kind == "click":
        page.locator(given[0]).first.click()
    elif kind == "press":
        page.locator(given[0]).first.press(given[1])
    elif kind == "wait":
        page.locator(given[0]).first.wait_for(timeout=given[1] if len(given) > 1 else 30_000)
    elif kind == "print":
        page.emulate_media(media="print")
    else:
        raise ValueError(kind)


def _by_script(page: Any, ask: dict[str, Any], view: dict[str, Any]) -> dict[str, Any]:
    seen: dict[str, Any] = {
        "wide": page.evaluate("document.documentElement.scrollWidth"),
        "paper": page.evaluate("getComputedStyle(document.body).backgroundColor"),
        "shown": page.evaluate("(globalThis.alerted || '')"),
        "tools": page.evaluate(_TOOLS),
        "cut": page.evaluate(_CUT),
    }
    for table, at, times in view.get("sorts", ()):
        for _ in range(times):
            page.locator(f"#{table} thead th").nth(at).locator("button").press("Enter")
        seen.setdefault("sorted", []).append(page.evaluate(_COLUMN, [table, at]))
    for table, text in view.get("filters", ()):
        page.fill(f"input[data-filters={table}]", text)
        seen.setdefault("filtered", []).append(page.evaluate(_COLUMN, [table, 0]))
        page.fill(f"input[data-filters={table}]", "")
    if "hover" in view:
        mark = page.locator(view["hover"]).first
        mark.hover()
        seen["hovered"] = mark.evaluate(_HOVERED)
    if view.get("axe"):
        page.evaluate(Path(ask["axe"]).read_text("utf-8"))
        found = page.evaluate("axe.run()")
        seen["violations"] = [
            f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found["violations"]
        ]
    return seen


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
