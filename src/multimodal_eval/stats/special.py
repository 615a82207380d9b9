"""The normal and Student's t distribution, and the logistic function; the names are those of `scipy.special`.

They are native and take single numbers: `ndtr(x)`, `ndtri(p)`, `stdtr(freedom, t)`, `stdtrit(freedom, p)`, `logit(p)`.
`expit` takes vectors too.
"""

from __future__ import annotations

from multimodal_eval._native import expit, logit, ndtr, ndtri, stdtr, stdtrit

__all__ = ["expit", "logit", "ndtr", "ndtri", "stdtr", "stdtrit"]
