// The state of the arc-eager parser: stack, remaining words and attachments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "transition_parser.h"

namespace mmeval {

class TransitionState {
   public:
    static constexpr std::int64_t kNone = -1;

    void start(std::size_t count) {
        count_ = count;
        next_ = 0;
        stack_.clear();
        returned_.clear();
        heads_.assign(count, kNone);
        labels_.assign(count, kNone);
        was_returned_.assign(count, false);
        starts_sentence_.assign(count, false);
        left_.resize(count);
        right_.resize(count);
        for (std::size_t word = 0; word < count; ++word) {
            left_[word].clear();
            right_[word].clear();
        }
    }

    bool is_final() const { return stack_.empty() && waiting() == 0; }
    std::size_t waiting() const { return count_ - next_ + returned_.size(); }
    std::size_t depth() const { return stack_.size(); }

    std::int64_t stack(std::size_t i) const { return i < stack_.size() ? stack_[stack_.size() - 1 - i] : kNone; }
    std::int64_t buffer(std::size_t i) const {
        if (i < returned_.size()) return returned_[returned_.size() - 1 - i];
        const std::size_t word = next_ + i - returned_.size();
        return word < count_ ? static_cast<std::int64_t>(word) : kNone;
    }
    std::int64_t last_left(std::int64_t word) const { return last(left_, word); }
    std::int64_t last_right(std::int64_t word) const { return last(right_, word); }
    std::int64_t head(std::size_t word) const { return heads_[word]; }
    std::int64_t label(std::size_t word) const { return labels_[word]; }

    bool allows(Move move) const {
        const bool at_start = waiting() > 0 && starts_sentence_[static_cast<std::size_t>(buffer(0))];
        switch (move) {
            case Move::kShift:
                if (stack_.empty()) return waiting() > 0;
                return waiting() >= 2 && !at_start && !was_returned_[static_cast<std::size_t>(buffer(0))];
            case Move::kReduce: return !stack_.empty();
            case Move::kLeft:
            case Move::kRight: return !stack_.empty() && waiting() > 0 && !at_start;
            case Move::kBreak:
                return waiting() >= 2 && buffer(1) == buffer(0) + 1 && !starts_sentence_[static_cast<std::size_t>(buffer(1))];
        }
        return false;
    }

    // `step` is the number of the step, which is stored as the label.
    void take(Move move, std::int64_t step) {
        switch (move) {
            case Move::kShift: push(); break;
            case Move::kReduce:
                if (heads_[static_cast<std::size_t>(stack(0))] >= 0 || stack_.size() == 1) {
                    stack_.pop_back();
                } else {
                    was_returned_[static_cast<std::size_t>(stack(0))] = true;
                    returned_.push_back(stack(0));
                    stack_.pop_back();
                }
                break;
            case Move::kLeft:
                attach(buffer(0), stack(0), step);
                was_returned_[static_cast<std::size_t>(buffer(0))] = false;
                stack_.pop_back();
                break;
            case Move::kRight:
                attach(stack(0), buffer(0), step);
                push();
                break;
            case Move::kBreak: starts_sentence_[static_cast<std::size_t>(buffer(1))] = true; break;
        }
    }

   private:
    using Lists = std::vector<std::vector<std::int64_t>>;

    static std::int64_t last(const Lists& lists, std::int64_t word) {
        if (word < 0 || lists[static_cast<std::size_t>(word)].empty()) return kNone;
        return lists[static_cast<std::size_t>(word)].back();
    }

    void push() {
        const std::int64_t word = buffer(0);
        if (returned_.empty())
            ++next_;
        else
            returned_.pop_back();
        stack_.push_back(word);
    }

    void attach(std::int64_t head, std::int64_t word, std::int64_t step) {
        const std::int64_t old = heads_[static_cast<std::size_t>(word)];
        if (old >= 0) {
            // As in the program that trained the weights: only the last attached word is taken off the old head.
            auto& list = (old > word ? left_ : right_)[static_cast<std::size_t>(old)];
            if (!list.empty() && list.back() == word) list.pop_back();
        }
        (head > word ? left_ : right_)[static_cast<std::size_t>(head)].push_back(word);
        heads_[static_cast<std::size_t>(word)] = head;
        labels_[static_cast<std::size_t>(word)] = step;
    }

    std::size_t count_ = 0, next_ = 0;
    std::vector<std::int64_t> stack_, returned_, heads_, labels_;
    std::vector<bool> was_returned_, starts_sentence_;
    Lists left_, right_;
};

}  // namespace mmeval
