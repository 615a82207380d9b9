"""Pages with forms, and the forms that come back: each has a token that only this browser and this process know."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from multimodal_eval.report.viewer.labelling.forms import posted
from multimodal_eval.report.viewer.labelling.tokens import Tokens, cookie, set_cookie
from multimodal_eval.report.viewer.runs import RunsFolder

__all__ = ["TOKEN", "Access", "see_other"]

TOKEN = "token"
_SESSION = "session"


@dataclass(frozen=True)
class Access:
    """Renders pages with forms and reads what is posted."""

    folder: RunsFolder
    templates: Environment
    tokens: Tokens

    def page(self, request: Request, template: str, status: int = 200, **content: Any) -> Response:
        """A page whose forms have the token of this browser. It is not stored in any cache."""
        session = cookie(request, _SESSION) or secrets.token_hex(16)
        text = self.templates.get_template(template).render(
            folder=self.folder, token=self.tokens.form(session), **content
        )
        response = HTMLResponse(text, status, {"cache-control": "no-store"})
        if session != cookie(request, _SESSION):
            set_cookie(request, response, _SESSION, session)
        return response

    async def form(self, request: Request, *known: str) -> dict[str, str]:
        """The fields of a form of this browser and this process. The guard has checked its origin."""
        fields = await posted(request, frozenset((*known, TOKEN)))
        if not self.tokens.is_form(cookie(request, _SESSION), fields.pop(TOKEN, "")):
            raise HTTPException(
                403,
                "nothing was saved: the page is older than this server, or cookies are off. Reload it and try again",
            )
        return fields


def see_other(address: str) -> Response:
    """Lead the browser to another page after a form, so that reloading does not send it again."""
    return RedirectResponse(address, 303, {"cache-control": "no-store"})
