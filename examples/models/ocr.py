"""PP-OCR as a model, with its weights in the package rapidocr. It reads the text in the first image of a question.

mmeval run signs.jsonl --model python:examples/models/ocr.py --metrics cer,anls
"""

from threading import Lock

from rapidocr import RapidOCR

from multimodal_eval import Request

ENGINE = RapidOCR(params={"Global.log_level": "critical"})
LOCK = Lock()  # one image at a time: the engine keeps the state of a call


def model(request: Request) -> str:
    """The lines of text, from top to bottom."""
    content = next(media.content for media in request.media if media.kind == "image")
    with LOCK:
        lines = ENGINE(content).txts
    return " ".join(lines or ())
