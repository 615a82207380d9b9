"""`mmeval view`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.label_options import label_options, labelling
from multimodal_eval.cli.options import media_root_option

if TYPE_CHECKING:
    from socket import socket

    from multimodal_eval.analysis.compare import RunComparison
    from multimodal_eval.data.runs.run import Run
    from multimodal_eval.report.viewer.labelling.options import LabelOptions

PORT = 8642


@click.command()
@click.argument(
    "folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default="runs", metavar="[DIR]"
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=PORT,
    show_default=True,
    help="Listen on this port; 0 picks a free one.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Listen on this address. Any other than the default lets other machines read all of DIR.",
)
@media_root_option
@click.option("--open", "open_", is_flag=True, help="Also open the browser.")
@label_options
def view(folder: Path, port: int, host: str, open_: bool, media_roots: tuple[Path, ...], **params: Any) -> None:
    """Browse the runs in DIR (default: runs), or one run: scores, samples with their media, comparisons, progress.

    Serves pages on this machine and prints their address. Nothing is fetched from other machines.
    Media of runs that you did not make on this machine are read only in their folder and below --media-root.

    Nothing is written, except with --label: people label answers without seeing of which run they are, and their labels
    are for `mmeval judge calibrate --human FILE` and `mmeval agree FILE`; runs get tags and notes. No run is changed.
    """
    label = labelling(params)
    from multimodal_eval.core.optional import require

    for package in ("starlette", "uvicorn", "duckdb"):
        require(package, extra="view", purpose="mmeval view")
    from multimodal_eval.report.viewer.app import create_app
    from multimodal_eval.report.viewer.guard import host_check
    from multimodal_eval.report.viewer.serving import viewer_server

    with _listen(host, port) as listening:
        port = listening.getsockname()[1]
        accepts_host = host_check(host, port)
        app = create_app(folder, compare=_compared, accepts_host=accepts_host, media_roots=media_roots, label=label)
        address = f"http://{_shown(host)}:{port}/"
        _tell(folder, host, address, label)
        if open_:
            click.launch(address)
        viewer_server(app).run(sockets=[listening])


def _tell(folder: Path, host: str, address: str, label: LabelOptions | None) -> None:
    """Say what is served, and who can do what with it."""
    click.echo(f"{folder} is served at {address}    Stop with Ctrl+C")
    if label is not None:
        click.echo(f"labels are appended to {label.file}: {address}label")
    if host not in ("127.0.0.1", "localhost", "::1"):
        click.echo(f"warning: anyone who reaches this address can {_allowed(label)}", err=True)


def _allowed(label: LabelOptions | None) -> str:
    reading = "read the runs and their media"
    if label is None:
        return reading
    if label.only:
        return "read the labelled samples and write labels"
    return f"{reading}, and write labels, tags and notes"


def _compared(runs: Sequence[Run]) -> RunComparison:
    from multimodal_eval.analysis.compare import compare_runs
    from multimodal_eval.core.machine import cores

    return compare_runs(runs, allow_partial=True, skip_unknown=True, threads=cores())


def _listen(host: str, port: int) -> socket:
    """Open the socket before its address is printed."""
    import socket as sockets

    from multimodal_eval.core.errors import ConfigError

    family = sockets.AF_INET6 if ":" in host else sockets.AF_INET
    listening = sockets.socket(family)
    listening.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen()
    except OSError as fault:
        listening.close()
        raise ConfigError(
            f"cannot listen on {host}, port {port}: {fault.strerror or fault}. Choose another --port"
        ) from None
    return listening


def _shown(host: str) -> str:
    """The host in an address that a browser on this machine can open."""
    if host in ("0.0.0.0", "::"):
        return "127.0.0.1" if host == "0.0.0.0" else "[::1]"
    return f"[{host}]" if ":" in host else host
