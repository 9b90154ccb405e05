"""What a module lists in `__all__` is what the others take from it, so that the list informs.

A name is listed as soon as another module of the packages imports it, and no longer than somebody
outside its module uses it, be it a test. The `__init__` of a package lists what users import; the
tests of the public surface hold that.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_PACKAGES = ("logstores", "core", "spark", "cli", "contrib")
_OTHERS = ("tests", "benchmarks", "examples", "scripts")
_LISTED = re.compile(r"^__all__(?:: [^=]+)? = \[(.*?)\]", re.MULTILINE | re.DOTALL)
_IMPORT = re.compile(r"from (lakelog\.[\w.]+) import (?:\((.*?)\)|(.*))", re.DOTALL)
_START = re.compile(r"from lakelog\.")
_NAME = re.compile(r"(\w+)(?: as \w+)?\s*(?:[,;]|$)")
_LOOKED_UP = re.compile(r"[\w)][.:](\w+)")
_FOUND_BY_PYTEST = {
    "lakelog.logstores.conformance.plugin",
    "lakelog.logstores.conformance.suite",
}


def _imports(text: str) -> list[tuple[str, str]]:
    """Module and name, for each that the text imports from one of ours."""
    found = []
    for start in _START.finditer(text):
        end = text.find("\n", start.start())
        line = text[start.start() : end if end > 0 else None]
        if line.endswith("("):
            line = text[start.start() : text.index(")", start.start()) + 1]
        if one := _IMPORT.match(line):
            names = re.sub(r"#.*", "", one[2] or one[3])
            found += [(one[1], name) for name in _NAME.findall(names)]
    return found


def differences(root: Path) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Module -> names that others import and it does not list; and listed ones nobody uses."""
    texts = {
        ".".join(path.relative_to(root / package).with_suffix("").parts): path.read_text("utf-8")
        for package in _PACKAGES
        for path in (root / package / "lakelog").rglob("*.py")
    }
    others = [path.read_text("utf-8") for name in _OTHERS for path in (root / name).rglob("*.py")]
    modules = {name.removesuffix(".__init__") for name in texts}
    imported: defaultdict[str, set[str]] = defaultdict(set)
    used: defaultdict[str, set[str]] = defaultdict(set)
    looked_up: set[str] = set()
    for text, names in [*((t, imported) for t in texts.values()), *((t, used) for t in others)]:
        for module, name in _imports(text):
            if f"{module}.{name}" not in modules:
                names[module].add(name)
        # Through the module, as `keys.THROW`, or late, as "lakelog.contrib.ibm_cos.IBMCOSLogStore"
        # and "forks:fork_and_use".
        looked_up.update(_LOOKED_UP.findall(text))
    unlisted: dict[str, set[str]] = {}
    unused: dict[str, set[str]] = {}
    for module, text in texts.items():
        if module.endswith("__init__"):
            continue
        found = _LISTED.search(text)
        listed = set(re.findall(r'"(\w+)"', found[1])) if found else set()
        if missing := imported[module] - listed:
            unlisted[module] = missing
        idle = listed - imported[module] - used[module] - looked_up
        if idle and module not in _FOUND_BY_PYTEST:
            unused[module] = idle
    return unlisted, unused


def test_a_module_lists_what_others_take_from_it_and_nothing_else() -> None:
    unlisted, unused = differences(_ROOT)
    assert not unlisted, "imported by other modules: list them in __all__"
    assert not unused, "nobody outside the module uses these: take them out of __all__"
