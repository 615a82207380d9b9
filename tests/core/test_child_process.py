"""Child processes do not run the user's script again."""

from __future__ import annotations

import sys
import threading

from multimodal_eval.core.machine import main_hidden


def test_runs_in_several_threads_leave_the_main_module_unchanged():
    main = vars(sys.modules["__main__"])
    before = main["__spec__"], main.get("__file__")
    hidden = []

    def hide():
        for _ in range(100):
            with main_hidden():
                hidden.append(main["__spec__"] is None and "__file__" not in main)

    threads = [threading.Thread(target=hide) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert hidden == [True] * 400
    assert (main["__spec__"], main.get("__file__")) == before
