// Transcripts with their references, normalised once, and the edits between them by words or by characters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "captions.h"
#include "edit_alignment.h"
#include "transcript_rules.h"

namespace mmeval {

enum class SpeechUnit { kWord, kCharacter };

// The edits of all pairs of a transcript and a reference.
struct SpeechEdits {
    std::vector<double> counts;      // kEdits per pair: hits, substitutions, deletions, insertions
    std::string alignments;          // of all pairs, each as "3H 1S": empty if there are only hits
    std::vector<std::uint64_t> ends; // of each alignment
};

class Transcripts {
public:
    Transcripts(Texts texts, const TranscriptRules& rules, TranscriptRules::Name rule);

    std::size_t rows() const { return texts_.images(); }
    std::size_t pairs() const { return texts_.ends.size() - texts_.images(); }
    // The number of references up to and including each row.
    void reference_ends(std::int64_t* ends) const;
    SpeechEdits edits(SpeechUnit unit) const;

private:
    Texts texts_;
    const TranscriptRules& rules_;
};

// Applies a rule to a text in UTF-8.
class TranscriptNormalizer {
public:
    TranscriptNormalizer(const TranscriptRules& rules, TranscriptRules::Name rule) : rules_(rules), rule_(rule) {}
    // Appends the result to `out`.
    void normalize(std::string_view text, std::string& out);

private:
    const TranscriptRules& rules_;
    TranscriptRules::Name rule_;
    std::u32string text_, spare_;
};

}  // namespace mmeval
