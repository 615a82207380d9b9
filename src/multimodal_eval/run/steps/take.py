"""Take the samples of an earlier run with their answers, instead of reading them, and whatever else stays the same."""

from __future__ import annotations

from collections.abc import Sequence

from multimodal_eval.core.errors import RunFolderError
from multimodal_eval.data.runs.checksums import EXCHANGES
from multimodal_eval.data.runs.run_folder import state_name
from multimodal_eval.data.runs.storage import take_file
from multimodal_eval.run.runner import Step

__all__ = ["Take"]

_ALWAYS = ("samples/", "answers/", "exchanges/part-")


class Take(Step):
    """Links or copies files of the run that is scored again: also verdicts on the same questions, and equal states."""

    def left(self) -> Sequence[str]:
        """The files that are missing here."""
        return [name for name in self._files if not self.run.has(name)]

    @property
    def _files(self) -> list[str]:
        run, earlier = self.run, self.run.earlier
        assert earlier is not None
        kinds = [f"{kind}/{name}.part-" for name in run.reused_verdicts for kind in ("verdicts", "exchanges")]
        carried = (*_ALWAYS, *kinds)
        files = [name for name in earlier.checksums.data_files() if name.startswith(carried)]
        return files + [state_name(metric) for metric in run.reusable if earlier.has_state(metric)]

    def make(self, left: Sequence[str]) -> None:
        """Take them."""
        run, earlier = self.run, self.run.earlier
        assert earlier is not None
        run.remove_damaged(EXCHANGES)  # the checksums of the exchanges
        for name in left:
            known = run.folder.checksums.known(name)
            if known is not None and known != earlier.checksums.known(name):
                raise RunFolderError(
                    f"{run.folder.label}/{name} is damaged, and that of {earlier.label} has changed since. Restore it, "
                    f"or rescore {earlier.label} again"
                )
            run.folder.checksums.copied(name, earlier.checksums)
            run.folder.storage.remove(name)
            take_file(earlier.storage, run.folder.storage, name)
            run.damaged.discard(name)
