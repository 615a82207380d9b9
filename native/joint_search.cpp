// Layers, states and bounds of the joint search.
#include "joint_search.h"

#include <limits>

#include "bits.h"

namespace mmeval {

namespace {

constexpr std::int64_t kCrossing = std::int64_t{1} << 24;  // outweighs all links of a text
constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

// Longer texts have no bounds: the bound of a state costs a pass over all options.
constexpr std::size_t kMostBoundReferences = 256, kMostBoundOptions = 4096;
constexpr std::size_t kOptionsPerNode = 64;  // options that a bound checks at the cost of one search node

constexpr std::size_t kMostWork = std::size_t{1} << 25;  // options times their cost: limits the width for long texts
constexpr std::size_t kWidening = 16;
constexpr double kSynonymOrder = 1e6, kLinkOrder = 1e-3;  // value of a match and of a link for the beam, in crossings

bool has(const std::uint64_t* mask, std::uint32_t bit) { return mask[bit / 64] >> (bit % 64) & 1; }

// The bits of word `w` in [begin, end).
std::uint64_t bits_within(std::uint32_t w, std::uint32_t begin, std::uint32_t end) {
    std::uint64_t bits = ~std::uint64_t{0};
    if (w == begin / 64) bits &= ~std::uint64_t{0} << (begin % 64);
    if (w == (end - 1) / 64) bits &= ~std::uint64_t{0} >> (63 - (end - 1) % 64);
    return bits;
}

std::uint32_t count_bits(const std::uint64_t* mask, std::uint32_t begin, std::uint32_t end) {
    std::uint32_t count = 0;
    for (std::uint32_t w = begin / 64; begin < end && w <= (end - 1) / 64; ++w)
        count += count_of_bits(mask[w] & bits_within(w, begin, end));
    return count;
}

void fill_bits(std::uint64_t* mask, std::uint32_t begin, std::uint32_t end, bool value) {
    for (std::uint32_t w = begin / 64; begin < end && w <= (end - 1) / 64; ++w)
        mask[w] = value ? mask[w] | bits_within(w, begin, end) : mask[w] & ~bits_within(w, begin, end);
}

std::size_t hash_of(const std::uint64_t* row, std::size_t words, std::uint32_t last) {
    std::uint64_t hash = last * std::uint64_t{0x9E3779B97F4A7C15};
    for (std::size_t w = 0; w < words; ++w) {
        hash = (hash ^ row[w]) * std::uint64_t{0xD6E8FEB86659FD93};
        hash ^= hash >> 32;
    }
    return static_cast<std::size_t>(hash);
}

}  // namespace

bool JointSearch::State::better_than(const State& other) const {
    if (lost != other.lost) return lost < other.lost;
    return synonyms != other.synonyms ? synonyms > other.synonyms : cost < other.cost;
}

bool JointSearch::search(const JointProblem& problem) {
    types_ = problem.types.data();
    most_synonyms_ = problem.most_synonyms;
    blocked_.resize(std::max(blocked_.size(), problem.types.size() + problem.stems.size()));
    number_references(problem);
    if (!make_layers(problem)) {
        layers_.clear();
        return false;
    }
    find_gaps();
    has_best_ = false;
    const auto fitting = [&](std::size_t cost) {
        return std::max<std::size_t>(1, std::min(beam_width_, kMostWork / (options_.size() * cost)));
    };
    Outcome outcome = pass(fitting(words_), kUnlimited);  // enough for most sentences
    if (outcome == Outcome::kProven) return true;
    if (references_.size() > kMostBoundReferences || options_.size() > kMostBoundOptions) return false;
    find_bounds();
    std::size_t width = fitting(options_.size());
    outcome = pass(width, kUnlimited);
    spent_ = 0;
    while (outcome == Outcome::kDropped && spent_ < budget_) {
        width = width < budget_ ? width * kWidening : kUnlimited;
        outcome = pass(width, budget_);
    }
    return outcome == Outcome::kProven;
}

// ---------------------------------------------------------------------------------------------- the problem

// Numbers the open reference words and counts the settled matches to the left of each.
void JointSearch::number_references(const JointProblem& problem) {
    begin_.clear();
    std::uint32_t open = 0;
    for (const WordType& type : problem.types) {
        begin_.push_back(open);
        if (type.open) open += type.counts[kReference];
    }
    by_type_.resize(open);
    words_ = std::max<std::size_t>(1, (open + 63) / 64);
    references_.clear();
    left_.assign(problem.types.size(), 0);
    std::int32_t settled = 0;
    double expected = 0;
    for (std::uint32_t j = 0; references_.size() < open; ++j) {
        if (problem.mates[kReference][j] != kNoWord) ++settled;
        const std::uint32_t v = problem.types_of[kReference][j];
        const WordType& type = types_[v];
        if (!type.open) continue;
        const StemClass& stem = problem.stems[type.stem];
        Reference reference{j, v, v, left_[v]++, 0, kNoWord, false, false, settled, expected};
        const bool only_by_stem = type.counts[kCandidate] == 0 && type.synonym_of == 0;
        if (only_by_stem) reference.kin = static_cast<std::uint32_t>(problem.types.size()) + type.stem;
        reference.loss = type.more() == kReference && stem.scarce(kReference) && !stem.scarce(kCandidate);
        reference.needed = type.more() == kCandidate || (reference.loss && type.counts[kCandidate] == 0);
        by_type_[begin_[v] + reference.rank] = static_cast<std::uint32_t>(references_.size());
        references_.push_back(reference);
        expected += std::min(1.0, double(type.counts[kCandidate]) / type.counts[kReference]);
    }
}

// False if there are too many options.
bool JointSearch::make_layers(const JointProblem& problem) {
    layers_.clear();
    options_.clear();
    left_.assign(problem.types.size(), 0);
    for (std::uint32_t i = 0; i < problem.candidate_size; ++i) {
        const std::uint32_t mate = problem.mates[kCandidate][i];
        if (mate != kNoWord)  // from here on this match is to the left
            for (Reference& reference : references_) reference.settled += reference.position < mate ? 1 : -1;
        const std::uint32_t w = problem.types_of[kCandidate][i];
        const WordType& type = types_[w];
        if (!type.open) continue;
        const StemClass& stem = problem.stems[type.stem];
        Layer layer{};
        layer.candidate = i;
        layer.type = w;
        layer.rank = left_[w]++;
        layer.follows = !layers_.empty() && layers_.back().candidate + 1 == i;
        layer.loss = type.more() == kCandidate && stem.scarce(kCandidate);
        layer.needed = type.more() == kReference || (layer.loss && type.counts[kReference] == 0);
        add_options(problem, layer);
        if (options_.size() > kMostOptions) return false;
        layers_.push_back(layer);
    }
    return true;
}

void JointSearch::add_options(const JointProblem& problem, Layer& layer) {
    const WordType& type = types_[layer.type];
    const std::uint32_t k = layer.rank;
    const auto add = [&](std::uint32_t v, std::uint32_t begin, std::uint32_t end, std::uint8_t level) {
        for (std::uint32_t at = begin_[v] + begin; at < begin_[v] + end; ++at)
            add_option(problem, layer, by_type_[at], level);
    };
    layer.options_begin = static_cast<std::uint32_t>(options_.size());
    if (type.more() == kReference) {
        add(layer.type, k, k + type.spare() + 1, 0);
    } else {
        add(layer.type, k - std::min(k, type.spare()), std::min(k + 1, type.counts[kReference]), 0);
        const StemClass& stem = problem.stems[type.stem];
        for (std::uint32_t v = stem.matches() > 0 ? stem.first_type : kNoWord; v != kNoWord; v = types_[v].next_in_stem)
            if (types_[v].more() == kReference) add(v, 0, types_[v].counts[kReference], 1);
        for (std::uint32_t e = type.synonyms_begin; e != type.synonyms_end; ++e)
            add(problem.synonyms[e], 0, types_[problem.synonyms[e]].counts[kReference], 2);
        std::sort(options_.begin() + layer.options_begin, options_.end(),
                  [](const Option& x, const Option& y) { return x.reference < y.reference; });
    }
    layer.options_end = static_cast<std::uint32_t>(options_.size());
}

void JointSearch::add_option(const JointProblem& problem, const Layer& layer, std::uint32_t r, std::uint8_t level) {
    Reference& reference = references_[r];
    const std::uint32_t i = layer.candidate, j = reference.position;
    const std::uint32_t* mates = problem.mates[kCandidate];
    const bool left = i > 0 && mates[i - 1] != kNoWord && mates[i - 1] + 1 == j;
    const bool right = i + 1 < problem.candidate_size && mates[i + 1] == j + 1;
    const std::uint32_t crossings = static_cast<std::uint32_t>(reference.settled);
    reference.last_layer = static_cast<std::uint32_t>(layers_.size());
    if (layer.follows && r > 0 && references_[r - 1].position + 1 == j) {
        const auto end = options_.begin() + layer.options_begin;
        const auto at = std::lower_bound(options_.begin() + layers_.back().options_begin, end, r - 1,
                                         [](const Option& x, std::uint32_t y) { return x.reference < y; });
        if (at != end && at->reference == r - 1) at->links_next = true;
    }
    options_.push_back({r, crossings, level, static_cast<std::uint8_t>(left + right), false, 0, 0});
}

// A gap is a run of neighbouring reference words that no later candidate word can take. Only the number of those in use
// matters for the rest of the search, so states are distinguished by that number alone.
void JointSearch::find_gaps() {
    gaps_.clear();
    const std::uint32_t open = static_cast<std::uint32_t>(references_.size());
    for (std::uint32_t t = 0; t < layers_.size(); ++t) {
        layers_[t].gaps_begin = static_cast<std::uint32_t>(gaps_.size());
        for (std::uint32_t o = layers_[t].options_begin; o != layers_[t].options_end; ++o) {
            Gap gap{options_[o].reference, options_[o].reference + 1};
            if (references_[gap.begin].last_layer != t) continue;
            if (references_[gap.begin].loss) layers_[t].last_for_loss = true;
            if (gaps_.size() > layers_[t].gaps_begin && gaps_.back().end > gap.begin) continue;  // it is inside a gap
            while (gap.begin > 0 && references_[gap.begin - 1].last_layer <= t) --gap.begin;
            while (gap.end < open && references_[gap.end].last_layer <= t) ++gap.end;
            if (gap.end - gap.begin > 1) gaps_.push_back(gap);
        }
        layers_[t].gaps_end = static_cast<std::uint32_t>(gaps_.size());
    }
}

// The most links and synonyms that the remaining layers can add, and the options that take each reference word.
void JointSearch::find_bounds() {
    links_left_.assign(layers_.size() + 1, 0);
    synonyms_left_.assign(layers_.size() + 1, 0);
    for (std::size_t t = layers_.size(); t-- > 0;) {
        std::uint32_t links = 0, synonyms = 0;
        for (std::uint32_t o = layers_[t].options_begin; o != layers_[t].options_end; ++o) {
            Option& option = options_[o];
            option.next_use = references_[option.reference].first_use;
            option.fewest = option.crossings;
            if (option.next_use != kNoWord) option.fewest = std::min(option.fewest, options_[option.next_use].fewest);
            references_[option.reference].first_use = o;
            links = std::max<std::uint32_t>(links, option.links + layers_[t].follows);
            if (option.level == 2) synonyms = 1;
        }
        links_left_[t] = links_left_[t + 1] + links;
        synonyms_left_[t] = synonyms_left_[t + 1] + synonyms;
    }
}

// ----------------------------------------------------------------------------------------------- the search

JointSearch::Outcome JointSearch::pass(std::size_t width, std::size_t budget) {
    nodes_.clear();
    now_.states.assign(1, State{0, 0, 0, 0, 0, kNoWord, kNoWord, kOn, false});
    now_.rows.assign(words_, 0);
    for (std::size_t v = 0; v < left_.size(); ++v) left_[v] = types_[v].counts[kCandidate];
    Outcome outcome = Outcome::kProven;
    for (std::size_t t = 0; t < layers_.size(); ++t) {
        --left_[layers_[t].type];
        next_.states.clear();
        next_.rows.clear();
        clear_table(0);
        for (std::uint32_t s = 0; s < now_.states.size() && spent_ <= budget; ++s) expand(t, s);
        if (spent_ > budget) return Outcome::kStopped;
        if (keep(width)) outcome = Outcome::kDropped;
        std::swap(now_, next_);
        if (now_.states.empty()) return outcome;  // everything else is worse than the best so far
    }
    const State* best = &now_.states[0];
    for (const State& state : now_.states)
        if (state.better_than(*best)) best = &state;
    if (has_best_ && best_.better_than(*best)) return outcome;
    best_ = *best;
    has_best_ = true;
    best_path_.resize(layers_.size());
    std::uint32_t node = best_.node;
    for (std::size_t t = layers_.size(); t-- > 0; node = nodes_[node].parent) best_path_[t] = nodes_[node].option;
    return outcome;
}

// In an optimum, two matches with equal words in the reference never cross, nor do two matches by the same stem,
// because swapping their mates would save a crossing. So of each kin, only words to the right of those in use can be
// taken.
void JointSearch::expand(std::size_t t, std::uint32_t index) {
    const Layer& layer = layers_[t];
    const std::uint64_t* used = now_.rows.data() + index * words_;
    ++visit_;
    steps_.clear();
    if (spare(used, layer)) steps_.push_back({kNoWord, 0});
    std::uint32_t above = 0, end = static_cast<std::uint32_t>(references_.size());
    for (std::uint32_t o = layer.options_end; o-- > layer.options_begin;) {
        const std::uint32_t r = options_[o].reference, kin = references_[r].kin;
        above += count_bits(used, r + 1, end);
        end = r + 1;
        if (has(used, r)) blocked_[kin] = visit_;
        else if (blocked_[kin] != visit_ && allowed(used, layer, options_[o])) steps_.push_back({o, above});
    }
    const std::uint32_t in_use = above + count_bits(used, 0, end);
    const std::size_t states = next_.states.size() + steps_.size();
    if (2 * states > table_.size()) clear_table(4 * states);
    while (!steps_.empty()) {
        enter(t, index, steps_.back(), in_use);
        steps_.pop_back();
    }
}

// Whether all words that must be matched with equal words still can be.
bool JointSearch::allowed(const std::uint64_t* used, const Layer& layer, const Option& option) const {
    const std::uint32_t v = references_[option.reference].type, rank = references_[option.reference].rank;
    if (option.level > 0) return spare(used, layer) && rank + left_[v] < types_[v].counts[kReference];
    return types_[v].more() == kReference || rank + types_[v].spare() <= layer.rank || rank == 0 ||
           has(used, by_type_[begin_[v] + rank - 1]);
}

// Whether the candidate word is not needed for an equal word.
bool JointSearch::spare(const std::uint64_t* used, const Layer& layer) const {
    const WordType& type = types_[layer.type];
    if (type.more() == kReference) return false;
    return layer.rank < type.spare() || has(used, by_type_[begin_[layer.type] + layer.rank - type.spare()]);
}

// Adds a state, unless an equal one is at least as good or it cannot beat the best path.
void JointSearch::enter(std::size_t t, std::uint32_t parent, Step step, std::uint32_t in_use) {
    State state = now_.states[parent];
    const std::size_t at = next_.rows.size();
    next_.rows.insert(next_.rows.end(), now_.rows.begin() + parent * words_, now_.rows.begin() + (parent + 1) * words_);
    std::uint64_t* used = next_.rows.data() + at;
    if (step.option == kNoWord) {
        state.lost += layers_[t].loss;
        state.last = kNoWord;
    } else {
        const Option& option = options_[step.option];
        used[option.reference / 64] |= std::uint64_t{1} << (option.reference % 64);
        follow(state, option, step.above, in_use);
    }
    leave(state, used, t);
    if (has_best_ && state.place == kOn && step.option != best_path_[t])
        state.place = step.option < best_path_[t] ? kBefore : kBehind;
    spent_ += words_;
    Slot& slot = table_[find_slot(used, state.last)];
    const bool known = slot.stamp == stamp_;
    if (known) state.bound = next_.states[slot.state].bound;
    else if (has_best_) state.bound = kCrossing * crossing_bound(t, used) - links_left_[t + 1];
    if (known ? !state.better_than(next_.states[slot.state]) : has_best_ && hopeless(t, state)) {
        next_.rows.resize(at);
        return;
    }
    if (known) next_.states[slot.state].dead = true;
    slot = {stamp_, static_cast<std::uint32_t>(next_.states.size())};
    nodes_.push_back({state.node, step.option});
    state.node = static_cast<std::uint32_t>(nodes_.size() - 1);
    next_.states.push_back(state);
}

void JointSearch::follow(State& state, const Option& option, std::uint32_t above, std::uint32_t in_use) const {
    const Reference& reference = references_[option.reference];
    const bool linked = state.last != kNoWord && references_[state.last].position + 1 == reference.position;
    const int links = option.links + linked;
    state.cost += kCrossing * (std::int64_t{option.crossings} + above) - links;
    state.synonyms += option.level == 2;
    state.last = option.links_next ? option.reference : kNoWord;
    // crossings with open words: half as counted so far, half as expected
    const double missing = reference.expected - (in_use - above);
    state.expected += option.crossings + 0.5 * (above + std::max(0.0, missing)) - kLinkOrder * links;
}

// Merges the reference words for which layer `t` is the last chance: only the number in use is kept.
void JointSearch::leave(State& state, std::uint64_t* used, std::size_t t) const {
    for (std::uint32_t o = layers_[t].options_begin; layers_[t].last_for_loss && o != layers_[t].options_end; ++o) {
        const Reference& reference = references_[options_[o].reference];
        state.lost += reference.loss && reference.last_layer == t && !has(used, options_[o].reference);
    }
    for (std::uint32_t g = layers_[t].gaps_begin; g != layers_[t].gaps_end; ++g) {
        const std::uint32_t begin = gaps_[g].begin, end = gaps_[g].end, count = count_bits(used, begin, end);
        fill_bits(used, begin, begin + count, true);
        fill_bits(used, begin + count, end, false);
    }
}

// Makes room for the states of a layer and re-inserts the existing ones.
void JointSearch::clear_table(std::size_t size) {
    std::size_t slots = std::max<std::size_t>(table_.size(), 64);
    while (slots < size) slots *= 2;
    if (slots != table_.size() || ++stamp_ == 0) {
        table_.assign(slots, Slot{0, 0});
        stamp_ = 1;
    }
    for (std::uint32_t s = 0; s < next_.states.size(); ++s) {
        const State& state = next_.states[s];
        if (!state.dead) table_[find_slot(next_.rows.data() + s * words_, state.last)] = {stamp_, s};
    }
}

std::uint32_t JointSearch::find_slot(const std::uint64_t* used, std::uint32_t last) const {
    std::size_t slot = hash_of(used, words_, last) & (table_.size() - 1);
    while (table_[slot].stamp == stamp_) {
        const std::uint32_t s = table_[slot].state;
        if (next_.states[s].last == last && std::equal(used, used + words_, next_.rows.begin() + s * words_)) break;
        slot = (slot + 1) & (table_.size() - 1);
    }
    return static_cast<std::uint32_t>(slot);
}

// Drops the states that have lost more than others, and all but the `width` lowest in order (of equals, the leftmost).
// Returns whether there were more.
bool JointSearch::keep(std::size_t width) {
    std::uint32_t least = UINT32_MAX;
    for (const State& state : next_.states) least = std::min(least, state.lost);
    ranks_.clear();
    for (std::uint32_t s = 0; s < next_.states.size(); ++s) {
        const State& state = next_.states[s];
        if (!state.dead && state.lost == least) ranks_.push_back({order(state), s});  // an optimum loses the least
    }
    const bool more = ranks_.size() > width;
    if (more) {
        std::nth_element(ranks_.begin(), ranks_.begin() + static_cast<std::ptrdiff_t>(width), ranks_.end());
        ranks_.resize(width);
        std::sort(ranks_.begin(), ranks_.end(), [](const auto& x, const auto& y) { return x.second < y.second; });
    }
    for (std::size_t k = 0; k < ranks_.size(); ++k) {
        const std::uint32_t s = ranks_[k].second;
        if (k == s) continue;
        next_.states[k] = next_.states[s];
        std::copy_n(next_.rows.begin() + s * words_, words_, next_.rows.begin() + k * words_);
    }
    next_.states.resize(ranks_.size());
    next_.rows.resize(ranks_.size() * words_);
    return more;
}

double JointSearch::order(const State& state) const {
    const double crossings = has_best_ ? static_cast<double>(state.cost + state.bound) / kCrossing : state.expected;
    return crossings - kSynonymOrder * state.synonyms;
}

// Whether no continuation of a state after layer `t` can beat the best path.
bool JointSearch::hopeless(std::size_t t, const State& state) const {
    if (state.lost != best_.lost) return state.lost > best_.lost;
    const std::uint32_t most = std::min(most_synonyms_, state.synonyms + synonyms_left_[t + 1]);
    if (most != best_.synonyms) return most < best_.synonyms;
    const std::int64_t least = state.cost + state.bound;
    return least != best_.cost ? least > best_.cost : state.place == kBehind;
}

// The fewest crossings with settled matches that a reference word has as the mate of a candidate word after layer `t`.
std::uint32_t JointSearch::fewest_behind(std::size_t t, std::uint32_t reference) const {
    std::uint32_t o = references_[reference].first_use;
    while (o < layers_[t].options_end) o = options_[o].next_use;
    return options_[o].fewest;
}

// Each later match crosses settled matches and the matches of used words to its right.
std::uint32_t JointSearch::crossing_bound(std::size_t t, const std::uint64_t* used) {
    spent_ += (options_.size() - layers_[t].options_end) / kOptionsPerNode;
    above_.resize(references_.size());
    std::uint32_t above = 0, sum = 0;
    for (std::uint32_t r = static_cast<std::uint32_t>(references_.size()); r-- > 0;) {
        above_[r] = above;
        if (has(used, r)) ++above;
        else if (references_[r].needed && references_[r].last_layer > t) sum += above + fewest_behind(t, r);
    }
    for (std::size_t l = t + 1; l < layers_.size(); ++l) {
        if (!layers_[l].needed) continue;
        std::uint32_t fewest = UINT32_MAX;
        for (std::uint32_t o = layers_[l].options_begin; o != layers_[l].options_end; ++o)
            if (!has(used, options_[o].reference))
                fewest = std::min(fewest, options_[o].crossings + above_[options_[o].reference]);
        if (fewest != UINT32_MAX) sum += fewest;
    }
    return sum;
}

}  // namespace mmeval
