#include "bindings.h"

NB_MODULE(_native, module) {
    module.doc() = "Compiled kernels of multimodal_eval.";
    bind_arrow(module);
    bind_json(module);
    bind_json_columns(module);
    bind_table_columns(module);
    bind_text(module);
    bind_overlap(module);
    bind_meteor(module);
    bind_edit_distance(module);
    bind_stats(module);
    bind_speech(module);
    bind_lint(module);
    bind_parser(module);
}
