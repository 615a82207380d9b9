"""Multi-annotator scores row by row and class by class, with strings, sets and counts instead of arrays."""

from __future__ import annotations

from collections import Counter


def golds(predicted, annotators, labels, charge="first"):
    """The labels that a row counts for; empty if it is skipped."""
    gold_set = {label for label in annotators if label in labels}
    if predicted in gold_set:
        return [predicted]
    return sorted(gold_set) if charge == "all" else sorted(gold_set)[:1]


def majority(annotators, labels):
    votes = Counter(label for label in annotators if label in labels)
    most = max(votes.values(), default=0)
    return sorted(label for label, count in votes.items() if count == most)[0] if most else ""


def soft(predicted, annotators, labels):
    """The share of valid annotations with the predicted label; None if there are none."""
    valid = [label for label in annotators if label in labels]
    return valid.count(predicted) / len(valid) if valid else None


def per_class(rows, labels):
    """label -> (precision, recall, f1, support) of rows (predicted, golds)."""
    table = {}
    for label in labels:
        true_positives = sum(predicted == label and label in gold for predicted, gold in rows)
        false_positives = sum(predicted == label and label not in gold for predicted, gold in rows)
        false_negatives = sum(predicted != label and label in gold for predicted, gold in rows)
        table[label] = (
            _share(true_positives, true_positives + false_positives),
            _share(true_positives, true_positives + false_negatives),
            _share(2 * true_positives, 2 * true_positives + false_positives + false_negatives),
            true_positives + false_negatives,
        )
    return table


def macro_f1(rows, labels):
    return sum(f1 for _, _, f1, _ in per_class(rows, labels).values()) / len(labels)


def influence(rows, labels):
    """(n/K) sum_k [ 2 h_ik - F_k (g_ik + p_ik) ] / D_k of each row."""
    f1 = {label: scores[2] for label, scores in per_class(rows, labels).items()}
    sizes = {
        label: sum(predicted == label for predicted, _ in rows) + sum(label in gold for _, gold in rows)
        for label in labels
    }
    return [
        len(rows)
        / len(labels)
        * sum(
            (2 * (predicted == label and label in gold) - f1[label] * ((label in gold) + (predicted == label)))
            / sizes[label]
            for label in labels
            if sizes[label]
        )
        for predicted, gold in rows
    ]


def accuracy(rows):
    return sum(predicted in gold for predicted, gold in rows) / len(rows)


def any_match_rows(predicted, annotators, labels, charge="first"):
    """(predicted, golds) of the rows that are not skipped."""
    rows = [(label, golds(label, row, labels, charge)) for label, row in zip(predicted, annotators, strict=True)]
    return [row for row in rows if row[1]]


def ceiling(annotators, labels, charge="first"):
    """Mean macro F1 of every annotator (a column) against the others."""
    scores = []
    for column in range(len(annotators[0])):
        valid = [row for row in annotators if row[column] in labels]
        predicted, others = [row[column] for row in valid], [row[:column] + row[column + 1 :] for row in valid]
        rows = any_match_rows(predicted, others, labels, charge)
        if rows:
            scores.append(macro_f1(rows, labels))
    return sum(scores) / len(scores) if scores else None


def _share(over, under):
    return over / under if under else 0.0
