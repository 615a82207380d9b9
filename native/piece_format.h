// The form of a piece: n-grams with counts and the tokens that they use. See ngram_pieces.h.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bytes_reader.h"
#include "ngram_pieces.h"

namespace mmeval {

// Layout of a piece, in the machine's byte order: images; the tokenizer's name; the tokens as (number, size of all,
// lengths, bytes); for each order the number of n-grams with count 1 and with a larger count; the bytes per token
// number (2 or 4); then for each order the token numbers of all n-grams, and the counts above 1.
class PieceWriter {
public:
    PieceWriter(const Vocabulary& tokens, std::uint64_t images, std::string_view tokenizer)
        : tokens_(tokens), images_(images), tokenizer_(tokenizer), number_(tokens.size(), 0) {}

    // The n-grams as entries with token(place), which is 0 after the last token, and count.
    template <typename Entry>
    std::string write(const std::vector<Entry>& entries) {
        std::uint64_t sizes[kOrders][2] = {};
        used_.clear();
        std::uint64_t bytes = 0;
        for (const Entry& entry : entries) {
            const int order = order_of(entry);
            ++sizes[order - 1][entry.count > 1];
            for (int place = 0; place < order; ++place) {
                std::uint32_t& number = number_[entry.token(place) - 1];
                if (number != 0) continue;
                used_.push_back(entry.token(place) - 1);
                number = static_cast<std::uint32_t>(used_.size());
                bytes += tokens_[used_.back()].size();
            }
        }
        std::string out;
        const std::uint8_t width = used_.size() <= 0x10000 ? 2 : 4;
        std::uint64_t numbers = 0, counts = 0;
        for (int n = 0; n < kOrders; ++n) {
            numbers += (sizes[n][0] + sizes[n][1]) * static_cast<std::uint64_t>(n + 1);
            counts += sizes[n][1];
        }
        out.reserve(128 + tokenizer_.size() + used_.size() * 4 + bytes + numbers * width + counts * 4);
        put(out, images_);
        put_text_size(out, tokenizer_.size());
        out.append(tokenizer_);
        put_text_size(out, used_.size());
        put(out, bytes);
        for (const std::uint32_t token : used_) put(out, static_cast<std::uint32_t>(tokens_[token].size()));
        for (const std::uint32_t token : used_) out.append(tokens_[token]);
        put_raw(out, &sizes[0][0], 2 * kOrders);
        put(out, width);
        if (width == 2) {
            put_ngrams<std::uint16_t>(out, entries, sizes);
        } else {
            put_ngrams<std::uint32_t>(out, entries, sizes);
        }
        for (const std::uint32_t token : used_) number_[token] = 0;
        return out;
    }

private:
    template <typename Number>
    static void put(std::string& out, Number value) { put_raw(out, &value, 1); }
    static void put_text_size(std::string& out, std::size_t size) { put(out, static_cast<std::uint64_t>(size)); }

    template <typename Entry>
    static int order_of(const Entry& entry) {
        int order = 1;
        while (order < kOrders && entry.token(order) != 0) ++order;
        return order;
    }

    template <typename Number, typename Entry>
    void put_ngrams(std::string& out, const std::vector<Entry>& entries, const std::uint64_t (&sizes)[kOrders][2]) {
        std::size_t at[kOrders][2], counts_at[kOrders], end = out.size();
        for (int n = 0; n < kOrders; ++n) {
            for (int more = 0; more < 2; ++more) {
                at[n][more] = end;
                end += sizes[n][more] * static_cast<std::uint64_t>(n + 1) * sizeof(Number);
            }
            counts_at[n] = end;
            end += sizes[n][1] * sizeof(std::uint32_t);
        }
        out.resize(end);
        for (const Entry& entry : entries) {
            const int order = order_of(entry);
            std::size_t& place_at = at[order - 1][entry.count > 1];
            for (int place = 0; place < order; ++place) {
                const auto number = static_cast<Number>(number_[entry.token(place) - 1] - 1);
                std::memcpy(&out[place_at], &number, sizeof(Number));
                place_at += sizeof(Number);
            }
            if (entry.count > 1) {
                std::memcpy(&out[counts_at[order - 1]], &entry.count, sizeof(std::uint32_t));
                counts_at[order - 1] += sizeof(std::uint32_t);
            }
        }
    }

    const Vocabulary& tokens_;
    std::uint64_t images_;
    std::string tokenizer_;
    std::vector<std::uint32_t> number_;  // by token: its number in the piece plus 1, or 0
    std::vector<std::uint32_t> used_;
};

[[noreturn]] inline void refuse_piece(const char* reason) {
    throw std::runtime_error(std::string("a packed document-frequency table ") + reason);
}

// Reads a piece and adds its tokens to a vocabulary.
class PieceReader {
public:
    PieceReader(std::string_view piece, Vocabulary& tokens, std::string& tokenizer) : reader_(piece) {
        images = reader_.raw<std::uint64_t>();
        const std::string_view name = reader_.take(reader_.raw<std::uint64_t>());
        if (!tokenizer.empty() && !name.empty() && tokenizer != name)
            throw std::runtime_error("tables of different tokenizers cannot be merged");
        const auto count = reader_.raw<std::uint64_t>(), bytes = reader_.raw<std::uint64_t>();
        if (count > reader_.left() / 4) refuse_piece("is broken");
        const std::string_view lengths = reader_.take(count * 4);
        BytesReader names(reader_.take(bytes));
        std::string_view texts[kAhead];  // the tokens that come next
        here_.reserve(count);
        for (std::size_t i = 0; i < count + kAhead; ++i) {
            if (i >= kAhead) here_.push_back(tokens.add(texts[i % kAhead]) + 1);
            if (i >= count) continue;
            std::uint32_t length;
            std::memcpy(&length, lengths.data() + i * 4, 4);
            texts[i % kAhead] = names.take(length);
            tokens.fetch(texts[i % kAhead]);
        }
        if (!names.at_end()) refuse_piece("is broken");
        for (auto& both : sizes_)
            for (auto& size : both) size = reader_.raw<std::uint64_t>();
        width_ = reader_.raw<std::uint8_t>();
        if (width_ != 2 && width_ != 4) refuse_piece("is broken");
        check_sizes();
        if (tokenizer.empty()) tokenizer = name;
    }

    // Calls use(ngram) for every n-gram, with numbers in the vocabulary.
    template <typename Use>
    void each(Use use) {
        width_ == 2 ? each_of<std::uint16_t>(use) : each_of<std::uint32_t>(use);
    }
    std::uint64_t images;

private:
    void check_sizes() const {
        std::uint64_t left = reader_.left();
        for (int n = 0; n < kOrders; ++n) {
            const std::uint64_t one = static_cast<std::uint64_t>(n + 1) * width_;
            for (int more = 0; more < 2; ++more) {
                const std::uint64_t each = one + (more ? 4 : 0);
                if (sizes_[n][more] > left / each) refuse_piece("is broken");
                left -= sizes_[n][more] * each;
            }
        }
        if (left != 0) refuse_piece("is broken");
    }

    template <typename Number, typename Use>
    void each_of(Use use) {
        each_of_order<1, Number>(use);
        each_of_order<2, Number>(use);
        each_of_order<3, Number>(use);
        each_of_order<4, Number>(use);
    }
    template <int order, typename Number, typename Use>
    void each_of_order(Use use) {
        const std::size_t ones = sizes_[order - 1][0], all = ones + sizes_[order - 1][1];
        const char* numbers = reader_.take(all * order * sizeof(Number)).data();
        const char* counts = reader_.take(sizes_[order - 1][1] * 4).data();
        for (std::size_t i = 0; i < all; ++i, numbers += order * sizeof(Number)) {
            CountedNgram ngram{{0, 0}, 1};
            for (int place = 0; place < order; ++place) {
                Number number;
                std::memcpy(&number, numbers + place * sizeof(Number), sizeof(Number));
                if (number >= here_.size()) refuse_piece("has an index out of range");
                ngram.key.set(place, here_[number]);
            }
            if (i >= ones) {
                std::memcpy(&ngram.count, counts + (i - ones) * 4, 4);
                if (ngram.count == 0) refuse_piece("has a count of 0");
            }
            use(ngram);
        }
    }

    static constexpr std::size_t kAhead = 16;

    BytesReader reader_;
    std::vector<std::uint32_t> here_;  // by token of the piece: its number in the vocabulary plus 1
    std::uint64_t sizes_[kOrders][2];
    std::uint8_t width_;
};

}  // namespace mmeval
