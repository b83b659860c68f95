"""view: a finished run in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

RunPath = Annotated[Path, typer.Argument(help="A finished run folder.")]
Host = Annotated[
    str, typer.Option("--host", help="Where to listen; others than 127.0.0.1 open it to a network.")
]
Port = Annotated[int, typer.Option("--port", "-p", help="0: any that is free.")]
Trust = Annotated[
    bool, typer.Option("--trust", help="Run the plug-ins that the run's study names, to show frames.")
]
Browse = Annotated[bool, typer.Option("--open/--no-open", help="Open a browser there.")]


def view(
    folder: RunPath,
    host: Host = "127.0.0.1",
    port: Port = 0,
    browse: Browse = False,  # noqa: FBT002
    trust: Trust = False,  # noqa: FBT002
) -> None:
    """Explore a run: frames under two mutations, their boxes, curves and the closed loop, at any sensitivity.

    Serves a page on this machine alone until Ctrl-C; the printed address holds the token that opens it.

    \b
    Examples:
        adverse view runs/orchard
        adverse view runs/orchard --port 8000 --open
    """
    import webbrowser

    from adverse.pages.view.app import routes
    from adverse.pages.view.session import Opened
    from adverse.serving import LOOPBACK, open_door, serve

    pages = routes(Opened(folder, trust=trust))
    door, bound = open_door(host, port)
    if host != LOOPBACK:
        typer.echo(
            f"warning: {host} can be reached from other machines; who has the address sees the run", err=True
        )
    typer.echo(f"explorer: {door.address}\nCtrl-C ends it")
    if browse:
        webbrowser.open(door.address)
    serve(door, bound, pages)
