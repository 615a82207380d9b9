#include "transition_parser.h"

#include <algorithm>
#include <stdexcept>

#include "parallel.h"
#include "transition_state.h"

namespace mmeval {

struct TransitionParser::Room {
    WordVectors::Room vectors;
    TransitionState state;
    std::vector<float> tag_scores, narrow, features, sums, step_scores;
};

void TransitionParser::check() const {
    vectors.check();
    const std::size_t pieces = bias.size() / std::max<std::size_t>(1, hidden());
    if (tagger.inputs() != vectors.width() || narrow.inputs() != vectors.width() || hidden() == 0 || pieces == 0 ||
        bias.size() != pieces * hidden() || features.inputs() != narrow.outputs() ||
        features.outputs() != kFeatures * bias.size() || absent.size() != features.outputs() ||
        scores.outputs() != steps.size() || steps.empty())
        throw std::invalid_argument("the layers of the parser do not fit together");
}

namespace {

constexpr std::size_t kMostSteps = 16;  // per word; two or three are usual

// Attaches words to the nearest word below their head, level by level, whose label is the lifted one.
void restore_lifted(std::size_t count, const std::vector<std::int32_t>& lifted, std::int32_t* heads,
                    const std::int32_t* labels) {
    for (std::size_t word = 0; word < count; ++word) {
        if (lifted[word] < 0) continue;
        std::vector<std::int32_t> level{heads[word]};
        std::vector<bool> seen(count, false);
        std::int32_t found = -1;
        while (!level.empty() && found < 0) {
            std::vector<std::int32_t> below;
            for (const std::int32_t parent : level) {
                for (std::size_t child = 0; child < count && found < 0; ++child) {
                    if (heads[child] != parent || static_cast<std::int32_t>(child) == parent || child == word || seen[child])
                        continue;
                    seen[child] = true;
                    if (labels[child] == lifted[word]) found = static_cast<std::int32_t>(child);
                    below.push_back(static_cast<std::int32_t>(child));
                }
                if (found >= 0) break;
            }
            level.swap(below);
        }
        if (found >= 0) heads[word] = found;
    }
}

}  // namespace

void TransitionParser::add_features(const std::int64_t* tokens, Room& room) const {
    std::copy(bias.begin(), bias.end(), room.sums.begin());
    for (std::size_t feature = 0; feature < kFeatures; ++feature) {
        const float* from = tokens[feature] < 0
                                ? absent.data()
                                : room.features.data() + static_cast<std::size_t>(tokens[feature]) * features.outputs();
        from += feature * bias.size();
        for (std::size_t i = 0; i < bias.size(); ++i) room.sums[i] += from[i];
    }
    const std::size_t pieces = bias.size() / hidden();
    for (std::size_t piece = 1; piece < pieces; ++piece)
        for (std::size_t i = 0; i < hidden(); ++i)
            room.sums[i] = std::max(room.sums[i], room.sums[piece * hidden() + i]);
}

void TransitionParser::parse_sentence(const float* words, std::size_t count, Room& room, std::int32_t* heads,
                                      std::int32_t* labels) const {
    room.narrow.resize(count * narrow.outputs());
    room.features.resize(count * features.outputs());
    room.sums.resize(bias.size());
    room.step_scores.resize(steps.size());
    narrow.apply(words, vectors.width(), count, room.narrow.data());
    features.apply(room.narrow.data(), narrow.outputs(), count, room.features.data());
    TransitionState& state = room.state;
    state.start(count);
    for (std::size_t taken = 0; taken < kMostSteps * (count + 1) && !state.is_final(); ++taken) {
        const std::int64_t top = state.stack(0), next = state.buffer(0);
        const std::int64_t tokens[kFeatures] = {next,          state.buffer(1),        top,
                                                state.stack(1), state.stack(2),        state.last_left(next),
                                                state.last_left(top), state.last_right(top)};
        add_features(tokens, room);
        scores.apply(room.sums.data(), hidden(), 1, room.step_scores.data());
        bool allowed[5];
        for (int move = 0; move < 5; ++move) allowed[move] = state.allows(static_cast<Move>(move));
        std::int64_t best = -1;
        for (std::size_t step = 0; step < steps.size(); ++step)
            if (allowed[static_cast<int>(steps[step].move)] &&
                (best < 0 || room.step_scores[step] > room.step_scores[static_cast<std::size_t>(best)]))
                best = static_cast<std::int64_t>(step);
        if (best < 0) break;
        state.take(steps[static_cast<std::size_t>(best)].move, best);
    }
    std::vector<std::int32_t> lifted(count, -1);
    bool is_any_lifted = false;
    for (std::size_t word = 0; word < count; ++word) {
        const bool is_root = state.head(word) < 0;
        heads[word] = static_cast<std::int32_t>(is_root ? static_cast<std::int64_t>(word) : state.head(word));
        labels[word] = is_root ? root_label : steps[static_cast<std::size_t>(state.label(word))].label;
        if (!is_root) lifted[word] = steps[static_cast<std::size_t>(state.label(word))].lifted;
        is_any_lifted = is_any_lifted || lifted[word] >= 0;
    }
    if (is_any_lifted) restore_lifted(count, lifted, heads, labels);
}

void TransitionParser::parse(const Batch& batch, std::size_t threads, std::int32_t* tags, std::int32_t* heads,
                             std::int32_t* labels) const {
    WordVectors::Words words;
    vectors.embed(batch.words, words, threads);
    in_pieces(batch.ends.size(), threads, [&](std::size_t, std::size_t begin, std::size_t end) {
        Room room;
        for (std::size_t sentence = begin; sentence < end; ++sentence) {
            const std::size_t first = sentence == 0 ? 0 : batch.ends[sentence - 1];
            const std::size_t count = batch.ends[sentence] - first;
            if (count == 0) continue;
            const float* vectors_of = vectors.contextual(words, batch.sentences + first, count, room.vectors);
            room.tag_scores.resize(count * tagger.outputs());
            tagger.apply(vectors_of, vectors.width(), count, room.tag_scores.data());
            for (std::size_t word = 0; word < count; ++word) {
                const float* of = room.tag_scores.data() + word * tagger.outputs();
                tags[first + word] = static_cast<std::int32_t>(std::max_element(of, of + tagger.outputs()) - of);
            }
            parse_sentence(vectors_of, count, room, heads + first, labels + first);
        }
    });
}

}  // namespace mmeval
