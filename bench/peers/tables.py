"""The tables of docs/who-measures-what.md, from the recorded figures."""

from __future__ import annotations

from typing import Any

from .our_captions import METRICS

EQUAL = 1e-9  # relative; the peers round at different places
MMEVAL = "**mmeval**"
SETTINGS = {
    "gpt-4o_standard10_direct": "10 options, direct",
    "gpt-4o_standard10_cot": "10 options, reasoning",
    "gpt-4o_vision_direct": "vision, direct",
    "gpt-4o_vision_cot": "vision, reasoning",
}
FAMILY_NAMES = {"anls": "ANLS", "relaxed": "relaxed accuracy", "vqa": "VQA accuracy", "yes_no": "yes or no (POPE)"}


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def percent(value: object) -> str:
    return f"{100 * value:.2f}" if isinstance(value, float | int) else "failed" if isinstance(value, dict) else ""


def captions_table(results: dict[str, Any]) -> str:
    captions = results["captions"]
    header = ["who", "version", *METRICS]
    rows = [[MMEVAL, results["mmeval"], *(percent(captions["mmeval"].get(name)) for name in METRICS)]]
    for row in captions["rows"]:
        if "scores" in row and any(isinstance(value, float) for value in row["scores"].values()):
            rows.append([row["name"], row["version"], *(percent(row["scores"].get(name)) for name in METRICS)])
    return table(header, rows)


def reasons_table(results: dict[str, Any]) -> str:
    rows = []
    for row in results["captions"]["rows"]:
        if row.get("differences"):
            rows.append([row["name"], row["runs"], row["changed"], _agreement(row["differences"]), row["why"]])
    return table(["who", "what was run", "changed in mmeval", "mmeval then gives", "why"], rows)


def _agreement(differences: dict[str, float]) -> str:
    unequal = {name: value for name, value in differences.items() if value > EQUAL}
    largest = max((value for value in differences.values() if value <= EQUAL), default=None)
    equal = None if largest is None else "the same figures" if largest == 0 else f"the same within {largest:.0e}"
    rest = ", ".join(f"{name} differs by {100 * value:.2g} %" for name, value in unequal.items())
    return "; ".join(text for text in (equal, rest) if text)


def failures_list(results: dict[str, Any]) -> str:
    lines = []
    for row in results["captions"]["rows"]:
        failed = {name: value for name, value in row.get("scores", {}).items() if isinstance(value, dict)}
        reasons = sorted({value["error"] for value in failed.values()} | ({row["error"]} if "error" in row else set()))
        for reason in reasons:
            names = [name for name, value in failed.items() if value["error"] == reason]
            lines.append(f"- {row['name']} {row['version']}{' (' + ', '.join(names) + ')' if names else ''}: {reason}")
    return "\n".join(lines) or "- none"


def choice_table(results: dict[str, Any]) -> str:
    header = ["rule", "package", "accuracy", *SETTINGS.values(), "no answer", "drawn", "compared with ours"]
    rows = []
    for row in results["answers"]["choice"]:
        settings = row["settings"]
        rows.append(
            [
                f"`{row['rule']}`",
                row["package"],
                percent(row["score"]),
                *(percent(settings[setting]) for setting in SETTINGS),
                f"{row['unread']:,}",
                f"{row['drawn']:,}",
                _compared(row),
            ]
        )
    return table(header, rows)


def _compared(row: dict[str, Any]) -> str:
    if "equal" not in row:
        return ""
    share = f"{row['equal']:,} of {row['cases']:,}"
    if row["nearest"] == row["rule"]:
        return f"{share} equal"
    text = f"{share} equal to `{row['nearest']}`, the nearest"
    if cut := row.get("cut"):
        text += f"; {cut['equal']:,} if it sees the first {cut['options']} options only"
    return text


def short_table(results: dict[str, Any]) -> str:
    rows = []
    for family, name in FAMILY_NAMES.items():
        for row in results["answers"][family]:
            unread = f"{row['unread']:,}" if family == "yes_no" else ""
            rows.append([name, f"`{row['rule']}`", row["package"], percent(row["score"]), unread, _compared(row)])
    return table(["kind", "rule", "package", "mean score", "no answer", "compared with ours"], rows)


def sections(results: dict[str, Any]) -> dict[str, str]:
    """The generated parts of the page by the name of their marker."""
    return {
        "captions": captions_table(results),
        "reasons": reasons_table(results),
        "failures": failures_list(results),
        "choice": choice_table(results),
        "short": short_table(results),
        "made": _made(results),
    }


def _made(results: dict[str, Any]) -> str:
    packages = sorted({f"{name} {version}" for name, version in results["versions"].items()})
    return (
        f"Measured on {results['date']} with Python {results['python']} and {results['java']}: {', '.join(packages)}."
    )


def updated(page: str, results: dict[str, Any]) -> str:
    """The page with the current tables between its markers."""
    for name, content in sections(results).items():
        start, end = f"<!-- who-measures-what: {name} -->", f"<!-- end: {name} -->"
        before, _, rest = page.partition(start)
        _, marker, after = rest.partition(end)
        if not marker:
            raise ValueError(f"the page must have the markers {start!r} and {end!r}. One of them is missing.")
        page = f"{before}{start}\n\n{content}\n\n{end}{after}"
    return page
