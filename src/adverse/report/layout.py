"""What all our pages share: one file each, strict rules on what may run in it, tables with their twins.

Everything shown is worked out before the template sees it; the template only places it. Style and script are
in the file and allowed by their hashes alone, so that nothing else can run, whatever a name may hold.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from importlib import resources
from typing import Any

import jinja2

from adverse.report.table import Table
from adverse.text import setting_text, shown


def rendered(template: str, **content: Any) -> str:
    """Return a whole page from a template and what it places."""
    style, script = (_text(name) for name in ("report.css", "report.js"))
    page = _templates().get_template(template)
    return page.render(policy=_policy(style, script), style=style, script=script, **content)


@functools.cache
def _templates() -> jinja2.Environment:
    """Return our templates, each compiled once."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("adverse.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals |= {"twin": _twin, "shown": shown, "setting_text": setting_text}
    return environment


def _twin(table: Table, kind: str) -> str:
    """Return a table as a link that holds all of it."""
    text = table.csv() if kind == "csv" else table.json()
    media = {"csv": "text/csv", "json": "application/json"}[kind]
    return f"data:{media};charset=utf-8;base64,{base64.b64encode(text.encode()).decode()}"


def _policy(style: str, script: str) -> str:
    """Return the content security policy: our style and our script, images in the file, nothing else."""

    def hashed(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    return (
        f"default-src 'none'; img-src data:; style-src {hashed(style)}; script-src {hashed(script)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _text(name: str) -> str:
    return resources.files("adverse.report").joinpath("templates", name).read_text("utf-8")
