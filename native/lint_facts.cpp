#include "lint_facts.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "blake2b.h"
#include "json_canonical.h"

namespace mmeval {
namespace {

constexpr std::size_t kLong = 4, kCopied = 6;  // words: LONG and COPIED in lint/facts.py

enum Flag : std::uint32_t {  // as in lint/facts.py
    kAnswered = 1,
    kBlank = 2,
    kCopiesReference = 8,
    kOffLanguage = 64,
    kOpen = 128,
    kClosed = 256,
    kReferenceClosed = 512,
};

struct Fact {
    std::uint32_t flags = 0, words = 0, characters = 0, references = 0;
    std::uint64_t answer = 0, unit = 0, content = 0, corpus = 0, reference = 0;
    std::uint8_t unfinished_in = 0, language = 0;

    void write(unsigned char* out) const {
        for (const std::uint32_t value : {flags, words, characters, references}) out = put(out, value, 4);
        for (const std::uint64_t value : {answer, unit, content, corpus, reference}) out = put(out, value, 8);
        put(put(out, unfinished_in, 1), language, 1);
    }

private:
    static unsigned char* put(unsigned char* out, std::uint64_t value, int bytes) {
        for (int i = 0; i < bytes; ++i) *out++ = static_cast<unsigned char>(value >> 8 * i);
        return out;
    }
};

// Never 0, which means that there is nothing to hash.
std::uint64_t hash_of(std::string_view data) { return std::max<std::uint64_t>(blake2b_64(data), 1); }

bool has_media(const LintMedia& media, std::int64_t row) { return media.path.has(row) || media.bytes.has(row); }

std::string_view content_of(const LintMedia& media, std::int64_t row) {
    return media.path.has(row) ? media.path[row] : media.bytes[row];
}

class FactsOfRows {
public:
    FactsOfRows(const LintLexicon& lexicon, const CharacterTable::MakePage& make_page, const LintColumns& columns)
        : lexicon_(lexicon), columns_(columns), reader_(lexicon.characters, make_page),
          answer_hits_(lexicon), reference_hits_(lexicon) {}

    // False if the row is left to Python.
    bool compute(std::int64_t row, Fact& fact) {
        reader_.start();
        return computed(row, fact) && !reader_.saw_unusual();
    }

private:
    bool computed(std::int64_t row, Fact& fact) {
        if (columns_.images.has(row) || columns_.messages.has(row) || columns_.boxes.has(row)) return false;
        if (!read_references(row)) return false;
        fact.references = static_cast<std::uint32_t>(references_.size());
        if (!references_.empty()) hash_references(fact);
        const bool has_unit = find_unit(row, fact);
        if (!columns_.answer.has(row) || columns_.failed[row] != 0) return true;
        const Text answer(columns_.answer[row]);
        split_words(answer, reader_, words_);
        const std::string_view key = words_.size() > 0 ? std::string_view(words_.joined) : wordless_key(answer);
        fact.flags = kAnswered;
        if (key.empty()) {
            fact.flags |= kBlank;
        } else if (!check_text(row, answer, fact)) {
            return false;
        }
        fact.words = static_cast<std::uint32_t>(words_.size());
        fact.characters = static_cast<std::uint32_t>(length_of(answer));
        fact.answer = key.empty() ? 0 : hash_of(key);
        if (!has_unit && words_.size() < kLong) return true;
        std::uint64_t inputs = 0;
        if (!hash_inputs(row, inputs)) return false;
        fact.content = tuple_hash(fact.answer, fact.corpus, fact.unit, inputs);
        return true;
    }

    // What remains of a text without words; empty if it is blank.
    std::string_view wordless_key(Text text) {
        return is_blank(text, reader_) ? std::string_view() : without_space(text, reader_).bytes;
    }

    // `Sample.reference_texts`; false if one is null.
    bool read_references(std::int64_t row) {
        references_.clear();
        if (columns_.references.has(row)) {
            const std::int32_t* ends = columns_.references.ends + row;
            for (std::int32_t item = ends[0]; item < ends[1]; ++item) {
                if (!columns_.reference_items.has(item)) return false;
                references_.emplace_back(columns_.reference_items[item]);
            }
        }
        for (const LintColumn* extra : {&columns_.expected_answer, &columns_.caption})
            if (extra->has(row) && !any_reference([&](Text text) { return text.bytes == (*extra)[row]; }))
                references_.emplace_back((*extra)[row]);
        return true;
    }

    void hash_references(Fact& fact) {
        buffer_.assign(references_[0].bytes);
        for (std::size_t i = 1; i < references_.size(); ++i) buffer_.append(1, '\x1f').append(references_[i].bytes);
        fact.corpus = hash_of(buffer_);
        split_words(references_[0], reader_, first_words_);
        fact.reference = hash_of(first_words_.joined);
    }

    // Hashes the group, or else the media. False if both are missing or empty.
    bool find_unit(std::int64_t row, Fact& fact) const {
        if (columns_.group.has(row) && !columns_.group[row].empty()) {
            fact.unit = hash_of(columns_.group[row]);
            return true;
        }
        for (const LintMedia* media : {&columns_.image, &columns_.audio, &columns_.video}) {
            if (!has_media(*media, row)) continue;
            const std::string_view content = content_of(*media, row);
            if (content.empty() && media != &columns_.video) continue;  // the last one counts even if it is empty
            fact.unit = hash_of(content);
            return !content.empty();
        }
        return false;
    }

    bool check_text(std::int64_t row, Text answer, Fact& fact) {
        if (reader_.saw_unusual()) return false;
        if (lexicon_.may_have_markup(answer, reader_) || repetition_.may_repeat(words_)) return false;
        if (!check_question(columns_.question, row, question_) || !check_question(columns_.prompt, row, prompt_))
            return false;
        check_end(without_space_at_end(answer, reader_), fact);
        if (words_.size() >= kLong) check_language(fact);
        if (references_.empty()) return true;
        if (ends_closed(without_space_at_end(references_[0], reader_), reader_)) fact.flags |= kReferenceClosed;
        if (words_.size() >= kCopied && any_reference([this](Text text) { return has_words(text, reader_, words_); }))
            fact.flags |= kCopiesReference;
        if (is_off_script(answer, references_, reader_)) fact.flags |= kOffLanguage;
        return true;
    }

    template <typename Check>
    bool any_reference(Check check) const {
        return std::any_of(references_.begin(), references_.end(), check);
    }

    void check_end(Text text, Fact& fact) {
        if (ends_closed(text, reader_)) {
            fact.flags |= kClosed;
        } else if (words_.size() > 1 && ends_open(text, reader_)) {
            if (!any_reference([this](Text other) { return ends_open(without_space_at_end(other, reader_), reader_); }))
                fact.flags |= kOpen;
        } else if (words_.size() >= kLong) {
            const std::string_view last = words_.last(), bytes = text.bytes;
            if (bytes.size() < last.size() || bytes.substr(bytes.size() - last.size()) != last) return;
            const std::uint8_t languages = lexicon_.unfinished_in(last);
            if (languages != 0 && !any_reference([this, last](Text other) { return ends_in_word(other, last); }))
                fact.unfinished_in = languages;
        }
    }

    bool ends_in_word(Text text, std::string_view word) {
        if (text.is_plain) return has_last_word(text.bytes, word);
        split_words(text, reader_, other_words_);
        return other_words_.size() > 0 && other_words_.last() == word;
    }

    struct Question {
        std::string_view text;  // many samples ask the same question
        Words words;
        bool is_unusual = false;
    };

    bool check_question(const LintColumn& column, std::int64_t row, Question& question) {
        if (!column.has(row) || column[row].empty()) return true;
        if (column[row] != question.text) {
            question.text = column[row];
            split_words(Text(question.text), reader_, question.words);
            question.is_unusual = reader_.saw_unusual();
        }
        return !question.is_unusual && !may_repeat_question(words_, question.words);
    }

    void check_language(Fact& fact) {
        answer_hits_.start();
        answer_hits_.add(words_);
        const int language = language_of(answer_hits_.hits());
        if (language < 0) return;
        fact.language = static_cast<std::uint8_t>(language + 1);
        if (references_.empty()) return;
        reference_hits_.start();
        reference_hits_.add(first_words_);
        if (language_of(reference_hits_.hits()) == language) return;
        for (std::size_t i = 1; i < references_.size(); ++i) {
            split_words(references_[i], reader_, other_words_);
            reference_hits_.add(other_words_);
        }
        if (is_off_language(answer_hits_.hits(), reference_hits_.hits())) fact.flags |= kOffLanguage;
    }

    // Hashes the JSON of the input fields, in the order of `_INPUTS`; 0 if all are missing or empty. False if Python
    // may write the JSON in other bytes.
    bool hash_inputs(std::int64_t row, std::uint64_t& hash) {
        any_input_ = false;
        buffer_.assign(1, '[');
        add_text(columns_.question, row);
        add_text(columns_.prompt, row);
        if (!add_json(columns_.metadata, row, "{}", "{")) return false;
        add_media(columns_.image, row);
        add_media(columns_.audio, row);
        if (!add_json(columns_.choices, row, "null", "{[")) return false;
        buffer_ += "null,";  // images
        add_media(columns_.video, row);
        buffer_ += "null,null,";  // messages and boxes
        if (columns_.epoch.has(row)) {
            any_input_ = true;
            buffer_ += std::to_string(columns_.epochs[row]);
        } else {
            buffer_ += "null";
        }
        buffer_ += ']';
        hash = any_input_ ? hash_of(buffer_) : 0;
        return true;
    }

    void add_text(const LintColumn& column, std::int64_t row) {
        if (column.has(row)) {
            any_input_ |= !column[row].empty();
            append_json(buffer_, column[row]);
        } else {
            buffer_ += "null";
        }
        buffer_ += ',';
    }

    void add_media(const LintMedia& media, std::int64_t row) {
        if (media.path.has(row) || !media.bytes.has(row)) return add_text(media.path, row);
        any_input_ |= !media.bytes[row].empty();
        buffer_ += std::to_string(hash_of(media.bytes[row]));
        buffer_ += ',';
    }

    // The JSON starts with one of the `openings`.
    bool add_json(const LintColumn& column, std::int64_t row, std::string_view missing, std::string_view openings) {
        const std::string_view json = column.has(row) ? column[row] : missing;
        if (column.has(row)) {
            if (openings.find(json.substr(0, 1)) == std::string_view::npos || !is_canonical_json(json)) return false;
            any_input_ |= json.size() > 2;
        }
        buffer_.append(json).append(1, ',');
        return true;
    }

    const LintLexicon& lexicon_;
    const LintColumns& columns_;
    CharacterReader reader_;
    std::vector<Text> references_;
    Words words_, first_words_, other_words_;
    Question question_, prompt_;
    FunctionWords answer_hits_, reference_hits_;
    Repetition repetition_;
    std::string buffer_;
    bool any_input_ = false;
};

}  // namespace

std::uint64_t tuple_hash(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d) {
    constexpr std::uint64_t kModulus = (std::uint64_t{1} << 61) - 1;  // of the hash of an integer
    constexpr std::uint64_t kPrime1 = 11400714785074694791u, kPrime2 = 14029467366897019727u,
                            kPrime5 = 2870177450012600261u;
    std::uint64_t hash = kPrime5;
    for (const std::uint64_t item : {a, b, c, d}) {
        hash += item % kModulus * kPrime2;
        hash = (hash << 31 | hash >> 33) * kPrime1;
    }
    hash += 4 ^ (kPrime5 ^ 3527539u);
    return hash == ~std::uint64_t{0} ? 1546275796 : hash;
}

std::vector<std::int64_t> lint_facts(const LintLexicon& lexicon, const CharacterTable::MakePage& make_page,
                                     const LintColumns& columns, std::int64_t rows, unsigned char* facts) {
    std::vector<std::int64_t> others;
    FactsOfRows computing(lexicon, make_page, columns);
    for (std::int64_t row = 0; row < rows; ++row) {
        Fact fact;
        if (computing.compute(row, fact)) {
            fact.write(facts + static_cast<std::size_t>(row) * kFactSize);
        } else {
            others.push_back(row);
        }
    }
    return others;
}

}  // namespace mmeval
