"""The other side of `process.py`: runs in the Python that has lm-eval or lmms-eval, and calls the functions of a task.

It imports nothing of this package. Requests and replies are lines of JSON; what the package prints goes to stderr.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

PACKAGES = {"lm-eval": "lm_eval", "lmms-eval": "lmms_eval"}
OLDEST = {"lm-eval": (0, 4, 3), "lmms-eval": (0, 5, 0)}
LONGEST_CHOICE = 16  # characters of a choice that may be one token
FEWSHOT_SEED = 1234  # as both harnesses set it

side: Any = import_module(f"{__package__}.child_content" if __package__ else "child_content")
RefusedError: Any = side.RefusedError


class Harness:
    """A task of a package, opened: its documents, requests, filters, functions and aggregates."""

    package: str

    def __init__(self, name: str, data: str | None) -> None:
        self.module = imported(self.package)
        self.version = metadata.version(self.package)
        if data is not None:
            redirect(Path(data))
        self.name = name
        self.task = self._opened(name)
        if getattr(self.task, "UNSAFE_CODE", False):
            raise RefusedError("unsupported", f"{name} runs code that the model writes")
        self.config = self.task.config

    def _opened(self, name: str) -> Any:
        index = self.index()
        if name not in index:
            raise RefusedError("unknown", json.dumps(similar(name, index)))
        if index[name] != "task":
            raise RefusedError("group", index[name])
        reason = self.unsupported(name)
        if reason:
            raise RefusedError("unsupported", reason)
        judge = side.judge_of(self.raw_config(name))
        if judge:
            raise RefusedError("judge", judge)
        try:
            return self.load(name)
        except Exception as error:
            lacks = side.lacking_data(error)
            if lacks:
                raise RefusedError("data", lacks) from error
            raise

    def index(self) -> dict[str, str]:
        """The names of all tasks, and what each is."""
        raise NotImplementedError

    def load(self, name: str) -> Any:
        """The task with its data."""
        raise NotImplementedError

    def raw_config(self, name: str) -> dict[str, Any]:
        """What the YAML of a task says, without calling a function of it."""
        raise NotImplementedError

    def unsupported(self, name: str) -> str | None:
        """Why a task cannot be run, by its YAML alone."""
        config = self.raw_config(name)
        kind = config.get("output_type") or "generate_until"
        if config.get("class") is not None:
            return None
        if kind not in self.kinds:
            return f"its output type is {kind}, and endpoints give no such output"
        if (config.get("repeats") or 1) != 1:
            return f"it scores {config['repeats']} answers to one question together"
        if config.get("unsafe_code"):
            return "it runs code that the model writes"
        return None

    def known(self, name: str) -> dict[str, Any]:
        """What the files of a task say about it."""
        config, reason = self.raw_config(name), self.unsupported(name)
        judge = None if reason else side.judge_of(config)
        return {
            "unsupported": reason,
            "judge": judge,
            "has_data": side.has_data(config),
            "data": str(config.get("dataset_path") or ""),
        }

    kinds: tuple[str, ...] = ()

    # What is asked.

    @property
    def kind(self) -> str:
        """The kind of its requests."""
        return str(self.task.OUTPUT_TYPE)

    @property
    def docs(self) -> Any:
        """The documents that are asked about."""
        return self.task.eval_docs

    @property
    def scored_docs(self) -> Any:
        """The documents as the functions that score get them."""
        return self.docs

    def prepare(self, folder: str) -> dict[str, Any]:
        """Write the samples, with their media, and say how they are asked and scored."""
        place = Path(folder)
        if (getattr(self.config, "repeats", 1) or 1) != 1:
            raise RefusedError("unsupported", f"it scores {self.config.repeats} answers to one question together")
        settings: list[dict[str, Any]] = []
        with (place / "samples.jsonl").open("w", encoding="utf-8", newline="\n") as file:
            for row, asked in self.rows(place):
                if asked not in settings:
                    settings.append(asked)
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
        if len(settings) != 1:
            raise RefusedError("unsupported", f"its documents have {len(settings)} different generation settings")
        return {**self.about(), "generation": settings[0]}

    def rows(self, place: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Every document as a sample, with the settings of its request."""
        raise NotImplementedError

    def sample(self, number: int, doc: Any, content: list[dict[str, Any]]) -> dict[str, Any]:
        """The sample of a document. `content` is the message of the user."""
        row: dict[str, Any] = {"id": str(number), "messages": [{"role": "user", "content": content}]}
        if isinstance(doc.get("question"), str):
            row["question"] = doc["question"]
        row["references"] = self.references(doc)
        row["doc_digest"] = side.digest_of(doc)
        row.update({f"doc.{key}": value for key, value in doc.items() if side.is_plain(value)})
        return row

    def references(self, doc: Any) -> list[str] | None:
        """The targets as texts."""
        try:
            target = self.task.doc_to_target(doc)
            if isinstance(target, int) and self.config.doc_to_choice is not None:
                target = self.task.doc_to_choice(doc)[target]
        except Exception:  # noqa: BLE001 - some tasks have no target
            return None
        targets = target if isinstance(target, list | tuple) else [target]
        return [str(each) for each in targets if each is not None and str(each).strip()] or None

    def about(self) -> dict[str, Any]:
        """The package, the version of the task, and its scores with the functions that compute them."""
        better, aggregation = self.task.higher_is_better(), self.task.aggregation()
        scores = [
            {
                "metric": metric,
                "filter": name,
                "higher": better.get(metric, True) is not False,
                "aggregation": side.name_of(function),
                "function": self.function_of(metric),
            }
            for metric, function in aggregation.items()
            if "submission" not in metric  # a file for the server of a contest
            for name in self.filters
        ]
        stated = [each for each in side.as_list(self.config.metadata) if isinstance(each, dict) and "version" in each]
        version = stated[0]["version"] if stated else None
        filters = {each.name: [side.name_of(step) for step in each.filters] for each in self.task._filters}
        return {
            "kind": self.kind,
            "version": self.version,
            "task_version": version,
            "scores": scores,
            "filters": filters,
        }

    @property
    def filters(self) -> list[str]:
        """The names of its filters."""
        return [each.name for each in self.task._filters]

    def function_of(self, metric: str) -> str:
        """The function that gives the value of a sample."""
        if callable(self.config.process_results):
            return str(side.name_of(self.config.process_results))
        function = self.task._metric_fn_list.get(metric)
        return str(side.name_of(type(self.task).process_results if function is None else function))

    # How answers are scored.

    def raw(self, docs: Sequence[tuple[int, Any]]) -> dict[tuple[str, str], dict[int, Any]]:
        """The values of documents as the functions of the task return them: (metric, filter) -> document -> value."""
        instances = {number: self.instances(number, reply) for number, reply in docs}
        self.task._instances = [each for group in instances.values() for each in group]
        self.apply_filters(list(instances))
        values: dict[tuple[str, str], dict[int, Any]] = {}
        for name in self.filters:
            for number, group in instances.items():
                results = [each.filtered_resps[name] for each in group]
                for metric, value in self.results(number, results).items():
                    values.setdefault((metric, name), {})[number] = value
        return values

    def instances(self, number: int, reply: Any) -> list[Any]:
        """The requests of a document, with the reply to them."""
        built = self.requests(number)
        replies = [reply] if isinstance(reply, str) else [side.likelihood(each) for each in reply]
        for instance, each in zip(built, replies, strict=True):
            instance.resps.append(each)
        return sorted(built, key=lambda instance: instance.idx)

    def requests(self, number: int) -> list[Any]:
        """The requests of a document, without their context: only the functions that score see them."""
        raise NotImplementedError

    def apply_filters(self, numbers: list[int]) -> None:
        """Take from the replies what is scored."""
        self.task.apply_filters()

    def results(self, number: int, replies: list[Any]) -> dict[str, Any]:
        """What the task makes of the replies to a document."""
        results: dict[str, Any] = self.task.process_results(self.scored_docs[number], replies)
        return results

    def score(self, docs: list[Any]) -> list[Any]:
        """For every document: a value by "metric,filter", or why there is none."""
        values, faults = self.values_of(docs)
        return [
            {"error": faults[int(doc[0])]} if int(doc[0]) in faults else self.in_numbers(int(doc[0]), values)
            for doc in docs
        ]

    def values_of(self, docs: list[Any]) -> tuple[dict[tuple[str, str], dict[int, Any]], dict[int, str]]:
        """What the functions return, and why they fail for some documents."""
        faults = {int(doc[0]): fault for doc in docs if (fault := self.other_document(*doc)) is not None}
        pairs = [(int(number), reply) for number, reply, _ in docs if int(number) not in faults]
        try:
            return (self.raw(pairs) if pairs else {}), faults
        except Exception:  # noqa: BLE001 - then one by one, so that the failure belongs to one document
            values: dict[tuple[str, str], dict[int, Any]] = {}
            for pair in pairs:
                try:
                    for key, by_doc in self.raw([pair]).items():
                        values.setdefault(key, {}).update(by_doc)
                except Exception as error:  # noqa: BLE001 - functions of others raise anything
                    faults[pair[0]] = side.explained(error)
            return values, faults

    def other_document(self, number: object, _: object, digest: str | None) -> str | None:
        """Why the document is not the one that was asked about."""
        if not str(number).isdecimal() or int(str(number)) >= len(self.scored_docs):
            return f"the task has no document {number}"
        if digest is not None and side.digest_of(self.scored_docs[int(str(number))]) != digest:
            return f"the document {number} of the task is another one than was asked about: its data have changed"
        return None

    def in_numbers(self, number: int, values: dict[tuple[str, str], dict[int, Any]]) -> dict[str, Any]:
        """The values of a document as numbers. Any other value is aggregated alone."""
        scored: dict[str, Any] = {}
        for (metric, name), by_doc in values.items():
            key = f"{metric},{name}"
            if number not in by_doc:
                continue
            value = side.as_number(self.one_value(by_doc[number]))
            try:
                scored[key] = side.as_number(self.aggregated(metric, [by_doc[number]])) if value is None else value
            except Exception as error:  # noqa: BLE001
                scored[key] = {"error": side.explained(error)}
            if scored[key] is None:
                kind = type(by_doc[number]).__name__
                scored[key] = {"error": f"its value is of the type {kind}, and not a number for one sample"}
        return {"values": scored}

    def one_value(self, value: Any) -> Any:
        """The value of a sample. If it is an object, the task may say which of its keys is the score."""
        key = getattr(self.config, "score_key", None)
        return value[key] if key is not None and isinstance(value, dict) and key in value else value

    def aggregated(self, metric: str, values: list[Any]) -> Any:
        """What the aggregate of the task makes of values."""
        function = self.task.aggregation().get(metric)
        if function is None:
            return sum(map(float, values)) / len(values)
        if "args" in side.parameters_of(function):
            return function(values, args=self.task.args)
        return function(values)

    def aggregate(self, docs: list[Any]) -> dict[str, Any]:
        """The aggregates over documents, computed by the functions of the task."""
        values, _ = self.values_of(sorted(docs, key=lambda doc: int(doc[0])))
        aggregates: dict[str, Any] = {}
        for (metric, name), by_doc in values.items():
            try:
                figure = self.aggregated(metric, list(by_doc.values()))
            except Exception as error:  # noqa: BLE001
                aggregates[f"{metric},{name}"] = {"error": side.explained(error)}
                continue
            number = side.as_number(figure)
            aggregates[f"{metric},{name}"] = (
                {"error": f"not a number: {str(figure)[:200]}"}
                if number is None
                else {"value": number, "samples": len(by_doc)}
            )
        return aggregates


class LmEval(Harness):
    """A task of lm-eval."""

    package = "lm-eval"
    kinds = ("generate_until", "multiple_choice")

    def index(self) -> dict[str, str]:
        """The names of all tasks, tags and groups."""
        manager = self._manager()
        tasks = dict.fromkeys(manager.all_subtasks, "task")
        return {**dict.fromkeys(manager.all_tags, "tag"), **dict.fromkeys(manager.all_groups, "group"), **tasks}

    def _manager(self) -> Any:
        if not hasattr(self, "_kept"):
            self._kept = import_module("lm_eval.tasks").TaskManager()
        return self._kept

    def raw_config(self, name: str) -> dict[str, Any]:
        """What the YAML of a task says."""
        entry = self._manager().task_index[name]
        path = entry.get("yaml_path") if isinstance(entry, dict) else getattr(entry, "yaml_path", None)
        config = None if isinstance(entry, dict) else getattr(entry, "cfg", None)
        return side.yaml_of(str(path)) if path and Path(str(path)).is_file() else dict(config or {})

    def load(self, name: str) -> Any:
        """The task with its data, set up as by the harness."""
        manager = self._manager()
        loaded = manager.load([name])["tasks"] if hasattr(manager, "load") else manager.load_task_or_group([name])
        task = loaded[name]
        if task.get_config("num_fewshot") is None:
            task.set_config(key="num_fewshot", value=0)
        task.set_fewshot_seed(seed=FEWSHOT_SEED)
        return task

    def rows(self, place: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Every document as a sample, with the settings of its request."""
        task = self.task
        task.build_all_requests(limit=None, rank=0, world_size=1)
        groups: dict[int, list[Any]] = {}
        for instance in task.instances:
            groups.setdefault(instance.doc_id, []).append(instance)
        docs = self.docs
        for number, group in groups.items():
            first, doc = group[0].args, docs[number]
            media = next((arg for arg in first[1:] if isinstance(arg, dict) and {"visual", "audio"} & arg.keys()), {})
            visuals = [*side.as_list(media.get("visual")), *side.as_list(media.get("audio"))]
            parts = side.with_marks(first[0], [side.part_of(each, place) for each in visuals])
            row = self.sample(number, doc, parts)
            if self.kind == "multiple_choice":
                row["choices"] = self.choices(group)
                yield row, {"max_tokens": 1, "temperature": 0, "top_logprobs": 20}
            else:
                yield row, side.parameters(first[1], longest=256, stops=True)

    def choices(self, group: list[Any]) -> list[str]:
        """The texts whose likelihoods are asked for, which must be those of single tokens."""
        texts = [str(instance.args[1]).strip() for instance in group]
        if len({instance.args[0] for instance in group}) > 1:
            raise RefusedError("unsupported", "it compares the likelihoods of an ending after several contexts")
        if len(set(texts)) < len(texts) or not all(texts):
            raise RefusedError("unsupported", "it compares likelihoods of equal or empty texts")
        long = next((text for text in texts if len(text.split()) > 1 or len(text) > LONGEST_CHOICE), None)
        if long is not None:
            raise RefusedError("likelihoods", long[:80])
        return texts

    def requests(self, number: int) -> list[Any]:
        """The requests of a document, without their context."""
        described = (self.config.task, number, 1)
        built = self.task.construct_requests(doc=self.docs[number], ctx="", metadata=described)
        return built if isinstance(built, list) else [built]


class LmmsEval(Harness):
    """A task of lmms-eval, asked by messages."""

    package = "lmms-eval"
    kinds = ("generate_until",)

    def index(self) -> dict[str, str]:
        """The names of all tasks, tags and groups."""
        return {name: str(entry["type"]) for name, entry in self._manager().task_index.items()}

    def _manager(self) -> Any:
        if not hasattr(self, "_kept"):
            self._kept = import_module("lmms_eval.tasks").TaskManager("ERROR", model_name="openai")
        return self._kept

    def raw_config(self, name: str) -> dict[str, Any]:
        """What the YAML of a task says."""
        path = self._manager().task_index[name].get("yaml_path")
        return side.yaml_of(str(path)) if path and path != -1 else {}

    def load(self, name: str) -> Any:
        """The task with its data, set up as by the harness."""
        api = import_module("lmms_eval.api.task")
        for method in ("download", "process_results"):  # a failure is not tried again five times
            plain = getattr(getattr(api.ConfigurableTask, method), "__wrapped__", None)
            if plain is not None:
                setattr(api.ConfigurableTask, method, plain)
        task = self._manager().load_task_or_group([name], "chat")[name]
        task = task[1] if isinstance(task, tuple) else task
        if task.get_config("num_fewshot") is None:
            task.set_config(key="num_fewshot", value=0)
        task.set_fewshot_seed(seed=FEWSHOT_SEED)
        from argparse import Namespace

        task.args = Namespace(output_path=str(Path.cwd()), model="mmeval", model_args="", tasks=name)
        evaluator = import_module("lmms_eval.evaluator")
        parse = getattr(evaluator, "parse_reasoning_tags_config", None)
        chosen = getattr(task.config, "reasoning_tags", None)
        self._tags = parse(cli_value=None, task_value=chosen) if parse else None
        self._without = getattr(evaluator, "strip_reasoning_tags", None)
        if getattr(task.config, "auto_strip_thinking", False) and self._tags is None:
            thinking = import_module("lmms_eval.filters.transformation").StripThinkingFilter
            for ensemble in task._filters:
                ensemble.filters.insert(0, thinking())
        return task

    @property
    def scored_docs(self) -> Any:
        """The documents as the functions that score get them."""
        return getattr(self.task, "eval_docs_no_media", None) or self.docs

    def rows(self, place: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Every document as a sample, with the settings of its request."""
        docs = self.docs
        for number in range(len(docs)):
            doc = docs[number]
            messages = self.task.doc_to_messages(doc)
            roles = [message["role"] for message in messages]
            if roles not in (["user"], ["system", "user"]):
                raise RefusedError("unsupported", f"its messages have the roles {', '.join(roles)}")
            contents = [side.written_parts(message, place) for message in messages]
            row = self.sample(number, doc, contents[-1])
            if len(messages) == 2:
                row["messages"].insert(0, {"role": "system", "content": contents[0]})
            yield row, side.parameters(self.config.generation_kwargs or {}, longest=1024, stops=False)

    def requests(self, number: int) -> list[Any]:
        """The requests of a document, without their context."""
        described = {"task": self.config.task, "doc_id": number, "repeats": 1, "split": self._split}
        if isinstance(self.config.metadata, dict):
            described = {**self.config.metadata, **described}
        built = self.task.construct_requests(doc_id=number, ctx="", metadata=described)
        return built if isinstance(built, list) else [built]

    @property
    def _split(self) -> str:
        return str(self.config.test_split or self.config.validation_split)

    def apply_filters(self, numbers: list[int]) -> None:
        """Filters pair replies with documents by their order: they get those of the batch."""
        docs, task = self.task.task_docs, self.task
        if hasattr(docs, "select"):
            task.task_docs = docs.select(numbers)
        try:
            task.apply_filters()
        finally:
            task.task_docs = docs

    def results(self, number: int, replies: list[Any]) -> dict[str, Any]:
        """What the task makes of the replies to a document."""
        if self._tags is not None and self._without is not None:
            replies = [self._without(each, self._tags) if isinstance(each, str) else each for each in replies]
        return super().results(number, replies)


HARNESSES: dict[str, type[Harness]] = {"lm-eval": LmEval, "lmms-eval": LmmsEval}


# Installed packages and their data.


def imported(package: str) -> Any:
    """The package, if it is installed and neither too old nor of another kind."""
    try:
        version = metadata.version(package)
    except metadata.PackageNotFoundError:
        raise RefusedError("missing", sys.executable) from None
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    if numbers < OLDEST[package]:
        raise RefusedError("version", f"{version}, and {'.'.join(map(str, OLDEST[package]))} or later is needed")
    try:
        return import_module(PACKAGES[package])
    except ImportError as error:
        raise RefusedError("broken", f"{version} cannot be imported: {side.explained(error)}") from error


def redirect(place: Path) -> None:
    """Every dataset is the one at a place: a file, or a folder as `datasets.load_dataset` reads it."""
    datasets = import_module("datasets")
    original = datasets.load_dataset

    class AnySplit(datasets.DatasetDict):  # type: ignore[misc, name-defined]
        def __missing__(self, split: object) -> Any:
            return next(iter(self.values()))

        def copy(self) -> Any:
            return AnySplit(self)

    def load_dataset(path: object = None, name: str | None = None, *_: Any, split: str | None = None, **__: Any) -> Any:
        cache = {"cache_dir": str(Path.cwd() / "datasets")}
        if place.is_file():
            kind = {".jsonl": "json", ".tsv": "csv"}.get(place.suffix, place.suffix.removeprefix("."))
            more = {"delimiter": "\t"} if place.suffix == ".tsv" else {}
            dataset: Any = AnySplit(original(kind, data_files={"test": str(place)}, **more, **cache))
        elif (place / "dataset_dict.json").is_file():
            dataset = datasets.load_from_disk(str(place))
        else:
            inner = place / str(name) if name and (place / str(name)).is_dir() else place
            try:
                dataset = original(str(inner), name if (inner / "README.md").is_file() else None, **cache)
            except ValueError as error:
                if "BuilderConfig" not in str(error):
                    raise
                dataset = original(str(inner), **cache)
        return dataset if split is None else dataset[split]

    setattr(datasets, "load_dataset", load_dataset)  # noqa: B010 - a name of another module


def similar(name: str, index: dict[str, str]) -> list[str]:
    """The tasks with a name like this one."""
    from difflib import get_close_matches

    return get_close_matches(name, index, 4, 0.6)


# The conversation with the other side.


def listed(package: str) -> list[dict[str, Any]]:
    """Every task, and what is known about it by its files alone."""
    harness = HARNESSES[package].__new__(HARNESSES[package])
    imported(package)
    names = [name for name, kind in sorted(harness.index().items()) if kind == "task"]
    return [{"task": name, **harness.known(name)} for name in names]


def main() -> None:
    """Answer requests until the other side closes."""
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    os.dup2(2, 1)
    opened: Harness | None = None
    for line in sys.stdin:
        request = json.loads(line)
        operation = request.pop("do")
        try:
            with contextlib.redirect_stdout(sys.stderr):
                if operation == "list":
                    reply: Any = listed(request["package"])
                elif operation == "open":
                    opened = HARNESSES[request["package"]](request["task"], request["data"])
                    reply = opened.about()
                else:
                    reply = getattr(opened, operation)(**request)
            written = {"reply": reply}
        except RefusedError as refused:
            written = {"refused": refused.kind, "message": str(refused)}
        except Exception as error:  # noqa: BLE001 - of code that somebody else wrote
            traceback.print_exc()
            written = {"refused": "raised", "message": side.explained(error)}
        channel.write(json.dumps(written) + "\n")
        channel.flush()


if __name__ == "__main__":
    main()
