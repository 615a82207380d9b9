// The aligner's search among equal words, inflections and synonyms. It prefers the most matches, then the fewest
// crossings, then the fewest chunks, then the leftmost words.
//
// It goes through the open candidate words from left to right. A state is the set of reference words in use, as far as
// the remaining search depends on it. Of two paths to the same state only the better one is kept. States are kept in
// lexicographic order, so that "leftmost" needs no comparison of whole lists.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace mmeval {

constexpr std::uint32_t kNoWord = UINT32_MAX;

enum Side { kCandidate, kReference };

// All occurrences of one word. The side with fewer has all of them matched with the same word; the other side has spare
// ones.
struct WordType {
    std::uint32_t counts[2];  // by side
    std::uint32_t first[2];   // position of the first occurrence
    std::uint32_t stem, next_in_stem;
    std::uint32_t synonyms_begin, synonyms_end;  // types with spare reference words
    std::uint32_t synonym_of;                    // spare candidate words that have this type as a synonym
    bool open;                                   // its matches must be searched for

    Side more() const { return counts[kCandidate] < counts[kReference] ? kReference : kCandidate; }
    std::uint32_t spare() const { return counts[more()] - counts[1 - more()]; }
};

// The types of one stem. Their spare words are matched with each other, as many as both sides have.
struct StemClass {
    std::uint32_t spare[2];
    std::uint32_t first_type;

    std::uint32_t matches() const { return std::min(spare[kCandidate], spare[kReference]); }
    bool scarce(Side side) const { return matches() > 0 && matches() == spare[side]; }  // all its words are needed
};

struct JointProblem {
    std::size_t candidate_size;
    const std::uint32_t* mates[2];     // settled matches by side and position, or kNoWord
    const std::uint32_t* types_of[2];  // by side and position
    const std::vector<WordType>& types;
    const std::vector<StemClass>& stems;
    const std::vector<std::uint32_t>& synonyms;
    std::uint32_t most_synonyms;  // upper limit for any alignment
};

class JointSearch {
public:
    static constexpr std::size_t kMostOptions = std::size_t{1} << 17;  // pairs of words to choose from

    JointSearch(std::size_t budget, std::size_t beam_width) : budget_(budget), beam_width_(beam_width) {}

    // Passes the chosen matches to `settle(candidate, reference, level)`. Returns whether they are proven to be the
    // best. If not, some words that could be matched by stem or as synonyms may be left; with too many options, all are
    // left.
    template <typename Settle>
    bool solve(const JointProblem& problem, Settle settle) {
        const bool exact = search(problem);
        for (std::size_t t = 0; t < layers_.size(); ++t) {
            if (best_path_[t] == kNoWord) continue;
            const Option& option = options_[best_path_[t]];
            settle(layers_[t].candidate, references_[option.reference].position, option.level);
        }
        return exact;
    }

private:
    // Some words must be matched: all words of a type on the side with fewer, and by stem those of the side with fewer
    // spare words. Each pair is `needed` on one side only, so that a bound can add them up.
    struct Reference {  // an open word of the reference
        std::uint32_t position, type;
        std::uint32_t kin;         // matches with references of one kin never cross each other
        std::uint32_t rank;        // within its type
        std::uint32_t last_layer;  // the last layer that can take it
        std::uint32_t first_use;   // the first option that takes it, or kNoWord
        bool loss;                 // without its match, a match by stem is lost
        bool needed;
        std::int32_t settled;      // matches that it crosses as the mate of the current candidate word
        double expected;           // expected number of used words to its left
    };
    struct Option {
        std::uint32_t reference;
        std::uint32_t crossings;  // with settled matches
        std::uint8_t level;
        std::uint8_t links;              // settled matches that it continues
        bool links_next;                 // an option of the next layer can continue it
        std::uint32_t next_use, fewest;  // the next option that takes the reference; fewest crossings from here on
    };
    struct Layer {  // an open word of the candidate
        std::uint32_t candidate, type;
        std::uint32_t rank;  // within its type
        std::uint32_t options_begin, options_end;
        std::uint32_t gaps_begin, gaps_end;
        bool follows;        // the previous layer is the previous candidate word
        bool loss;           // without its match, a match by stem is lost
        bool needed;
        bool last_for_loss;  // the last layer that can take a reference word with `loss`
    };
    struct Gap {
        std::uint32_t begin, end;
    };
    enum Place : std::uint8_t { kBefore, kOn, kBehind };
    struct State {
        std::uint32_t lost;  // matches by stem
        std::uint32_t synonyms;
        std::int64_t cost;   // kCrossing per crossing, -1 per link
        std::int64_t bound;  // lower bound of the remaining cost, once there is a best path
        double expected;     // crossings, including expected ones with later matches
        std::uint32_t node;  // in nodes_
        std::uint32_t last;  // reference that the next candidate word could continue, or kNoWord
        Place place;         // lexicographic position relative to the best path
        bool dead;

        bool better_than(const State& other) const;
    };
    struct Step {
        std::uint32_t option, above;  // `above`: used words to its right
    };
    struct Node {
        std::uint32_t parent, option;
    };
    struct Slot {
        std::uint32_t stamp, state;
    };
    struct States {
        std::vector<State> states;
        std::vector<std::uint64_t> rows;  // bits of the used words
    };
    enum class Outcome { kProven, kDropped, kStopped };

    bool search(const JointProblem& problem);
    void number_references(const JointProblem& problem);
    bool make_layers(const JointProblem& problem);
    void add_options(const JointProblem& problem, Layer& layer);
    void add_option(const JointProblem& problem, const Layer& layer, std::uint32_t reference, std::uint8_t level);
    void find_gaps();
    void find_bounds();

    Outcome pass(std::size_t width, std::size_t budget);
    void expand(std::size_t t, std::uint32_t index);
    bool allowed(const std::uint64_t* used, const Layer& layer, const Option& option) const;
    bool spare(const std::uint64_t* used, const Layer& layer) const;
    void enter(std::size_t t, std::uint32_t parent, Step step, std::uint32_t in_use);
    void follow(State& state, const Option& option, std::uint32_t above, std::uint32_t in_use) const;
    void leave(State& state, std::uint64_t* used, std::size_t t) const;
    void clear_table(std::size_t size);
    std::uint32_t find_slot(const std::uint64_t* used, std::uint32_t last) const;
    bool keep(std::size_t width);
    double order(const State& state) const;
    bool hopeless(std::size_t t, const State& state) const;
    std::uint32_t fewest_behind(std::size_t t, std::uint32_t reference) const;
    std::uint32_t crossing_bound(std::size_t t, const std::uint64_t* used);

    std::size_t budget_, beam_width_;

    // The problem.
    const WordType* types_ = nullptr;
    std::vector<std::uint32_t> begin_, left_;  // by type: start in by_type_, candidate words after the layer
    std::vector<std::uint32_t> by_type_;       // open reference words
    std::vector<Reference> references_;
    std::vector<Layer> layers_;
    std::vector<Option> options_;
    std::vector<Gap> gaps_;
    std::vector<std::uint32_t> links_left_, synonyms_left_;  // by layer: the most that it and later layers can add
    std::size_t words_ = 1;                                  // of a row
    std::uint32_t most_synonyms_ = 0;

    // The search.
    States now_, next_;
    std::vector<Node> nodes_;
    std::vector<Slot> table_;
    std::uint32_t stamp_ = 0;
    std::vector<std::uint64_t> blocked_;  // by kin: the last visit that blocked it
    std::uint64_t visit_ = 0;
    std::vector<Step> steps_;
    std::vector<std::uint32_t> above_;
    std::vector<std::pair<double, std::uint32_t>> ranks_;  // order and number of a state
    std::size_t spent_ = 0;
    std::vector<std::uint32_t> best_path_;  // option or kNoWord, by layer
    State best_{};
    bool has_best_ = false;
};

}  // namespace mmeval
