"""The form for the tags and the note of a run."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from multimodal_eval.data.labels.append_file import NotSavedError
from multimodal_eval.report.viewer.labelling.access import Access, see_other
from multimodal_eval.report.viewer.labelling.forms import checked_text
from multimodal_eval.report.viewer.labelling.records import now
from multimodal_eval.report.viewer.labelling.tokens import cookie
from multimodal_eval.report.viewer.run_notes import LONGEST_NOTE, LONGEST_TAG, MOST_TAGS, RunNote, RunNotes

__all__ = ["NotesPages"]

_LONGEST_TAGS = MOST_TAGS * (LONGEST_TAG + 2)


@dataclass(frozen=True)
class NotesPages:
    """The request handlers."""

    notes: RunNotes
    access: Access
    annotator: str | None

    def routes(self) -> list[Route]:
        """All addresses below /notes."""
        return [
            Route("/notes/{name:path}", self.edit, methods=["GET"]),
            Route("/notes/{name:path}", self.save, methods=["POST"]),
        ]

    def edit(self, request: Request) -> Response:
        """The form."""
        name = self._name(request)
        return self._form(request, name, self.notes.of(name))

    async def save(self, request: Request) -> Response:
        """Append the tags and the note, then show the run."""
        fields = await self.access.form(request, "tags", "note", "version")
        return await run_in_threadpool(self._save, request, fields)

    def _save(self, request: Request, fields: dict[str, str]) -> Response:
        name = self._name(request)
        stored = self.notes.of(name)
        try:
            note = _note(fields, self.annotator or cookie(request, "annotator"))
        except HTTPException as fault:  # the text stays in the form
            typed = RunNote(tags=(fields.get("tags", ""),), note=fields.get("note", ""))
            return self._form(request, name, typed, str(fault.detail), 400, stored.version)
        if fields.get("version") != stored.version:
            message = (
                "somebody has changed them meanwhile. What is stored is shown below the form; save again to replace it"
            )
            return self._form(request, name, note, message, 409, stored.version, stored)
        if (note.tags, note.note) != (stored.tags, stored.note):
            try:
                self.notes.write(name, note)
            except NotSavedError as fault:
                return self._form(request, name, note, str(fault), 507, stored.version)
        return see_other(f"/run/{quote(name, safe='/')}")

    def _form(
        self,
        request: Request,
        name: str,
        note: RunNote,
        problem: str | None = None,
        status: int = 200,
        version: str | None = None,
        stored: RunNote | None = None,
    ) -> Response:
        return self.access.page(
            request,
            "notes.html",
            status,
            name=name,
            note=note,
            problem=problem,
            version=version or note.version,
            stored=stored,
            longest_tags=_LONGEST_TAGS,
            longest_note=LONGEST_NOTE,
        )

    def _name(self, request: Request) -> str:
        """The name of a run that exists."""
        return self.notes.folder.open(request.path_params["name"]).name


def _note(fields: dict[str, str], by: str) -> RunNote:
    text = checked_text(fields, "tags", _LONGEST_TAGS)
    tags = tuple(dict.fromkeys(tag.strip() for tag in text.split(",") if tag.strip()))
    if len(tags) > MOST_TAGS or any(len(tag) > LONGEST_TAG for tag in tags):
        raise HTTPException(400, f"a run may have {MOST_TAGS} tags of {LONGEST_TAG} characters each")
    note = checked_text(fields, "note", LONGEST_NOTE, lines=True)
    return RunNote(tags=tags, note=note, by=by or None, time=now())
