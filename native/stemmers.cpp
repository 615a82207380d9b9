// The stemmers by name.
#include "stemmers.h"

namespace mmeval {

Stemmer find_stemmer(std::string_view name) {
    if (name == "porter") return stem_porter;
    if (name == "english") return stem_english;
    if (name == "russian") return stem_russian;
    if (name == "russian-2014") return stem_russian_2014;
    return nullptr;
}

}  // namespace mmeval
