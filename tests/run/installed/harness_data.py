# ruff: noqa: E501 - data, one document per line
"""Small data of our own in the schema of tasks of lm-eval and lmms-eval, with answers, as files.

Runs in the Python of a harness: python harness_data.py PACKAGE FOLDER. Writes TASK.jsonl or TASK.parquet, and
TASK.json with the answer of every document: a text, or the log-probabilities of the first token.
"""

import json
import sys
from pathlib import Path

LETTERS = [{"A": -0.2, "B": -2.0, "C": -3.0}, {" B": -0.5, "C": -1.2, "A": -4.0, "The": -5.0}, {"C": -0.1, "D": -3.5}]
YES_NO = [{"yes": -0.1, "no": -2.4}, {" no": -0.3, " yes": -1.5}, {"no": -0.6, "yes": -0.9}, {"yes": -0.2, "maybe": -2}]


def spans(*texts):
    return {
        "number": "",
        "date": {"day": "", "month": "", "year": ""},
        "spans": list(texts),
        "worker_id": "",
        "hit_id": "",
    }


def number(text):
    return {**spans(), "number": text}


def several(*answers):
    return {key: [answer[key] for answer in answers] for key in answers[0]} if answers else {key: [] for key in spans()}


def mmlu(question, answer):
    return {"question": question, "choices": ["1", "2", "3", "4"], "answer": answer, "subject": "abstract_algebra"}


def csqa(question, key):
    choices = {"label": list("ABCDE"), "text": ["bank", "library", "shop", "mall", "park"]}
    return {"question": question, "choices": choices, "answerKey": key, "id": question, "question_concept": "x"}


def sum_of(first, second):
    question = f"Tom has {first} apples and buys {second}. How many apples does he have?"
    return {"question": question, "answer": f"He has {first}+{second}={first + second}.\n#### {first + second}"}


LM_EVAL = {
    "gsm8k": (
        [sum_of(2, 3), sum_of(4, 5), sum_of(7, 8), sum_of(10, 1), sum_of(6, 6), sum_of(9, 4)],
        ["#### 5", "It is 9.", "#### 16", "$11", "He has 12 apples", "I do not know"],
    ),
    "nq_open": (
        [{"question": "who wrote hamlet", "answer": ["William Shakespeare"]},
         {"question": "capital of france", "answer": ["Paris", "the city of Paris"]},
         {"question": "largest ocean", "answer": ["Pacific Ocean"]}],
        [" William Shakespeare", "  the city of paris", "Atlantic"],
    ),
    "triviaqa": (
        [{"question": "Who painted it", "answer": {"aliases": ["Monet", "Claude Monet"], "value": "Monet"}},
         {"question": "Which river", "answer": {"aliases": ["Nile", "River Nile"], "value": "Nile"}},
         {"question": "Which year", "answer": {"aliases": ["1969", "in 1969"], "value": "1969"}}],
        ["claude monet", "The Amazon", " 1969"],
    ),
    "drop": (
        [{"query_id": "1", "section_id": "s", "passage": "They won 3 games.", "question": "How many?",
          "answer": number("3"), "validated_answers": several(number("3"), number("4"))},
         {"query_id": "2", "section_id": "s", "passage": "Ann and Bo ran.", "question": "Who ran?",
          "answer": spans("Ann", "Bo"), "validated_answers": several(spans("Bo"))},
         {"query_id": "3", "section_id": "s", "passage": "It rained in May.", "question": "When?",
          "answer": spans("in May"), "validated_answers": several(spans("May"))}],
        ["4", "Bo Derek", "june"],
    ),
    "truthfulqa_gen": (
        [{"type": "Adversarial", "category": "x", "question": "What happens?", "best_answer": "Nothing happens",
          "correct_answers": ["Nothing happens", "There is no effect"], "incorrect_answers": ["You get ill"], "source": "s"},
         {"type": "Adversarial", "category": "x", "question": "Who was first?", "best_answer": "Nobody knows",
          "correct_answers": ["Nobody knows"], "incorrect_answers": ["Bob was first", "Al was"], "source": "s"},
         {"type": "Adversarial", "category": "x", "question": "Where is it?", "best_answer": "In the north",
          "correct_answers": ["In the north of it"], "incorrect_answers": ["In the south"], "source": "s"}],
        ["Nothing at all happens.", "Bob was the first", "It is in the north"],
    ),
    "boolq-seq2seq": (
        [{"passage": "Cats are animals.", "question": "is a cat an animal", "label": 1, "idx": 0},
         {"passage": "Stones are not food.", "question": "are stones food", "label": 0, "idx": 1},
         {"passage": "Rain is wet.", "question": "is rain wet", "label": 1, "idx": 2}],
        [" yes", " Yes", "no"],
    ),
    "cycle_letters": (
        [{"context": "Unscramble: tca", "completion": "cat"}, {"context": "Unscramble: ogd", "completion": "dog"},
         {"context": "Unscramble: rdib", "completion": "bird"}],
        ["cat", "god", "bird"],
    ),
    "commonsense_qa": ([csqa("Where is money?", "A"), csqa("Where are books?", "C"), csqa("Where are trees?", "C")], LETTERS),
    "mmlu_abstract_algebra": ([mmlu("1+0?", 0), mmlu("1+1?", 1), mmlu("1+3?", 3)], LETTERS),
    "sst2": (
        [{"sentence": "a fine film", "label": 1, "idx": 0}, {"sentence": "a bore", "label": 0, "idx": 1},
         {"sentence": "a delight", "label": 1, "idx": 2}],
        [{"positive": -0.3, "negative": -1.9}, {"negative": -0.2}, {"negative": -0.5, " positive": -0.9, "Positive": -3}],
    ),
    "cola": ([{"sentence": f"This is sentence {n}.", "label": label, "idx": n} for n, label in enumerate([1, 0, 1, 1])], YES_NO),
    "boolq": (
        [{"passage": "p", "question": f"q{n}", "label": label, "idx": n} for n, label in enumerate([1, 0, 1, 0])], YES_NO,
    ),
}  # fmt: skip


def image_of(colour):
    from PIL import Image

    return Image.new("RGB", (32, 24), colour)


def with_images(rows):
    colours = ("red", "green", "blue", "white", "black", "yellow")
    return [{**row, "image": image_of(colours[place % 6])} for place, row in enumerate(rows)]


def mme(question_id, category, answer):
    return {"question_id": question_id, "category": category, "question": f"Is it so? {answer}", "answer": answer}


def pope(place, answer):
    return {
        "id": str(place),
        "question_id": str(place),
        "question": "Is there a cat?",
        "answer": answer,
        "image_source": "x",
        "category": "adversarial",
    }


def docvqa(place, *answers):
    return {
        "questionId": str(place),
        "question": "What is the total?",
        "question_types": ["form"],
        "docId": place,
        "ucsf_document_id": "x",
        "ucsf_document_page_no": "1",
        "answers": list(answers),
        "data_split": "val",
    }


def star(place, category, fine, answer):
    return {
        "index": place,
        "question": "Which? Options: A: a, B: b",
        "answer": answer,
        "category": category,
        "l2_category": fine,
        "meta_info": {"source": "x", "split": "val", "image_path": "x"},
    }


def text_vqa(place, *answers):
    return {
        "image_id": str(place),
        "question_id": place,
        "question": "what does it say",
        "question_tokens": ["what"],
        "image_width": 32,
        "image_height": 24,
        "flickr_original_url": "",
        "flickr_300k_url": "",
        "answers": list(answers),
        "image_classes": ["x"],
        "set_name": "val",
        "ocr_tokens": ["stop"],
    }


def mmmu(place, answer, kind="multiple-choice"):
    empty = dict.fromkeys([f"image_{number}" for number in range(2, 8)])
    return {
        "id": f"validation_Art_{place}",
        "question": "What is in <image 1>?",
        "options": "['a cat', 'a dog']",
        "explanation": "",
        "img_type": "['Photo']",
        "answer": answer,
        "topic_difficulty": "Easy",
        "question_type": kind,
        "subfield": "Art",
        "image_1": image_of("red"),
        **empty,
    }


def lmms_tasks():
    return {
        "mme": (
            with_images([mme("a.jpg", "existence", "Yes"), mme("a.jpg", "existence", "No"), mme("b.jpg", "count", "Yes"),
                         mme("b.jpg", "count", "No"), mme("c.jpg", "code_reasoning", "Yes"), mme("c.jpg", "code_reasoning", "No")]),
            ["Yes", "no.", "Yes", "yes", "n", "No, it is not"],
        ),
        "chartqa": (
            with_images([{"type": "human_test", "question": "How many?", "answer": "10"},
                         {"type": "human_test", "question": "Which?", "answer": "Spain"},
                         {"type": "augmented_test", "question": "Share?", "answer": "25%"}]),
            ["10.4", "spain", "0.2"],
        ),
        "ocrbench": (
            with_images([{"dataset": "IIIT5K", "question": "what is written?", "question_type": "Regular Text Recognition",
                          "answer": ["STOP"]},
                         {"dataset": "HME100k", "question": "formula?",
                          "question_type": "Handwritten Mathematical Expression Recognition", "answer": ["a + b"]},
                         {"dataset": "FUNSD", "question": "key?", "question_type": "Key Information Extraction",
                          "answer": ["12 May"]}]),
            ["It says stop.", "a+b", "June"],
        ),
        "realworldqa": (
            with_images([{"question": "Which? A. x B. y", "answer": "B"}, {"question": "How many?", "answer": "3"},
                         {"question": "Is it? A. a B. b C. c", "answer": "C"}]),
            ["B. y", "3.", "The answer is A"],
        ),
        "mmstar": (
            with_images([star(0, "coarse perception", "image emotion", "A"), star(1, "math", "geometry", "B"),
                         star(2, "math", "statistical reasoning", "C"),
                         star(3, "logical reasoning", "diagram reasoning", "D")]),
            ["A", "(B)", "D", "D. yes"],
        ),
        "pope": (
            with_images([pope(0, "yes"), pope(1, "no"), pope(2, "yes"), pope(3, "no"), pope(4, "yes")]),
            ["Yes", "no", "no", "yes", "yes"],
        ),
        "docvqa_val": (with_images([docvqa(1, "$ 12.50", "12.50"), docvqa(2, "Ann Lee"), docvqa(3, "1990")]),
                       ["12.5", "ann leo", "2001"]),
        "textvqa_val": (
            with_images([text_vqa(1, *["stop"] * 6, *["stop sign"] * 4), text_vqa(2, *["nokia"] * 10),
                         text_vqa(3, *["one"] * 2, *["two"] * 8)]),
            ["stop sign", "Nokia", "1"],
        ),
        "ai2d": (
            with_images([{"question": "Which?", "options": ["sun", "moon", "star"], "answer": "1"},
                         {"question": "What?", "options": ["leaf", "root"], "answer": "0"},
                         {"question": "Where?", "options": ["up", "down"], "answer": "1"}]),
            ["B", "leaf", "A. up"],
        ),
        "scienceqa_img": (
            with_images([{"question": "Which?", "choices": ["a", "b"], "answer": 1, "hint": "Look.", "task": "t", "grade": "1",
                          "subject": "s", "topic": "t", "category": "c", "skill": "k", "lecture": "", "solution": ""},
                         {"question": "What?", "choices": ["c", "d", "e"], "answer": 2, "hint": "", "task": "t", "grade": "2",
                          "subject": "s", "topic": "t", "category": "c", "skill": "k", "lecture": "", "solution": ""}]),
            ["B. b", "the third"],
        ),
        "mmmu_val": ([mmmu(1, "A"), mmmu(2, "B"), mmmu(3, "3", "open")], ["A", "The answer is (A)", "about 3"]),
    }  # fmt: skip


def main(package, folder):
    tasks = LM_EVAL if package == "lm-eval" else lmms_tasks()
    for name, (rows, answers) in tasks.items():
        if package == "lm-eval":
            lines = "".join(json.dumps(row) + "\n" for row in rows)
            Path(folder, f"{name}.jsonl").write_text(lines, "utf-8")
        else:
            from datasets import Dataset, Image

            data = Dataset.from_list(rows)
            for column, feature in data.features.items():
                if column.startswith("image_") and not isinstance(feature, Image) and column[6:].isdigit():
                    data = data.cast_column(column, Image())
            data.to_parquet(str(Path(folder, f"{name}.parquet")))
        Path(folder, f"{name}.json").write_text(json.dumps(answers), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
