// The binding functions of each source file. module.cpp calls them.
#pragma once

#include <nanobind/nanobind.h>

void bind_arrow(nanobind::module_& module);
void bind_json(nanobind::module_& module);
void bind_json_columns(nanobind::module_& module);
void bind_table_columns(nanobind::module_& module);
void bind_text(nanobind::module_& module);
void bind_overlap(nanobind::module_& module);
void bind_meteor(nanobind::module_& module);
void bind_edit_distance(nanobind::module_& module);
void bind_stats(nanobind::module_& module);
void bind_speech(nanobind::module_& module);
void bind_lint(nanobind::module_& module);
void bind_parser(nanobind::module_& module);
