// Word stemmers: the common stem of a word's inflected forms, for matching words in METEOR and other metrics.
#pragma once

#include <string>
#include <string_view>

namespace mmeval {

// Writes the stem of a lower-case UTF-8 word to `stem`, which must not overlap `word`. A word may contain anything
// (digits, apostrophes, other scripts, bad UTF-8). The time is linear in its length.
using Stemmer = void (*)(std::string_view word, std::string& stem);

// "porter": NLTK's PorterStemmer in its default mode. "english", "russian-2014": Snowball as of 2014, as in the
// METEOR 1.5 jar. "russian": current Snowball, which reads ё as е. nullptr for any other name.
Stemmer find_stemmer(std::string_view name);

void stem_porter(std::string_view word, std::string& stem);
void stem_english(std::string_view word, std::string& stem);
void stem_russian(std::string_view word, std::string& stem);
void stem_russian_2014(std::string_view word, std::string& stem);

}  // namespace mmeval
