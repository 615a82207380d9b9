// Word stemmers: the common stem of a word's inflected forms, for matching words in METEOR and other metrics.
#pragma once

#include <string>
#include <string_view>

namespace mmeval {

// Writes the stem of a lower-case UTF-8 word over `stem`, of which `word` must not be a part. A word may hold anything
// (digits, apostrophes, other scripts, bad UTF-8), and takes time linear in its length.
using Stemmer = void (*)(std::string_view word, std::string& stem);

// "porter": NLTK's PorterStemmer in its default mode. "english", "russian-2014": Snowball as of 2014, as in the
// METEOR 1.5 jar. "russian": Snowball as published now, which reads ё as е. nullptr for another name.
Stemmer find_stemmer(std::string_view name);

void stem_porter(std::string_view word, std::string& stem);
void stem_english(std::string_view word, std::string& stem);
void stem_russian(std::string_view word, std::string& stem);
void stem_russian_2014(std::string_view word, std::string& stem);

}  // namespace mmeval
