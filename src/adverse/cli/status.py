"""status: how far a run is, in the terminal or as a page that keeps itself up to date."""

from __future__ import annotations

import html
import json
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adverse.cli.console import say, wrong
from adverse.cli.options import Host, Json, Port
from adverse.text import duration, shown

if TYPE_CHECKING:
    from adverse.store.status import RunStatus

REFRESH_S = 2
AnyRun = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run, also of one under way.")]
Page = Annotated[bool, typer.Option("--page", help="Serve it as a page on this machine, until Ctrl-C.")]


def status(
    folder: AnyRun,
    page: Page = False,  # noqa: FBT002
    as_json: Json = False,  # noqa: FBT002
    host: Host = "127.0.0.1",
    port: Port = 0,
) -> None:
    """Show how far a run is: rate, time left, faults, retries, and what each worker does.

    \b
    Examples:
        adverse status runs/orchard
        watch adverse status runs/orchard
        adverse status runs/orchard --page

    It reads what the run writes beside itself every two seconds, so it works from any machine that sees the
    folder, and costs the run nothing. Of a run that is over it says how it ended.
    """
    from adverse.remote_files import named_path
    from adverse.store.status import run_status

    folder = named_path(folder)
    found = run_status(folder)
    if page:
        _serve(folder, host, port)
    elif as_json:
        typer.echo(json.dumps({**asdict(found), "rate": found.rate, "left_s": found.left_s}, indent=1))
    else:
        for line in status_lines(found, folder, time.time()):
            say(line)


def status_lines(status: RunStatus, folder: Path, now: float) -> list[str]:
    """Return the status in words, one line for each thing."""
    words = {
        "running": f"running on {status.host} ({status.engine}, process {status.pid}) for "
        f"{duration(now - status.started)}",
        "killed": "not running: it was killed. Run the same command again, it resumes where it stopped",
        "interrupted": "not running: it was stopped. Run the same command again, it resumes",
        "incomplete": "not running: it ended incomplete. Run the same command again, it does what is left",
        "complete": f"complete. Its results: adverse report {folder}",
    }
    lines = [f"{folder}: {words.get(status.state, status.state)}"]
    if not status.total:
        return lines
    so_far = status.done + status.answered
    share = f"{100 * so_far / status.total:.0f}%"
    images = f"images   {so_far} of {status.total} ({share})"
    images += f", {status.before} of them before" if status.before else ""
    if status.state == "running":
        pace = "time left not known yet"
        if status.rate is not None and status.left_s is not None:
            pace = f"{status.rate:.1f}/s, about {duration(status.left_s)} left"
        images += f", {pace}"
    lines += [images, f"faults   {wrong(Counter(status.statuses))}"]
    if status.state == "running":
        width = max(map(len, status.workers), default=0)
        lines += [f"worker   {name:{width}}  {shown(doing)}" for name, doing in status.workers.items()]
        silent = now - status.written
        lines += [f"silent   nothing was written for {duration(silent)}"] if silent > 5 * REFRESH_S else []
    more = f", the last {len(status.notes)}" if status.noted > len(status.notes) else ""
    lines += [f"notes    {status.noted}{more}:"] if status.notes else []
    return lines + [f"  - {note}" for note in status.notes]


def status_page(status: RunStatus, folder: Path, now: float) -> str:
    """Return the same as a page that loads itself again while the run goes on."""
    lines = status_lines(status, folder, now)
    again = f'<meta http-equiv="refresh" content="{REFRESH_S}">' if status.state == "running" else ""
    title = html.escape(shown(folder.name))
    share = (status.done + status.answered) / status.total if status.total else 0.0
    bar = f'<progress value="{share:.4f}" max="1">{100 * share:.0f}%</progress>' if status.total else ""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">{again}<title>{title}</title></head>'
        f"<body><h1>{title}</h1>{bar}<pre>{html.escape(chr(10).join(lines))}</pre></body></html>"
    )


def _serve(folder: Path, host: str, port: int) -> None:
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, Response
    from starlette.routing import Route

    from adverse.serving import open_door, serve
    from adverse.store.status import run_status

    def answer(_request: Request) -> Response:
        return HTMLResponse(status_page(run_status(folder), folder, time.time()))

    door, bound = open_door(host, port)
    typer.echo(f"status: {door.address}\nCtrl-C ends it")
    serve(door, bound, [Route("/", answer)])
