// Layers, states and bounds of the search for the matches that cross least.
#include "crossing_search.h"

#include <algorithm>
#include <limits>

namespace mmeval {

namespace {

constexpr std::int64_t kCrossing = std::int64_t{1} << 24;  // more than all links of a text can weigh
constexpr std::int64_t kUnit = 256;
constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

// Beyond these a text has no tight bounds: a state's bound costs a walk through all options.
constexpr std::size_t kSmallReferences = 256, kSmallOptions = 4096;
constexpr std::size_t kOptionsANode = 128;  // that a bound looks at for the price of a search node

constexpr std::size_t kMostOptions = std::size_t{1} << 20;  // more, and the more frequent side is cut short
constexpr std::size_t kBeamWork = std::size_t{1} << 22;     // options and mask words that set the width for long texts
constexpr std::size_t kChildrenAState = 4;                  // that a beam in a long text looks at closely
constexpr std::size_t kWidening = 16;

std::uint32_t ones(std::uint64_t bits) { return static_cast<std::uint32_t>(__builtin_popcountll(bits)); }

std::uint64_t from_bit(std::uint32_t bit) { return ~std::uint64_t{0} << (bit % 64); }

// Bits from `begin` up to but without `end`.
std::uint32_t count_bits(const std::uint64_t* mask, std::uint32_t begin, std::uint32_t end) {
    if (begin >= end) return 0;
    const std::uint32_t first = begin / 64, last = (end - 1) / 64;
    const std::uint64_t head = from_bit(begin), tail = ~std::uint64_t{0} >> (63 - (end - 1) % 64);
    if (first == last) return ones(mask[first] & head & tail);
    std::uint32_t count = ones(mask[first] & head) + ones(mask[last] & tail);
    for (std::uint32_t w = first + 1; w < last; ++w) count += ones(mask[w]);
    return count;
}

void fill_bits(std::uint64_t* mask, std::uint32_t begin, std::uint32_t end, bool value) {
    if (begin >= end) return;
    const std::uint32_t first = begin / 64, last = (end - 1) / 64;
    for (std::uint32_t w = first; w <= last; ++w) {
        std::uint64_t bits = ~std::uint64_t{0};
        if (w == first) bits &= from_bit(begin);
        if (w == last) bits &= ~std::uint64_t{0} >> (63 - (end - 1) % 64);
        mask[w] = value ? mask[w] | bits : mask[w] & ~bits;
    }
}

std::size_t hash_of(const std::uint64_t* mask, std::size_t words, std::uint32_t last) {
    std::uint64_t hash = last * std::uint64_t{0x9E3779B97F4A7C15};
    for (std::size_t w = 0; w < words; ++w) {
        hash = (hash ^ mask[w]) * std::uint64_t{0xD6E8FEB86659FD93};
        hash ^= hash >> 32;
    }
    return static_cast<std::size_t>(hash);
}

}  // namespace

bool CrossingSearch::search(const StageProblem& problem) {
    lay_out(problem);
    has_best_ = bounded_ = false;
    spent_ = 0;
    if (small_) {  // most sentences have so few states that bounds would cost more than they save
        if (pass(beam_width_, true, kUnlimited) == Outcome::kProven) return !truncated_;
        find_left_bounds();
    }
    find_bounds();
    bounded_ = true;
    std::size_t width = fitting_width();
    if (pass(width, false, kUnlimited) == Outcome::kProven) return !truncated_;
    spent_ = 0;
    while (spent_ < budget_) {
        width = width < budget_ ? width * kWidening : kUnlimited;
        const Outcome outcome = pass(width, false, budget_);
        if (outcome == Outcome::kProven) return !truncated_;
        if (outcome == Outcome::kStopped) break;
    }
    return false;
}

// ---------------------------------------------------------------------------------------------- the problem

void CrossingSearch::lay_out(const StageProblem& problem) {
    number_parts(problem);
    number_references(problem);
    make_layers(problem);
    small_ = positions_.size() <= kSmallReferences && options_.size() <= kSmallOptions;
    words_ = (positions_.size() + 63) / 64;
    find_links();
    find_gaps();
    matches_ = 0;
    for (Part& part : parts_) {
        if (part.kind == Kind::kGraph) {
            const std::uint32_t* layers = part_layers_.data() + part.layers_begin;
            now_.masks.assign(words_, 0);
            part.most = most_matches(part, 0, now_.masks.data(), kNoWord, part.candidates);
            for (std::uint32_t k = 0; k < part.references; ++k) {
                const std::uint32_t reference = part_references_[part.references_begin + k];
                if (mate_[reference] != kNoWord) witness_[layers[mate_[reference]]] = reference;
            }
        } else {
            part.most = std::min(part.candidates, part.references);
        }
        matches_ += part.most;
    }
}

void CrossingSearch::number_parts(const StageProblem& problem) {
    const std::vector<Component>& components = *problem.components;
    parts_.clear();
    part_of_.assign(components.size(), kNoWord);
    std::size_t options = 0, fewest = 0;
    for (std::size_t c = 0; c < components.size(); ++c) {
        const Component& component = components[c];
        const std::uint32_t a = component.candidates, b = component.references;
        if (a == 0 || b == 0 || (component.complete && a == b)) continue;
        part_of_[c] = static_cast<std::uint32_t>(parts_.size());
        const Kind kind = !component.complete ? Kind::kGraph : a < b ? Kind::kChooseReferences : Kind::kChooseCandidates;
        parts_.push_back({kind, a, b, a < b ? b - a : a - b, 0, 0});
        if (kind != Kind::kGraph) {
            options += std::size_t{std::min(a, b)} * (parts_.back().slack + 1);
            fewest += std::min(a, b);
        }
    }
    truncated_ = options > kMostOptions;
    const std::size_t most_slack = truncated_ ? std::max<std::size_t>(kMostOptions / fewest, 1) - 1 : options;
    std::uint32_t references = 0, layers = 0;
    for (Part& part : parts_) {
        if (part.kind != Kind::kGraph && part.slack > most_slack) {
            part.slack = static_cast<std::uint32_t>(most_slack);
            if (part.kind == Kind::kChooseReferences) part.references = part.candidates + part.slack;
            else part.candidates = part.references + part.slack;
        }
        part.references_begin = references;
        part.layers_begin = layers;
        references += part.references;
        layers += part.candidates;
    }
    part_references_.resize(references);
    part_layers_.resize(layers);
}

// Numbers the open reference words, and counts the settled matches that lie to the left of each.
void CrossingSearch::number_references(const StageProblem& problem) {
    positions_.clear();
    reference_part_.clear();
    settled_.clear();
    number_.resize(std::max(number_.size(), problem.m));
    std::int32_t settled = 0;
    for (std::size_t j = 0; j < problem.m; ++j) {
        if (problem.reference_mates[j] != kNoWord) {
            ++settled;
            continue;
        }
        const std::uint32_t component = problem.reference_component[j];
        if (component == kNoWord || part_of_[component] == kNoWord) continue;
        Part& part = parts_[part_of_[component]];
        if (part.seen == part.references) continue;
        number_[j] = static_cast<std::uint32_t>(positions_.size());
        part_references_[part.references_begin + part.seen++] = number_[j];
        positions_.push_back(static_cast<std::uint32_t>(j));
        reference_part_.push_back(part_of_[component]);
        settled_.push_back(settled);
    }
    for (Part& part : parts_) part.seen = 0;
}

void CrossingSearch::make_layers(const StageProblem& problem) {
    layers_.clear();
    options_.clear();
    const std::size_t open = positions_.size();
    std::size_t missing = part_layers_.size();
    for (std::size_t i = 0; missing > 0; ++i) {
        const std::uint32_t mate = problem.candidate_mates[i];
        if (mate != kNoWord) {  // from here on this match lies to the left
            const std::size_t split = std::lower_bound(positions_.begin(), positions_.end(), mate) - positions_.begin();
            for (std::size_t r = 0; r < split; ++r) ++settled_[r];
            for (std::size_t r = split; r < open; ++r) --settled_[r];
            continue;
        }
        const std::uint32_t component = problem.candidate_component[i];
        if (component == kNoWord || part_of_[component] == kNoWord) continue;
        Part& part = parts_[part_of_[component]];
        if (part.seen == part.candidates) continue;
        Layer layer{};
        layer.candidate = static_cast<std::uint32_t>(i);
        layer.part = part_of_[component];
        layer.kind = part.kind;
        layer.rank = part.seen++;
        layer.follows = !layers_.empty() && layers_.back().candidate + 1 == i;
        part_layers_[part.layers_begin + layer.rank] = static_cast<std::uint32_t>(layers_.size());
        add_options(problem, layer.candidate, layer);
        layers_.push_back(layer);
        --missing;
    }
    witness_.assign(layers_.size(), kNoWord);
    mate_.resize(std::max(mate_.size(), open));
    visited_.resize(std::max(visited_.size(), open));
}

void CrossingSearch::add_options(const StageProblem& problem, std::uint32_t candidate, Layer& layer) {
    const Part& part = parts_[layer.part];
    const std::uint32_t left = candidate > 0 ? problem.candidate_mates[candidate - 1] : kNoWord;
    const std::uint32_t right = candidate + 1 < problem.n ? problem.candidate_mates[candidate + 1] : kNoWord;
    const auto add = [&](std::uint32_t reference) {
        const std::uint32_t position = positions_[reference];
        Option option{};
        option.reference = reference;
        option.crossings = static_cast<std::uint32_t>(settled_[reference]);
        option.links = (left != kNoWord && left + 1 == position) + (right != kNoWord && position + 1 == right);
        options_.push_back(option);
    };
    layer.options_begin = static_cast<std::uint32_t>(options_.size());
    if (part.kind == Kind::kGraph) {
        for (std::uint32_t e = problem.edge_begin[candidate]; e != problem.edge_end[candidate]; ++e)
            add(number_[problem.edges[e]]);
    } else {
        const bool references = part.kind == Kind::kChooseReferences;
        const std::uint32_t k = layer.rank;
        const std::uint32_t begin = references ? k : k - std::min(k, part.slack);
        const std::uint32_t end = references ? k + part.slack + 1 : std::min(part.references, k + 1);
        for (std::uint32_t r = begin; r < end; ++r) add(part_references_[part.references_begin + r]);
    }
    layer.options_end = static_cast<std::uint32_t>(options_.size());
}

// Which options of neighbouring candidate words are neighbours in the reference.
void CrossingSearch::find_links() {
    for (std::size_t t = 1; t < layers_.size(); ++t) {
        if (!layers_[t].follows) continue;
        std::uint32_t a = layers_[t - 1].options_begin, b = layers_[t].options_begin;
        while (a < layers_[t - 1].options_end && b < layers_[t].options_end) {
            const std::uint32_t wanted = positions_[options_[a].reference] + 1, at = positions_[options_[b].reference];
            if (wanted == at) options_[a].links_next = options_[b].links_previous = true;
            a += wanted <= at;
            b += at <= wanted;
        }
    }
}

// Once no later candidate word can take a reference word, all that matters of it and of its like beside it is how
// many are in use: only that is told from a state that has been left with such a gap.
void CrossingSearch::find_gaps() {
    const std::uint32_t open = static_cast<std::uint32_t>(positions_.size());
    leaves_.resize(open);
    for (std::uint32_t t = 0; t < layers_.size(); ++t)
        for (std::uint32_t o = layers_[t].options_begin; o != layers_[t].options_end; ++o)
            leaves_[options_[o].reference] = t;
    before_.resize(open + 2);  // of reference r: r + 1, so that there is one to the left of all
    after_.resize(open + 2);
    for (std::uint32_t r = 0; r < open + 2; ++r) {
        before_[r] = r - 1;
        after_[r] = r + 1;
    }
    gaps_.clear();
    for (std::uint32_t t = 0; t < layers_.size(); ++t) {
        layers_[t].gaps_begin = static_cast<std::uint32_t>(gaps_.size());
        for (std::uint32_t o = layers_[t].options_begin; o != layers_[t].options_end; ++o) {
            if (leaves_[options_[o].reference] != t) continue;
            const std::uint32_t left = before_[options_[o].reference + 1], right = after_[options_[o].reference + 1];
            after_[left] = right;
            before_[right] = left;
            if (right - left <= 2) continue;
            const bool wider = gaps_.size() > layers_[t].gaps_begin && gaps_.back().begin == left;
            if (wider) gaps_.back().end = right - 1;  // the one before lies within this one
            else gaps_.push_back({left, right - 1});
        }
        layers_[t].gaps_end = static_cast<std::uint32_t>(gaps_.size());
    }
}

// What the layers still to come must add at least in crossings with settled matches, and can add at most in links.
void CrossingSearch::find_bounds() {
    const std::size_t count = layers_.size();
    crossings_left_.assign(count + 1, 0);
    links_left_.assign(count + 1, 0);
    most_links_ = 0;
    for (std::size_t t = count; t-- > 0;) {
        const Layer& layer = layers_[t];
        const Part& part = parts_[layer.part];
        std::uint32_t fewest = UINT32_MAX, links = 0;
        for (std::uint32_t o = layer.options_begin; o != layer.options_end; ++o) {
            fewest = std::min(fewest, options_[o].crossings);
            links = std::max<std::uint32_t>(links, options_[o].links + options_[o].links_previous);
        }
        if (layer.kind == Kind::kGraph) fewest = 0;
        if (layer.kind == Kind::kChooseCandidates) {  // here the reference word of the same rank becomes possible
            fewest = layer.rank < part.references ? UINT32_MAX : 0;
            for (std::uint32_t k = layer.rank; layer.rank < part.references && k <= layer.rank + part.slack; ++k) {
                const Layer& other = layers_[part_layers_[part.layers_begin + k]];
                const std::uint32_t begin = k - std::min(k, part.slack);
                fewest = std::min(fewest, options_[other.options_begin + layer.rank - begin].crossings);
            }
        }
        crossings_left_[t] = crossings_left_[t + 1] + fewest;
        links_left_[t] = links_left_[t + 1] + links;
        most_links_ = std::max(most_links_, links);
    }
    expected_.resize(positions_.size());
    std::int64_t expected = 0;
    for (std::size_t r = 0; r < positions_.size(); ++r) {
        const Part& part = parts_[reference_part_[r]];
        expected_[r] = expected;
        expected += kUnit * part.most / part.references;
    }
}

// Of a complete part with more candidate words than references, all but `slack` candidate words are matched; so if
// many of its candidate words but few of its references lie to the left of an option, some of its matches cross it.
void CrossingSearch::find_left_bounds() {
    const std::size_t open = positions_.size(), parts = parts_.size();
    counts_.assign(parts * (open + 1), 0);
    for (std::size_t r = 0; r < open; ++r) {
        for (std::size_t p = 0; p < parts; ++p) counts_[(r + 1) * parts + p] = counts_[r * parts + p];
        ++counts_[(r + 1) * parts + reference_part_[r]];
    }
    seen_.assign(parts, 0);
    for (const Layer& layer : layers_) {
        for (std::uint32_t o = layer.options_begin; o != layer.options_end; ++o) {
            std::uint32_t crossings = 0;
            const std::uint32_t* below = counts_.data() + options_[o].reference * parts;
            for (std::size_t p = 0; p < parts; ++p) {
                if (p == layer.part || parts_[p].kind == Kind::kGraph) continue;
                const std::uint32_t spare = parts_[p].kind == Kind::kChooseCandidates ? parts_[p].slack : 0;
                if (seen_[p] > spare + below[p]) crossings += seen_[p] - spare - below[p];
            }
            options_[o].left_bound = crossings;
        }
        ++seen_[layer.part];
    }
}

std::size_t CrossingSearch::fitting_width() const {
    if (small_) return beam_width_;
    const std::size_t work = options_.size() + layers_.size() * words_;
    return std::max<std::size_t>(1, std::min(beam_width_, kBeamWork / work));
}

// ----------------------------------------------------------------------------------------------- the search

CrossingSearch::Outcome CrossingSearch::pass(std::size_t width, bool stop_when_full, std::size_t budget) {
    nodes_.clear();
    now_.states.assign(1, State{0, 0, kNoWord, kNoWord, 0, false});
    now_.masks.assign(words_, 0);
    Outcome outcome = Outcome::kProven;
    for (std::size_t t = 0; t < layers_.size(); ++t) {
        children_.clear();
        if (!expand(t, budget)) return Outcome::kStopped;
        if (!small_ && width < kUnlimited / kChildrenAState && children_.size() > width * kChildrenAState) {
            const auto last = children_.begin() + static_cast<std::ptrdiff_t>(width * kChildrenAState);
            std::nth_element(children_.begin(), last, children_.end(), [](const Child& x, const Child& y) {
                return x.order != y.order ? x.order < y.order : x.sequence < y.sequence;
            });
            children_.erase(last, children_.end());
            std::sort(children_.begin(), children_.end(),
                      [](const Child& x, const Child& y) { return x.sequence < y.sequence; });
            outcome = Outcome::kDropped;
        }
        enter_children(t);
        if (next_.states.size() > width) {
            if (stop_when_full) return Outcome::kStopped;
            keep(width);
            outcome = Outcome::kDropped;
        }
        std::swap(now_, next_);
        if (now_.states.empty()) return outcome;  // all that is left is worse than the best so far
    }
    best_cost_ = now_.states[0].cost;
    take_path(now_.states[0].node);
    has_best_ = true;
    return outcome;
}

bool CrossingSearch::expand(std::size_t t, std::size_t budget) {
    const std::size_t price = words_ + (small_ && bounded_ ? (options_.size() - layers_[t].options_end) / kOptionsANode : 0);
    std::size_t paid = 0;
    for (std::uint32_t s = 0; s < now_.states.size(); ++s) {
        expand_state(t, s);
        spent_ += (children_.size() - paid) * price;
        paid = children_.size();
        if (layers_[t].kind == Kind::kGraph) spent_ += parts_[layers_[t].part].candidates / 8;
        if (spent_ > budget) return false;
    }
    return true;
}

void CrossingSearch::expand_state(std::size_t t, std::uint32_t index) {
    const Layer& layer = layers_[t];
    Part& part = parts_[layer.part];
    const std::uint64_t* used = now_.masks.data() + index * words_;
    count_above(used, layer);
    const auto add = [&](std::uint32_t option) { add_child(index, option, above_[option - layer.options_begin]); };
    if (layer.kind == Kind::kChooseReferences) {
        std::uint32_t first = layer.options_end;
        while (first > layer.options_begin && !has(used, options_[first - 1].reference)) --first;
        for (std::uint32_t o = first; o != layer.options_end; ++o) add(o);
    } else if (layer.kind == Kind::kChooseCandidates) {
        std::uint32_t o = layer.options_begin;
        while (o != layer.options_end && has(used, options_[o].reference)) ++o;
        if (o != layer.options_end) add(o);
        if (o != layer.options_begin || layer.rank < part.slack) add_child(index, kNoWord, 0);
    } else {
        const std::uint32_t rank = layer.rank;
        const std::uint32_t most = most_matches(part, rank, used, kNoWord, part.most);
        for (std::uint32_t o = layer.options_begin; o != layer.options_end; ++o) {
            const std::uint32_t reference = options_[o].reference;
            if (has(used, reference) || most == 0) continue;
            if (most_matches(part, rank + 1, used, reference, most - 1) == most - 1) add(o);
        }
        if (most_matches(part, rank + 1, used, kNoWord, most) == most) add_child(index, kNoWord, 0);
    }
}

// How many reference words in use lie to the right of each option.
void CrossingSearch::count_above(const std::uint64_t* used, const Layer& layer) {
    above_.resize(layer.options_end - layer.options_begin);
    std::uint32_t count = 0, end = static_cast<std::uint32_t>(positions_.size());
    for (std::size_t o = above_.size(); o-- > 0;) {
        const std::uint32_t begin = options_[layer.options_begin + o].reference + 1;
        count += count_bits(used, begin, end);
        above_[o] = count;
        end = begin;
    }
}

void CrossingSearch::add_child(std::uint32_t parent, std::uint32_t option_index, std::uint32_t above) {
    const State& state = now_.states[parent];
    Child child{state.cost, state.order, parent, option_index, static_cast<std::uint32_t>(children_.size())};
    if (option_index != kNoWord) {
        const Option& option = options_[option_index];
        const bool linked = option.links_previous && state.last != kNoWord &&
                            positions_[state.last] + 1 == positions_[option.reference];
        const std::int64_t links = option.links + linked;
        child.cost += kCrossing * (std::int64_t{option.crossings} + above) - links;
        if (!small_) {  // half of the crossings with open words as they are found, half as they are to be expected
            const std::uint64_t* used = now_.masks.data() + parent * words_;
            const std::int64_t below = kUnit * count_bits(used, 0, option.reference);
            const std::int64_t expected = std::max<std::int64_t>(0, expected_[option.reference] - below);
            child.order += 4 * (kUnit * (2 * std::int64_t{option.crossings} + above) + expected) - links;
        }
    }
    children_.push_back(child);
}

void CrossingSearch::enter_children(std::size_t t) {
    next_.states.clear();
    next_.masks.clear();
    std::size_t size = std::max<std::size_t>(table_.size(), 64);
    while (size < 2 * children_.size()) size *= 2;
    if (size != table_.size() || ++stamp_ == 0) {
        table_.assign(size, Slot{0, 0});
        stamp_ = 1;
    }
    for (const Child& child : children_) enter(t, child);
    std::size_t kept = 0;
    for (std::size_t s = 0; s < next_.states.size(); ++s) {
        if (next_.states[s].dead) continue;
        if (kept != s) {
            next_.states[kept] = next_.states[s];
            std::copy_n(next_.masks.begin() + s * words_, words_, next_.masks.begin() + kept * words_);
        }
        ++kept;
    }
    next_.states.resize(kept);
    next_.masks.resize(kept * words_);
}

// Adds a state unless it is there already at no higher cost, or cannot become better than the best path.
void CrossingSearch::enter(std::size_t t, const Child& child) {
    const Layer& layer = layers_[t];
    const State& parent = now_.states[child.parent];
    const std::size_t at = next_.masks.size();
    next_.masks.resize(at + words_);
    std::uint64_t* used = next_.masks.data() + at;
    std::copy_n(now_.masks.data() + child.parent * words_, words_, used);
    std::uint32_t choice = kNoWord, last = kNoWord;
    if (child.option != kNoWord) {
        choice = options_[child.option].reference;
        if (options_[child.option].links_next) last = choice;
        used[choice / 64] |= std::uint64_t{1} << (choice % 64);
    }
    for (std::uint32_t g = layer.gaps_begin; g != layer.gaps_end; ++g) {
        const std::uint32_t begin = gaps_[g].begin, end = gaps_[g].end, count = count_bits(used, begin, end);
        fill_bits(used, begin, begin + count, true);
        fill_bits(used, begin + count, end, false);
    }

    State state{child.cost, child.order, 0, last, parent.side, false};
    if (has_best_ && parent.side == 0 && choice != best_path_[t]) state.side = choice < best_path_[t] ? -1 : 1;
    const std::uint32_t slot = find_state(used, last);
    if (table_[slot].stamp == stamp_) {
        State& same = next_.states[table_[slot].state];
        if (same.cost <= state.cost) {
            next_.masks.resize(at);
            return;
        }
        same.dead = true;
    }
    if (bounded_ && (small_ || has_best_)) {
        const std::int64_t least = state.cost + bound(t, used);
        if (small_) state.order = least;
        if (has_best_ && (least > best_cost_ || (least == best_cost_ && state.side > 0))) {
            next_.masks.resize(at);
            return;
        }
    }
    state.node = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back({parent.node, choice});
    table_[slot] = {stamp_, static_cast<std::uint32_t>(next_.states.size())};
    next_.states.push_back(state);
}

// The slot of the table that holds this state, or should.
std::uint32_t CrossingSearch::find_state(const std::uint64_t* used, std::uint32_t last) {
    std::size_t slot = hash_of(used, words_, last) & (table_.size() - 1);
    while (table_[slot].stamp == stamp_) {
        const std::uint32_t state = table_[slot].state;
        if (next_.states[state].last == last &&
            std::equal(used, used + words_, next_.masks.begin() + state * words_))
            break;
        slot = (slot + 1) & (table_.size() - 1);
    }
    return static_cast<std::uint32_t>(slot);
}

// Keeps the `width` states of lowest order; of equal ones the leftmost.
void CrossingSearch::keep(std::size_t width) {
    orders_.clear();
    for (const State& state : next_.states) orders_.push_back(state.order);
    std::nth_element(orders_.begin(), orders_.begin() + width - 1, orders_.end());
    const std::int64_t highest = orders_[width - 1];
    std::size_t ties = width - static_cast<std::size_t>(std::count_if(orders_.begin(), orders_.begin() + width,
                                                                      [&](std::int64_t o) { return o < highest; }));
    std::size_t kept = 0;
    for (std::size_t s = 0; s < next_.states.size(); ++s) {
        const std::int64_t order = next_.states[s].order;
        if (order > highest || (order == highest && ties == 0)) continue;
        if (order == highest) --ties;
        next_.states[kept] = next_.states[s];
        std::copy_n(next_.masks.begin() + s * words_, words_, next_.masks.begin() + kept * words_);
        ++kept;
    }
    next_.states.resize(kept);
    next_.masks.resize(kept * words_);
}

void CrossingSearch::take_path(std::uint32_t node) {
    best_path_.resize(layers_.size());
    for (std::size_t t = layers_.size(); t-- > 0; node = nodes_[node].parent) best_path_[t] = nodes_[node].choice;
}

// The least that the layers behind `t` add to the cost of a state.
std::int64_t CrossingSearch::bound(std::size_t t, const std::uint64_t* used) const {
    std::uint32_t missing = matches_;
    for (std::size_t w = 0; w < words_; ++w) missing -= ones(used[w]);
    const std::int64_t links = std::min<std::int64_t>(links_left_[t + 1], std::int64_t{missing} * most_links_);
    const std::uint32_t crossings = small_ ? crossing_bound(t, used) : crossings_left_[t + 1];
    return kCrossing * crossings - links;
}

// Each match to come crosses settled ones, and those words in use that lie to its right.
std::uint32_t CrossingSearch::crossing_bound(std::size_t t, const std::uint64_t* used) const {
    const std::uint32_t open = static_cast<std::uint32_t>(positions_.size());
    std::uint32_t sum = 0;
    const auto crossings = [](const Option& option, std::uint32_t above) {
        return option.crossings + std::max(above, option.left_bound);
    };
    for (std::size_t l = t + 1; l < layers_.size(); ++l) {
        const Layer& layer = layers_[l];
        if (layer.kind != Kind::kChooseReferences) continue;
        std::uint32_t fewest = UINT32_MAX, above = 0, end = open;
        for (std::uint32_t o = layer.options_end; o-- > layer.options_begin;) {
            const Option& option = options_[o];
            if (has(used, option.reference)) break;
            above += count_bits(used, option.reference + 1, end);
            end = option.reference + 1;
            fewest = std::min(fewest, crossings(option, above));
        }
        sum += fewest;
    }
    for (const Part& part : parts_) {
        if (part.kind != Kind::kChooseCandidates) continue;
        const std::uint32_t* layers = part_layers_.data() + part.layers_begin;
        std::uint32_t above = 0, end = open;
        for (std::uint32_t r = part.references; r-- > 0;) {  // all of them are needed; in use are the first ones
            if (layers[r + part.slack] <= t) break;          // used before
            const std::uint32_t reference = part_references_[part.references_begin + r];
            if (has(used, reference)) break;
            above += count_bits(used, reference + 1, end);
            end = reference + 1;
            std::uint32_t fewest = UINT32_MAX;
            for (std::uint32_t k = r + part.slack; k + 1 > r && layers[k] > t; --k) {
                const std::uint32_t begin = k - std::min(k, part.slack);
                fewest = std::min(fewest, crossings(options_[layers_[layers[k]].options_begin + r - begin], above));
                if (k == 0) break;
            }
            sum += fewest;
        }
    }
    return sum;
}

// ------------------------------------------------------------------------------------------ graphs of synonyms

// The most matches of a graph's candidate words from rank `from` on with reference words that are neither used nor
// `taken`; no more than `enough` are looked for.
std::uint32_t CrossingSearch::most_matches(const Part& part, std::uint32_t from, const std::uint64_t* used,
                                           std::uint32_t taken, std::uint32_t enough) {
    const std::uint32_t* layers = part_layers_.data() + part.layers_begin;
    for (std::uint32_t k = 0; k < part.references; ++k) mate_[part_references_[part.references_begin + k]] = kNoWord;
    const auto has_witness = [&](std::uint32_t k) {
        const std::uint32_t reference = witness_[layers[k]];
        return reference != kNoWord && reference != taken && !has(used, reference);
    };
    std::uint32_t count = 0;
    for (std::uint32_t k = from; k < part.candidates && count < enough; ++k) {
        if (!has_witness(k)) continue;
        mate_[witness_[layers[k]]] = k;
        ++count;
    }
    for (std::uint32_t k = from; k < part.candidates && count < enough; ++k) {
        if (has_witness(k)) continue;
        if (++visit_ == 0) {
            std::fill(visited_.begin(), visited_.end(), 0);
            visit_ = 1;
        }
        count += augment(part, k, used, taken);
    }
    return count;
}

bool CrossingSearch::augment(const Part& part, std::uint32_t candidate, const std::uint64_t* used,
                             std::uint32_t taken) {
    const Layer& layer = layers_[part_layers_[part.layers_begin + candidate]];
    for (std::uint32_t o = layer.options_begin; o != layer.options_end; ++o) {
        const std::uint32_t reference = options_[o].reference;
        if (reference == taken || has(used, reference) || visited_[reference] == visit_) continue;
        visited_[reference] = visit_;
        if (mate_[reference] == kNoWord || augment(part, mate_[reference], used, taken)) {
            mate_[reference] = candidate;
            return true;
        }
    }
    return false;
}

}  // namespace mmeval
