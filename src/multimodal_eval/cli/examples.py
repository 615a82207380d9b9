"""The examples at the end of every command's help, and the lines that lists of commands show."""

from __future__ import annotations

import click

from multimodal_eval.cli.layers import LayeredCommand

EXAMPLES: dict[str, tuple[str, ...]] = {
    "": (
        "mmeval demo --fetch",
        "mmeval score answers.jsonl --metrics coco -o runs/first",
        "mmeval report runs/first",
    ),
    "run": (
        "mmeval run questions.jsonl --model openai:NAME --task textvqa --dry-run",
        "mmeval run questions.jsonl --model openai:NAME --task textvqa",
        "mmeval run questions.jsonl --model vllm:NAME --base-url http://localhost:8000/v1 --task textvqa",
        "mmeval run questions.jsonl --model ollama:NAME --task textvqa --metrics none -o runs/answers",
        "mmeval run --resume runs/first --budget 20",
    ),
    "score": (
        "mmeval score answers.jsonl --metrics rouge_l,cider_d",
        "mmeval score answers.jsonl --task captioning",
        "mmeval score captions_val2014.json results.json -o runs/first",
        "mmeval score data.csv --map generated_answer=pred --metrics rouge_l",
        "mmeval score data.jsonl captions.jsonl --metrics coco --by predictions.system",
        "mmeval score --resume runs/first",
    ),
    "import": (
        "mmeval import results/samples_toy_sum_2026-11-16T16-40-07.137010.jsonl -o runs/toy_sum",
        "mmeval import logs/ --as lmms-eval -o suites/first",
    ),
    "rescore": ("mmeval rescore runs/first --config weights.yaml -o runs/second",),
    "compare": (
        "mmeval compare runs/first runs/second",
        "mmeval compare runs/a runs/b runs/c --metrics cider_d,bleu.bleu_1",
        "mmeval compare runs/old runs/new --fail-if-worse",
        "mmeval compare runs/composed/a runs/composed/b --vary-weights",
        "mmeval compare --why runs/first runs/second",
    ),
    "table": (
        "mmeval table runs",
        "mmeval table suites/paper --baseline parrot --percent",
        "mmeval table suites/paper --tasks vqa,chart --format latex -o table.tex",
    ),
    "power": (
        "mmeval power --rates 0.70,0.74 --effect 0.04",
        "mmeval power runs/first runs/second --effect 0.01",
        "mmeval power --sd 0.3 --samples 500 --group-size 5 --group-correlation 0.4",
    ),
    "crosswalk": (
        "mmeval crosswalk runs/first --metrics multiple_choice",
        "mmeval crosswalk answers.jsonl --metrics anls -o runs/rules",
        "mmeval crosswalk captions.jsonl --metrics cider_d --rules ptb,whitespace",
    ),
    "reproduce": (
        "mmeval reproduce --data published",
        "mmeval reproduce paper.yaml",
        "mmeval reproduce --only chartqa --format json",
    ),
    "report": ("mmeval report runs/first", "mmeval report runs/first runs/second -o both.html"),
    "export": (
        "mmeval export runs/first --to eee -o collection --set model=acme/parrot-7b",
        "mmeval export runs/first runs/second --to csv -o scores.csv",
        "mmeval export runs/first runs/second --to latex --set baseline=first -o table.tex",
        "mmeval export runs/first --to mlflow -o tracked",
        "mmeval export --list-formats",
    ),
    "judge": (
        "mmeval judge pairs runs/a runs/b --judge openai:NAME",
        "mmeval judge calibrate runs/first --human labels.jsonl",
    ),
    "judge pairs": (
        "mmeval judge pairs runs/a runs/b --judge openai:NAME -o runs/a-against-b",
        "mmeval judge pairs runs/a --baseline human.jsonl --judge openai:NAME",
        "mmeval judge pairs runs/a runs/b --judge openai:NAME --judge vllm:NAME",
    ),
    "judge rank": (
        "mmeval judge rank runs/a runs/b runs/c --judge openai:NAME -o runs/ranking",
        "mmeval judge rank runs/a runs/b runs/c --judge openai:NAME --until-ranked --margin 0.05",
        "mmeval judge rank systems/* --judge openai:NAME --pairs random:3",
    ),
    "judge ratings": (
        "mmeval judge ratings runs/ranking",
        "mmeval judge ratings runs/ranking runs/a-against-d --ties davidson --anchor a",
    ),
    "judge plan": (
        "mmeval judge plan runs/first --labels 100 -o to-label.jsonl",
        "mmeval judge plan runs/first --human labels.jsonl --width 0.06",
        "mmeval judge plan runs/first --human labels.jsonl --labels 200 -o more.jsonl",
    ),
    "judge calibrate": (
        "mmeval judge calibrate runs/first --human rating",
        "mmeval judge calibrate runs/first --human labels.jsonl -o runs/calibrated",
        "mmeval judge calibrate runs/first runs/second --human labels.jsonl --metrics helpfulness",
    ),
    "meta": (
        "mmeval meta judged.csv --human rating --metrics bleu,cider_d",
        "mmeval meta runs/first --human rating",
        "mmeval meta judged.csv --human ann,bob --scores clip_score",
    ),
    "agree": (
        "mmeval agree labels.csv --annotators 'annotator*'",
        "mmeval agree ratings.csv --unit id --annotator who --label grade",
    ),
    "clarity": (
        "mmeval clarity test.csv predictions.csv",
        "mmeval clarity check-submission submission.zip --data test.csv",
    ),
    "clarity score": ("mmeval clarity score test.csv predictions.csv --task evasion",),
    "clarity check-submission": ("mmeval clarity check-submission submission.zip --data test.csv",),
    "dialogue": (
        "mmeval dialogue gold.json output.json ppl_output.json",
        "mmeval dialogue ppl questions.json output.json -o ppl_output.json",
    ),
    "dialogue score": ("mmeval dialogue score gold.json output.json ppl_output.json",),
    "dialogue ppl": ("mmeval dialogue ppl questions.json output.json -o ppl_output.json",),
    "dialogue generate": (
        "mmeval dialogue generate questions.json --model openai:NAME -o submission",
        "mmeval dialogue generate questions.json --model vllm:NAME --base-url http://localhost:8000/v1 -o other",
        "mmeval dialogue gold.json submission",
    ),
    "dialogue run": ("mmeval dialogue run gold.json questions.json --model openai:NAME -o submission",),
    "leaderboard": (
        "mmeval leaderboard gold.json submissions -o runs/board",
        "mmeval leaderboard captions_val2014.json answers --by cider_d",
        "mmeval leaderboard --from runs/board --site site --title 'Dialogues 2027'",
    ),
    "view": ("mmeval view runs", "mmeval view runs/first --open"),
    "lint": ("mmeval lint runs/first", "mmeval lint runs/first --fail-on MARKUP,TRUNCATED"),
    "validate": ("mmeval validate data.jsonl captions.jsonl", "mmeval validate data.csv --map generated_answer=pred"),
    "verify": ("mmeval verify runs/first", "mmeval verify runs/* --deep"),
    "demo": ("mmeval demo --fetch", "mmeval demo -o demo-runs", "mmeval demo --files demo"),
    "ls": ("mmeval ls metrics", "mmeval ls runs"),
    "ls benchmarks": ("mmeval ls benchmarks",),
    "ls formats": ("mmeval ls formats",),
    "ls judges": ("mmeval ls judges",),
    "ls metrics": ("mmeval ls metrics", "mmeval ls metrics --plugin my_metric.py"),
    "ls models": ("mmeval ls models",),
    "ls prompts": ("mmeval ls prompts",),
    "ls tasks": ("mmeval ls tasks",),
    "ls rules": ("mmeval ls rules", "mmeval ls rules --plugin my_rules.py"),
    "ls runs": ("mmeval ls runs", "mmeval ls runs experiments/2024"),
    "ls resources": ("mmeval ls resources",),
    "ls schema": ("mmeval ls schema > run.schema.json",),
    "card": (
        "mmeval card cider_d",
        "mmeval card mmmu-pro@2025",
        "mmeval card mcq",
        "mmeval card my_metric --plugin my_metric.py",
    ),
    "fetch": (
        "mmeval fetch meteor-1.5-en",
        "mmeval fetch hf:openai/clip-vit-base-patch32",
        "mmeval fetch ru",
        "mmeval fetch ruwordnet",
        "mmeval fetch --verify",
    ),
}
# In lists of commands, a line that fits an 80-column terminal.
SHORT: dict[str, str] = {
    "run": "Ask a model, and score its answers.",
    "score": "Score answers, and store the run.",
    "import": "Import the scores of another harness's log.",
    "rescore": "Score a run under another configuration.",
    "compare": "Compare runs over the same samples.",
    "table": "Show models x tasks, with intervals.",
    "power": "Show how many samples a comparison needs.",
    "report": "Write runs as one HTML file.",
    "export": "Write runs in the formats of other programs.",
    "judge": "Ask models to compare answers.",
    "judge pairs": "Let a judge compare two runs.",
    "judge rank": "Let a judge compare many runs, and rate them.",
    "judge ratings": "Rate the systems that runs compare.",
    "judge plan": "Choose the samples that humans should label.",
    "judge calibrate": "Correct a judge's scores by human labels.",
    "meta": "Measure how well metrics agree with people.",
    "agree": "Measure how well annotators agree.",
    "clarity": "Score labels for the CLARITY contest.",
    "dialogue": "Score a submission to the dialogue contest.",
    "dialogue ppl": "Compute the perplexity of every answer.",
    "dialogue generate": "Ask a model for every reply.",
    "dialogue run": "Ask a model for every reply, and score them.",
    "leaderboard": "Rank submissions against one gold file.",
    "view": "Browse runs in the browser.",
    "lint": "Warn about problems in the answers of a run.",
    "validate": "Check an input without scoring it.",
    "verify": "Compare the files of runs with their checksums.",
    "reproduce": "Compute published scores again from published answers.",
    "demo": "Score and compare two imaginary systems.",
    "crosswalk": "Score the same answers under every rule of a metric.",
    "card": "Explain a metric: formula, limits, options.",
    "fetch": "Fetch resources and models by name.",
    "ls": "List metrics, tasks, rules, models, formats, runs …",
    "ls benchmarks": "List the benchmarks that have names.",
    "ls formats": "List the logs and datasets that are read.",
    "ls judges": "List the judges that come with the package.",
    "ls metrics": "List the metrics.",
    "ls models": "List the providers of models.",
    "ls schema": "Print the JSON Schema of the configuration.",
    "ls resources": "List what `mmeval fetch` can fetch.",
}


def add_examples(command: click.Command, path: str = "", *, below: bool = True) -> None:
    """Add examples and short lines to a command and, by default, to the commands below it."""
    if path in EXAMPLES:
        command.epilog = "\b\nExamples:\n" + "\n".join(f"  {example}" for example in EXAMPLES[path])
    command.short_help = SHORT.get(path, command.short_help)
    if isinstance(command, LayeredCommand):
        command.path = path
    if below and isinstance(command, click.Group):
        for name, inner in command.commands.items():
            add_examples(inner, f"{path} {name}".strip())
