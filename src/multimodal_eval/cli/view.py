"""`mmeval view`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.layers import LayeredCommand
from multimodal_eval.cli.options import Params, media_root_option

if TYPE_CHECKING:
    from socket import socket

    from multimodal_eval.analysis.compare import RunComparison
    from multimodal_eval.data.runs.run import Run
    from multimodal_eval.report.viewer.labelling.queue import LabelOptions


# The options for labelling.


_OPTIONS = (
    click.option(
        "--label",
        "label_file",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Collect human labels, and tags and notes of runs: append the labels to this JSONL file.",
    ),
    click.option(
        "--label-run",
        "label_runs",
        multiple=True,
        metavar="NAME",
        help="Label the answers of this run; can be repeated. Default: all finished runs in DIR, mixed.",
    ),
    click.option("--pairwise", is_flag=True, help="Label which of two runs has the better answer."),
    click.option(
        "--metrics", "metric", metavar="NAME", help="Label for this metric. Default: the judge, or the headline."
    ),
    click.option(
        "--scale",
        metavar="LABELS",
        help="Set the labels: 1-5, 0-100, yes,no or poor,fair,good. Default: the scale of the metric.",
    ),
    click.option("--question", metavar="TEXT", help="Set the instruction for annotators."),
    click.option(
        "--labels", type=click.IntRange(1), metavar="N", help="Label N random samples. Default: all, in random order."
    ),
    click.option(
        "--plan",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Label the samples of this plan of `mmeval judge plan`, and keep their human_weight.",
    ),
    click.option(
        "--seed", type=click.IntRange(0), help="Set the seed of the order and of left and right.  [default: 0]"
    ),
    click.option("--annotator", metavar="NAME", help="Label under this name. Default: everybody gives a name."),
    click.option("--hide-references", is_flag=True, help="Do not show references to annotators."),
    click.option("--only-labels", is_flag=True, help="Serve only the labelling pages, without runs and scores."),
)
# The parameters of the options that need --label.
_NAMES = {
    "label_runs": "--label-run",
    "pairwise": "--pairwise",
    "metric": "--metrics",
    "scale": "--scale",
    "question": "--question",
    "labels": "--labels",
    "plan": "--plan",
    "seed": "--seed",
    "annotator": "--annotator",
    "hide_references": "--hide-references",
    "only_labels": "--only-labels",
}


def label_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def labelling(params: Params) -> LabelOptions | None:
    """What is labelled; None without --label, which the other options need."""
    from multimodal_eval.report.viewer.labelling.queue import LabelOptions

    if params["label_file"] is None:
        for name, option in _NAMES.items():
            if params[name] is not None and params[name] is not False and params[name] != ():
                raise click.UsageError(f"{option} needs --label FILE")
        return None
    return LabelOptions(
        file=params["label_file"],
        runs=params["label_runs"],
        pairwise=params["pairwise"],
        metric=params["metric"],
        scale=params["scale"],
        question=params["question"],
        labels=params["labels"],
        plan=params["plan"],
        seed=params["seed"] or 0,
        annotator=_annotator(params["annotator"]),
        references=not params["hide_references"],
        only=params["only_labels"],
    )


def _annotator(name: str | None) -> str | None:
    """The name, as the form of the viewer would accept it."""
    if name is None:
        return None
    stripped = name.strip()
    if not stripped or len(stripped) > 80 or not stripped.isprintable():
        raise click.UsageError("--annotator must be a name of at most 80 printable characters")
    return stripped


PORT = 8642


@click.command(cls=LayeredCommand)
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
    help="Listen on this address. Any address but the default lets other machines read all of DIR.",
)
@media_root_option
@click.option("--open", "open_", is_flag=True, help="Also open the browser.")
@label_options
def view(folder: Path, port: int, host: str, open_: bool, media_roots: tuple[Path, ...], **params: Any) -> None:
    """Browse the runs in DIR (default: runs), or one run: scores, samples with their media, comparisons, progress.

    Serves pages on this machine and prints their address. Nothing is fetched from other machines.
    For runs that were not made on this machine, media are read only from the run's folder and --media-root.

    Runs are never changed. With --label, people label answers without seeing which run wrote them, for `mmeval judge
    calibrate --human FILE` and `mmeval agree FILE`, and give runs tags and notes.
    """
    label = labelling(params)
    from multimodal_eval.core.optional import require

    for package in ("starlette", "uvicorn", "duckdb"):
        require(package, extra="view", purpose="mmeval view")
    from multimodal_eval.report.viewer.app import create_app
    from multimodal_eval.report.viewer.guard import host_check, viewer_server

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
