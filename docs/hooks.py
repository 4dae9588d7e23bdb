"""What mkdocs needs beyond mkdocs.yml: pages of the site that live outside docs/.

On GitHub the pages link to them where they are; in the site they stand beside the others.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
OUTSIDE = ["CHANGELOG.md", "CONTRIBUTING.md", "benchmarks/README.md", "examples/README.md"]
# What those pages link to, kept as it is.
BESIDE = ["examples/*.py", "examples/*.toml"]


def on_files(files: Files, config: Any) -> Files:
    """Add what lives outside docs/ under the path that it has in the repository."""
    beside = [path for pattern in BESIDE for path in sorted(ROOT.glob(pattern))]
    for path in [*(ROOT / name for name in OUTSIDE), *beside]:
        name = path.relative_to(ROOT).as_posix()
        files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Make links between docs/ and the rest of the repository links within the site."""
    if page.file.src_uri in OUTSIDE:
        return re.sub(r"\]\(((?:\.\./)*)docs/", r"](\1", markdown)
    depth = page.file.src_uri.count("/")
    return markdown.replace("](" + "../" * (depth + 1), "](" + "../" * depth)
