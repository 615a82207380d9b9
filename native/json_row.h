// JSON objects, lists and values as cells of a row.
#pragma once

#include "row_scanner.h"

namespace mmeval {

class JsonRowScanner : public RowScanner {
protected:
    // `keeps_names`: the text does not outlive the row, so the names of its keys are copied.
    JsonRowScanner(const Routes& routes, bool keeps_names) : RowScanner(routes), keeps_names_(keeps_names) {}

    void read_from(const char* begin, const char* end) {
        at_ = begin;
        end_ = end;
    }
    bool at_end();                   // whether only spaces are left
    bool read_object(bool is_inner);  // at an opening brace; adds a cell for each pair
    bool read_list(Cell& cell);      // at an opening bracket
    bool read_choices(Cell& cell);

private:
    void skip_spaces();
    bool take(char c);
    bool take_word(const char* word, std::size_t size);
    bool read_pair(bool is_inner);
    bool read_key(bool is_inner, std::uint32_t& number);
    bool read_value(Role role, Cell& cell);
    bool read_text_value(Role role, Cell& cell);
    bool read_text(Role role, std::string_view& text, bool& plain);

    using Numbers = std::unordered_map<std::string_view, std::uint32_t>;

    bool keeps_names_;
    const char *at_ = nullptr, *end_ = nullptr;
    Numbers numbers_, inner_numbers_;
};

}  // namespace mmeval
