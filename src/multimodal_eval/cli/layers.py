"""Help in layers: which options `--help` shows, the sections of `--help-all`, and older spellings.

Every command is a `LayeredCommand` or a `LayeredGroup`. What it shows is decided here, by the name of an option, so
that an option is in the same section of every command.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

import click
from click.core import ParameterSource

# Sections of the help, in their order, with the options that belong there. A test fails for an option without one.
SECTIONS: dict[str, str] = {
    "Input": "--data --only --as --map --task --questions --annotators --annotations --unit --annotator --label "
    "--group --ids --only-answered --limit --config --suite --models --tasks --join --plugin --image-root --media-root "
    "--allow-outside-images --allow-outside-media --allow-image-urls --allow-outside --allow-partial --max-record-mb "
    "--max-expansion --format-in --files --from",
    "Metrics": "--metrics --rules --rule --option --headline --by --labels --unknown-labels --human --human-target "
    "--scores --lower --coefficient --level --order --weights --weight --language --synonyms --present-types-only "
    "--failed-answers --any-language --seed --gold --count-failures --skip-unavailable --allow-empty --no-lint --worst "
    "--deep",
    "Model": "--model --base-url --serve --profile --header --key-env --revision --prompt --system --schema "
    "--shots --shot-count --history --temperature --top-p --max-tokens --model-seed --stop --reasoning-effort "
    "--logprobs --no-logprobs --extra --epochs --accept-truncated --max-pixels --detail --frames --media-as "
    "--concurrency --timeout --retries --prices "
    "--budget --no-cache --retry-failures --no-probe --probe --until --until-better --batch-out --batch-in --dry-run "
    "--show-request --fetch --check --accept-open",
    "Judge": "--judge --judge-url --judge-key-env --judge-repeats --judge-concurrency --judge-prices --judge-budget "
    "--no-judge-cache --orders --skip-identical --pairs --until-ranked --ties --scale --anchor --prior --width",
    "Test": "--why --ask --baseline --fail-if-worse --margin --effect --rounds --vary-weights --concentration --draws "
    "--samples --rates --lost --sd --group-size --group-correlation --power --resamples",
    "Labelling": "--label-run --pairwise --question --plan --hide-references --only-labels",
    "Output": "--output --name --percent --errors --transpose --resume --overwrite "
    "--to --set --list-formats --format --verbose --jsonl --no-report --theme "
    "--fetch-images --port --host --open --site --title --site-samples --fail-under --fail-over --min-coverage "
    "--fail-on --verify",
    "Speed": "--workers --engine --address --gpus-per-worker",
    "Help": "--version --help",
}
# An option that is about something else in one command.
_ELSEWHERE = {
    **{
        ("view", flag): "Labelling" for flag in ("--label", "--metrics", "--scale", "--labels", "--seed", "--annotator")
    },
    ("judge plan", "--labels"): "Output",
    ("judge rank", "--until"): "Judge",
    ("crosswalk", "--samples"): "Output",
    ("report", "--samples"): "Output",
    ("clarity check-submission", "--data"): "Input",
}
# What `--help` shows of commands with many options; `--help-all` shows the others too.
EVERYDAY: dict[str, str] = {
    "run": "--map --task --limit --config --metrics --model --base-url --prompt --temperature --max-tokens --dry-run "
    "--output --resume --overwrite --format",
    "score": "--map --task --limit --config --metrics --option --by --judge --fetch --output --resume --overwrite "
    "--format --fail-under",
    "import": "--as --map --by --limit --output --overwrite --format --fail-under --no-report",
    "compare": "--metrics --by --why --ask --baseline --fail-if-worse --margin --effect --vary-weights --format",
    "rescore": "--config --human --judge --judge-url --output --overwrite --format --fail-under --no-report",
    "crosswalk": "--map --metrics --rules --option --samples --output --overwrite --format",
    "leaderboard": "--task --metrics --by --map --questions --config --failed-answers --output --overwrite --from "
    "--site --title --format",
    "view": "--port --host --open --media-root --label --label-run --pairwise --scale --labels --annotator",
    "dialogue generate": "--model --base-url --system --temperature --max-tokens --media-root --output --overwrite",
    "dialogue run": "--model --base-url --system --temperature --max-tokens --media-root --config --worst --output "
    "--overwrite --format",
    "dialogue score": "--questions --config --weight --rule --language --worst --output --overwrite --format "
    "--fail-under",
    "judge pairs": "--baseline --metrics --judge --judge-url --orders --allow-partial --output --overwrite --format "
    "--no-report",
    "judge rank": "--metrics --judge --judge-url --pairs --until --until-ranked --margin --output --overwrite --format "
    "--no-report",
}

# Options whose place is the configuration file: accepted with a warning until 0.3, and not shown.
_GENERATION = {
    "--key-env": "generation.key_env",
    "--revision": "generation.revision",
    "--shots": "generation.shots",
    "--shot-count": "generation.shot_count",
    "--history": "generation.history",
    "--top-p": "generation.parameters.top_p",
    "--model-seed": "generation.parameters.seed",
    "--stop": "generation.parameters.stop",
    "--reasoning-effort": "generation.parameters.reasoning_effort",
    "--logprobs": "generation.parameters.logprobs",
    "--extra": "generation.parameters.extra",
    "--epochs": "generation.epochs",
    "--accept-truncated": "generation.accept_truncated",
    "--max-pixels": "generation.max_pixels",
    "--detail": "generation.detail",
    "--frames": "generation.frames",
    "--media-as": "generation.media_as",
    "--timeout": "generation.timeout",
    "--retries": "generation.retries",
    "--no-cache": "generation.use_cache",
    "--no-probe": "generation.use_probe",
    "--retry-failures": "generation.retry_failures",
    "--until-better": "generation.until.better_than",
}
_JUDGES = {
    "--judge-key-env": "judges.NAME.models",
    "--judge-repeats": "judges.NAME.repeats",
    "--judge-concurrency": "judges.NAME.concurrency",
    "--judge-prices": "judges.NAME.prices",
    "--judge-budget": "judges.NAME.budget",
    "--no-judge-cache": "judges.NAME.use_cache",
}
_SCORING = {
    "--headline": "headline",
    "--questions": "questions",
    "--seed": "seed",
    "--allow-outside": "allow_outside",
    "--allow-outside-images": "allow_outside_images",
    "--max-expansion": "max_expansion",
    "--max-record-mb": "max_record_mb",
}
# A command that asks a model reads what else it scores, and how, from the file.
_SCORING_ANSWERS = {
    "--labels": "labels",
    "--unknown-labels": "unknown_labels",
    "--ids": "ids",
    "--count-failures": "count_failures",
    "--annotators": "annotators",
    "--human": "human",
    "--human-target": "human_target",
    "--as": "format",
    "--skip-unavailable": "skip_unavailable",
    "--allow-image-urls": "allow_image_urls",
    "--image-root": "image_root",
    "--no-lint": "skip_lint",
    "--allow-empty": "allow_empty",
    "--by": "by",
}
_RARE = {"--system": "generation.system", "--prices": "generation.prices", "--judge-url": "judges.NAME.models"}
MOVED: dict[str, dict[str, str]] = {
    "run": {**_GENERATION, **_RARE, **_JUDGES, **_SCORING, **_SCORING_ANSWERS},
    "score": {**_JUDGES, **_SCORING},
    "rescore": _JUDGES,
    "dialogue generate": _GENERATION,
    "dialogue run": _GENERATION,
}
# Other options that are accepted with a warning until 0.3 -> what replaces them, in every command.
REPLACED: dict[str, str] = {
    "--address": "--engine ray,address=ADDRESS",
    "--gpus-per-worker": "--engine ray,gpus_per_worker=SHARE",
    "--jsonl": "mmeval export RUN --to jsonl -o FILE",
    "--min-coverage": "--fail-under coverage=SHARE",
}
# Not replaced with --resume, which takes no such settings.
OF_RESUMED = frozenset({"--allow-empty"})
# Older spelling -> the option, until 0.3.
RENAMED: dict[str, str] = {"--metric": "--metrics", "--run": "--output"}
# Older command -> what is inserted in its place, until 0.3.
COMMANDS_RENAMED: dict[str, tuple[str, ...]] = {
    "generate": ("run", "--metrics", "none"),
    "schema": ("ls", "schema"),
    "sensitivity": ("compare", "--vary-weights"),
}

MANY = 15  # options; a command with more of them has an entry in EVERYDAY
_ALL = "multimodal_eval.help_all"
_SECTION_OF = {flag: section for section, flags in SECTIONS.items() for flag in flags.split()}
_ORDER = {flag: place for place, flag in enumerate(_SECTION_OF)}


def flag_of(option: click.Parameter) -> str:
    """The name of an option in messages: the first long one."""
    return next((name for name in option.opts if name.startswith("--")), option.opts[0])


def show_everything(context: click.Context) -> None:
    """Let the help of this context, and of those below it, show all options."""
    context.meta[_ALL] = True


class LayeredCommand(click.Command):
    """A command whose help has two layers; `path` is its name without `mmeval`."""

    path = ""

    def replaced(self) -> dict[str, str]:
        """The options that are not shown -> what replaces them."""
        keys = {flag: f"the setting {key} of --config FILE" for flag, key in MOVED.get(self.path, {}).items()}
        return {**REPLACED, **keys}

    def shown(self, *, everything: bool = True) -> list[click.Option]:
        """The options of the help."""
        hidden = self.replaced()
        options = [p for p in self.params if isinstance(p, click.Option) and not p.hidden and flag_of(p) not in hidden]
        everyday = EVERYDAY.get(self.path, "").split()
        if everything or not everyday:
            return options
        return [option for option in options if flag_of(option) in everyday or option.required]

    def _renamed(self, args: list[str]) -> Iterator[str]:
        known = {name for parameter in self.params for name in parameter.opts}
        for place, word in enumerate(args):
            if word == "--":
                yield from args[place:]
                return
            flag, equals, value = word.partition("=")
            newer = RENAMED.get(flag)
            if newer in known and flag not in known:
                click.echo(f"! {flag} is called {newer} now. The older name works until 0.3", err=True)
                word = f"{newer}{equals}{value}"
            yield word

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments: older spellings are replaced, and options that are not shown any more give a warning."""
        rest = super().parse_args(ctx, list(self._renamed(args)))
        kept = OF_RESUMED if ctx.params.get("resumed") is not None else ()
        replaced = {flag: newer for flag, newer in self.replaced().items() if flag not in kept}
        for option in self.params:
            newer = replaced.get(flag_of(option)) if isinstance(option, click.Option) else None
            if newer and ctx.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE:
                click.echo(f"! {flag_of(option)} is replaced by {newer} and works until 0.3", err=True)
        return rest

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Its errors name settings of --config instead of options that are not shown any more."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            from multimodal_eval.core.errors import MultimodalEvalError
            from multimodal_eval.core.option_words import with_settings

            if isinstance(error, MultimodalEvalError):
                error.args = (with_settings(str(error), MOVED.get(self.path, {})), *error.args[1:])
            raise

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The parameters, with --help and --help-all."""
        return [*super().get_params(ctx), _help_all]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by section; those that few people need only for --help-all."""
        everything = bool(ctx.meta.get(_ALL))
        sections: dict[str, list[tuple[str, str]]] = {section: [] for section in SECTIONS}
        options = self.shown(everything=everything)
        for option in sorted([*options, *super().get_params(ctx)[-1:]], key=_place):
            record = option.get_help_record(ctx)
            if record is not None:
                sections[section_of(self.path, flag_of(option))].append(record)
        if (more := len(self.shown()) - len(options)) > 0:
            sections["Help"].append(("--help-all", f"Show {more} more options."))
        for section, rows in sections.items():
            if rows:
                with formatter.section(section):
                    formatter.write_dl(rows)
        if self.path in MOVED:
            with formatter.indentation():
                formatter.write_text("Further settings: --config FILE, see docs/configuration.md")


def section_of(path: str, flag: str) -> str:
    """The section of an option in the help of a command."""
    return _ELSEWHERE.get((path, flag)) or _SECTION_OF[flag]


def _place(option: click.Parameter) -> int:
    """Options are in the order of this file."""
    return _ORDER[flag_of(option)]


def _show_help(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        show_everything(ctx)
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


_help_all = click.Option(
    ["--help-all"], is_flag=True, expose_value=False, is_eager=True, hidden=True, callback=_show_help, help="Show all."
)


class LayeredGroup(LayeredCommand, click.Group):
    """A group of commands."""

    command_class = LayeredCommand

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, then the options."""
        self.format_commands(ctx, formatter)
        super().format_options(ctx, formatter)


def older_command(args: list[str], older: Mapping[str, tuple[str, ...]] = COMMANDS_RENAMED) -> list[str]:
    """The arguments of `mmeval` with the command that replaces an older one."""
    if not args or args[0] not in older:
        return args
    newer = older[args[0]]
    click.echo(f"! mmeval {args[0]} is now: mmeval {shlex.join(newer)}. The older name works until 0.3", err=True)
    return [*newer, *args[1:]]
