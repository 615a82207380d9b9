// One stage of the word aligner where it has a choice: which words to match so that the fewest matches cross.
//
// The search goes through the open candidate words from left to right. A state is the set of reference words in
// use, as far as it matters for what is to come; of two ways to the same state only the better one lives on. What is
// left of them is kept in lexicographic order, so that "leftmost" needs no comparison of whole lists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mmeval {

constexpr std::uint32_t kNoWord = UINT32_MAX;

// Words that may be matched with each other but with no others.
struct Component {
    std::uint32_t candidates = 0, references = 0;
    std::uint32_t first = kNoWord;  // reference word, for whoever lists them
    bool complete = true;           // any candidate word goes with any reference word
};

struct StageProblem {
    std::size_t n, m;
    const std::uint32_t *candidate_mates, *reference_mates;          // settled matches, or kNoWord
    const std::uint32_t *candidate_component, *reference_component;  // of the open words; kNoWord for others
    const std::vector<Component>* components;
    const std::uint32_t *edge_begin, *edge_end;  // by candidate word: its part of `edges`, if not `complete`
    const std::uint32_t* edges;                  // reference words, ascending
};

class CrossingSearch {
public:
    CrossingSearch(std::size_t budget, std::size_t beam_width) : budget_(budget), beam_width_(beam_width) {}

    // Gives the chosen matches to `settle(candidate, reference)`; whether they are proven to be the best.
    template <typename Settle>
    bool solve(const StageProblem& problem, Settle settle) {
        const bool exact = search(problem);
        for (std::size_t t = 0; t < layers_.size(); ++t)
            if (best_path_[t] != kNoWord) settle(layers_[t].candidate, positions_[best_path_[t]]);
        return exact;
    }

private:
    // How a component's words have to be chosen. Within a complete one no two matches of an optimum cross, since
    // uncrossing them saves a crossing; so its scarcer side is used up in order.
    enum class Kind : std::uint8_t { kChooseReferences, kChooseCandidates, kGraph };
    struct Part {
        Kind kind;
        std::uint32_t candidates, references, slack;
        std::uint32_t references_begin;  // in part_references_
        std::uint32_t layers_begin;      // in part_layers_
        std::uint32_t seen = 0, most = 0;
    };
    struct Option {
        std::uint32_t reference;   // number among the open ones
        std::uint32_t crossings;   // with settled matches
        std::uint32_t left_bound;  // crossings it must have with matches of earlier open candidate words
        std::uint8_t links;        // settled matches that it continues
        bool links_previous, links_next;  // it can continue, be continued by, an option of the neighbouring layer
    };
    struct Layer {
        std::uint32_t candidate, part;
        std::uint32_t options_begin, options_end;
        std::uint32_t gaps_begin, gaps_end;
        std::uint32_t rank;  // among its part's layers
        Kind kind;
        bool follows;  // the layer before is the candidate word before
    };
    struct Gap {
        std::uint32_t begin, end;
    };
    struct State {
        std::int64_t cost;   // kCrossing a crossing, -1 a link
        std::int64_t order;  // what a beam keeps the lowest of
        std::uint32_t node;  // in nodes_
        std::uint32_t last;  // reference that the next candidate word could continue, or kNoWord
        std::int8_t side;    // before (-1), on (0), behind (1) the best path so far, lexicographically
        bool dead;
    };
    struct Node {
        std::uint32_t parent, choice;
    };
    struct Child {
        std::int64_t cost, order;
        std::uint32_t parent, option;
        std::uint32_t sequence;
    };
    struct Slot {
        std::uint32_t stamp, state;
    };
    enum class Outcome { kProven, kDropped, kStopped };
    struct Layered {
        std::vector<State> states;
        std::vector<std::uint64_t> masks;
    };

    bool search(const StageProblem& problem);
    void lay_out(const StageProblem& problem);
    void number_parts(const StageProblem& problem);
    void number_references(const StageProblem& problem);
    void make_layers(const StageProblem& problem);
    void add_options(const StageProblem& problem, std::uint32_t candidate, Layer& layer);
    void find_links();
    void find_gaps();
    void find_bounds();
    void find_left_bounds();
    std::size_t fitting_width() const;

    Outcome pass(std::size_t width, bool stop_when_full, std::size_t budget);
    bool expand(std::size_t t, std::size_t budget);
    void expand_state(std::size_t t, std::uint32_t index);
    void add_child(std::uint32_t parent, std::uint32_t option, std::uint32_t above);
    void enter_children(std::size_t t);
    void enter(std::size_t t, const Child& child);
    void keep(std::size_t width);
    void count_above(const std::uint64_t* used, const Layer& layer);
    std::int64_t bound(std::size_t t, const std::uint64_t* used) const;
    std::uint32_t crossing_bound(std::size_t t, const std::uint64_t* used) const;
    std::uint32_t find_state(const std::uint64_t* used, std::uint32_t last);
    void take_path(std::uint32_t node);

    std::uint32_t most_matches(const Part& part, std::uint32_t from, const std::uint64_t* used, std::uint32_t taken,
                               std::uint32_t enough);
    bool augment(const Part& part, std::uint32_t candidate, const std::uint64_t* used, std::uint32_t taken);

    static bool has(const std::uint64_t* used, std::uint32_t bit) { return used[bit / 64] >> (bit % 64) & 1; }

    std::size_t budget_, beam_width_;

    // The problem.
    std::vector<std::uint32_t> part_of_;  // by component
    std::vector<Part> parts_;
    std::vector<std::uint32_t> part_references_, part_layers_;
    std::vector<std::uint32_t> positions_;     // of the open reference words
    std::vector<std::uint32_t> number_;        // the other way round, for parts that are graphs
    std::vector<std::uint32_t> reference_part_;
    std::vector<std::int32_t> settled_;        // crossings with settled matches, for the candidate word at hand
    std::vector<Layer> layers_;
    std::vector<Option> options_;
    std::vector<Gap> gaps_;
    std::vector<std::uint32_t> leaves_, before_, after_;
    std::vector<std::uint32_t> crossings_left_, links_left_;  // by layer: bounds of what the layers from it on add
    std::vector<std::int64_t> expected_;  // by open reference: words in use below it, in 1 / kUnit
    std::vector<std::uint32_t> witness_;  // by layer: its mate in a largest matching of its part
    std::size_t words_ = 1;               // of a mask
    std::uint32_t matches_ = 0, most_links_ = 0;
    bool small_ = true, truncated_ = false, bounded_ = false;

    // The search.
    Layered now_, next_;
    std::vector<Child> children_;
    std::vector<Node> nodes_;
    std::vector<Slot> table_;
    std::uint32_t stamp_ = 0;
    std::vector<std::int64_t> orders_;
    std::vector<std::uint32_t> above_, counts_, seen_;
    std::size_t spent_ = 0;
    std::vector<std::uint32_t> best_path_;  // reference or kNoWord, by layer
    std::int64_t best_cost_ = 0;
    bool has_best_ = false;

    // Matching within a graph.
    std::vector<std::uint32_t> mate_, visited_;
    std::uint32_t visit_ = 0;
};

}  // namespace mmeval
