// A greedy arc-eager dependency parser with a small neural network that chooses each step, and a part-of-speech tagger
// on the same word vectors.
//
// A sentence is read from left to right with a stack of unfinished words. A step shifts the next word onto the stack,
// removes the top word, attaches one of the two to the other, or marks the start of a new sentence. A word that would be
// removed without a head goes back in front of the next word.
//
// Reference: Honnibal and Johnson (2015). An Improved Non-monotonic Transition System for Dependency Parsing. EMNLP.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dense_layers.h"
#include "word_vectors.h"

namespace mmeval {

enum class Move : std::uint8_t { kShift, kReduce, kLeft, kRight, kBreak };

struct Step {
    Move move;
    std::int32_t label;   // of the attached word
    std::int32_t lifted;  // label of the word below the head to which it really belongs; -1 for none
};

class TransitionParser {
   public:
    static constexpr std::size_t kFeatures = 8;

    WordVectors vectors;
    Linear tagger;
    Linear narrow;              // word vector -> input of the features
    Linear features;            // outputs: feature by feature, piece by piece
    std::vector<float> absent;  // the outputs of `features` for a word that does not exist
    std::vector<float> bias;    // of the sum of the features: piece by piece
    Linear scores;
    std::vector<Step> steps;
    std::int32_t root_label = 0;

    void check() const;  // throws std::invalid_argument if the sizes do not fit together

    struct Batch {
        std::vector<WordFeatures> words;      // distinct
        const std::int32_t* sentences;        // numbers of words, one sentence after the other
        std::vector<std::size_t> ends;        // of the sentences
    };
    // Writes the tag, the head (of a root: itself) and the label of every word.
    void parse(const Batch& batch, std::size_t threads, std::int32_t* tags, std::int32_t* heads, std::int32_t* labels) const;

   private:
    struct Room;
    void parse_sentence(const float* words, std::size_t count, Room& room, std::int32_t* heads, std::int32_t* labels) const;
    void add_features(const std::int64_t* tokens, Room& room) const;
    std::size_t hidden() const { return scores.inputs(); }
};

}  // namespace mmeval
