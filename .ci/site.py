"""What the site of the documentation adds to docs/: pages of the examples and of the changes."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
STYLE = """.md-main__inner.md-grid { max-width: 76rem; }
.md-typeset .grid { align-items: start; }
.md-typeset .grid pre > code { white-space: pre-wrap; font-size: 0.68rem; }
.md-typeset img { max-width: min(100%, 56rem); }
"""


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages."""
    files.append(File.generated(config, "examples.md", content=_examples()))
    files.append(File.generated(config, "changelog.md", content=_changelog()))
    files.append(File.generated(config, "site.css", content=STYLE))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Lead to the generated pages; show programs of others as what they are, Python."""
    markdown = re.sub(r"\]\((?:\.\./)+examples/(\w+)\.py\)", r"](examples.md#\1py)", markdown)
    markdown = re.sub(r"\]\((?:\.\./)+examples/?[^)]*\)", "](examples.md)", markdown)
    return re.sub(r"^```(?:delta|iceberg|pypaimon)$", "```python", markdown, flags=re.MULTILINE)


def _examples() -> str:
    programs = sorted((ROOT / "examples").glob("*.py"))
    parts = [f"## {p.name}\n\n```python\n{p.read_text(encoding='utf-8')}```\n" for p in programs]
    return "\n".join(["# Examples\n", *parts])


def _changelog() -> str:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    return re.sub(r"\]\(docs/", "](", text)
