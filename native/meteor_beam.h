// The alignment of METEOR 1.5: a beam search over the reference's words, including the quirks of the published program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mmeval {

enum Module : std::uint8_t { kExact, kStem, kSynonym, kParaphrase, kModules };

// Consecutive words of the candidate that match consecutive words of the reference.
struct PhraseMatch {
    std::uint32_t candidate, reference;  // start positions
    std::uint16_t candidate_words, reference_words;
    Module module;
};

class BeamAligner {
public:
    static constexpr std::size_t kWidth = 40;

    // Chooses from `matches`, whose order breaks ties. The result is in the reference's order and valid until the next
    // call.
    const std::vector<PhraseMatch>& align(const std::vector<PhraseMatch>& matches, std::size_t candidate_words,
                                          std::size_t reference_words);

private:
    static constexpr std::uint32_t kNone = 0xFFFFFFFF;
    static constexpr std::size_t kCrowd = 64 * kWidth;  // number of paths from which hopeless ones are dropped early

    // Paths are ranked by more matched words, then fewer chunks, then less distance.
    struct Rank {
        std::uint32_t matched = 0, chunks = 0;
        std::uint64_t distance = 0;
        bool better_than(const Rank& other) const {
            if (matched != other.matched) return matched > other.matched;
            if (chunks != other.chunks) return chunks < other.chunks;
            return distance < other.distance;
        }
    };
    struct Path {
        Rank rank;
        std::uint32_t chunk_end = kNone;   // after the open chunk's last word, in the candidate
        std::uint32_t next_reference = 0;  // the first word after the last match
        std::uint32_t last_step = kNone;   // in steps_
        std::uint32_t parent = 0;          // the path whose used words it inherits
        std::uint32_t taken = kNone;       // its newest match, in by_reference_
    };
    struct Step {
        std::uint32_t match, before;
    };

    void sort_by_reference(const std::vector<PhraseMatch>& matches, std::size_t reference_words);
    void find_fixed(std::size_t candidate_words, std::size_t reference_words);
    void sort_and_cut();
    void keep_best();
    void extend(std::uint32_t position);
    void close_chunk(Path& path) const;
    Path with_match(const Path& path, std::uint32_t match) const;
    bool collides(std::size_t path, const PhraseMatch& match) const;

    std::vector<PhraseMatch> by_reference_, chosen_;
    std::vector<std::uint32_t> ends_;  // of the matches that start at each reference word, in by_reference_
    std::vector<std::uint32_t> candidate_cover_, reference_cover_;
    std::vector<bool> fixed_;          // by reference position: its only match competes with no other
    std::vector<Path> paths_, next_;
    std::vector<std::uint64_t> used_, next_used_;  // candidate words, one row of bits per path
    std::size_t blocks_ = 0;
    std::vector<Step> steps_;
};

}  // namespace mmeval
