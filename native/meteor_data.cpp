#include "meteor_data.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace mmeval {
namespace {

constexpr char kMagic[] = "MMEVAL-METEOR-1";  // 16 bytes with the terminating zero
constexpr std::uint32_t kByteOrder = 0x01020304;

std::uint32_t hash_of(std::string_view text) {  // FNV-1a: the file must not depend on a library's hash
    std::uint32_t hash = 2166136261u;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
    return hash ^ (hash >> 15);
}

[[noreturn]] void damaged() { throw std::runtime_error("METEOR's data file is damaged"); }

template <typename Take>
void for_each_line(std::string_view text, Take take) {
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        take(text.substr(0, end));
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
}

template <typename Take>
void for_each_word(std::string_view line, Take take) {
    while (true) {
        const std::size_t begin = line.find_first_not_of(" \r");
        if (begin == std::string_view::npos) return;
        line.remove_prefix(begin);
        const std::size_t end = std::min(line.find_first_of(" \r"), line.size());
        take(line.substr(0, end));
        line.remove_prefix(end);
    }
}

// Groups the values of (index, value) pairs by index, in their original order.
void by_index(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& pairs, std::size_t count,
              std::vector<std::uint32_t>& ends, std::vector<std::uint32_t>& values) {
    ends.assign(count, 0);
    for (const auto& pair : pairs) ++ends[pair.first];
    std::uint32_t sum = 0;
    for (std::uint32_t& end : ends) sum += std::exchange(end, sum);  // now the start of each list
    values.resize(pairs.size());
    for (const auto& pair : pairs) values[ends[pair.first]++] = pair.second;  // and now its end
}

void put(std::string& out, const void* bytes, std::size_t size) { out.append(static_cast<const char*>(bytes), size); }

}  // namespace

MeteorData::MeteorData(std::string_view file) {
    std::uint32_t sizes[kArrays + 2], order = 0;
    constexpr std::size_t kHead = sizeof kMagic + sizeof order + sizeof sizes;
    if (file.size() < kHead || std::memcmp(file.data(), kMagic, sizeof kMagic) != 0) damaged();
    std::memcpy(&order, file.data() + sizeof kMagic, sizeof order);
    std::memcpy(sizes, file.data() + sizeof kMagic + sizeof order, sizeof sizes);
    if (order != kByteOrder || reinterpret_cast<std::uintptr_t>(file.data()) % alignof(std::uint32_t) != 0) damaged();
    Span* const arrays[kArrays] = {&word_ends_, &slots_,      &function_words_, &synset_ends_,     &synsets_,    &base_ends_,
                                   &bases_,     &child_ends_, &last_words_,     &paraphrase_ends_, &paraphrases_};
    std::size_t at = kHead;
    for (std::size_t i = 0; i < kArrays; ++i) {
        if (sizes[i] > (file.size() - at) / sizeof(std::uint32_t)) damaged();
        *arrays[i] = {reinterpret_cast<const std::uint32_t*>(file.data() + at), sizes[i]};
        at += sizes[i] * sizeof(std::uint32_t);
    }
    if (file.size() - at != std::size_t{sizes[kArrays]} + sizes[kArrays + 1]) damaged();
    words_ = file.substr(at, sizes[kArrays]);
    prefixes_ = file.substr(at + sizes[kArrays]);
    const std::size_t words = word_ends_.size, nodes = child_ends_.size;
    if (slots_.size == 0 || (slots_.size & (slots_.size - 1)) != 0 || slots_.size <= words) damaged();
    if (function_words_.size != words || synset_ends_.size != words || base_ends_.size != words) damaged();
    if (nodes != last_words_.size + 1 || paraphrase_ends_.size != nodes) damaged();
}

Span MeteorData::list(Span ends, Span values, std::uint32_t index) {
    if (index >= ends.size) damaged();
    const std::uint32_t begin = index == 0 ? 0 : ends.data[index - 1], end = ends.data[index];
    if (begin > end || end > values.size) damaged();
    return {values.data + begin, end - begin};
}

std::string_view MeteorData::text_of(std::uint32_t word) const {
    if (word >= word_ends_.size) damaged();
    const std::uint32_t begin = word == 0 ? 0 : word_ends_.data[word - 1], end = word_ends_.data[word];
    if (begin > end || end > words_.size()) damaged();
    return words_.substr(begin, end - begin);
}

std::uint32_t MeteorData::word(std::string_view text) const {
    const std::size_t mask = slots_.size - 1;
    for (std::size_t slot = hash_of(text) & mask, tried = 0; tried < slots_.size; slot = (slot + 1) & mask, ++tried) {
        const std::uint32_t word = slots_.data[slot];
        if (word == kMissing) break;
        if (text_of(word) == text) return word;
    }
    return kMissing;
}

std::uint32_t MeteorData::longer(std::uint32_t node, std::uint32_t word) const {
    const Span children = list(child_ends_, last_words_, node);
    const std::uint32_t* child = std::lower_bound(children.begin(), children.end(), word);
    if (child == children.end() || *child != word) return kMissing;
    return static_cast<std::uint32_t>(child - last_words_.data) + 1;  // node 0 has no last word
}

void MeteorDataBuilder::add_function_words(std::string_view lines) {
    for_each_line(lines, [&](std::string_view line) {
        for_each_word(line, [&](std::string_view word) { function_words_.push_back(words_.add(word)); });
    });
}

void MeteorDataBuilder::add_synsets(std::string_view lines) {
    std::uint32_t word = kMissing;
    for_each_line(lines, [&](std::string_view line) {
        if (word == kMissing) {
            word = words_.add(line);
            return;
        }
        for_each_word(line, [&](std::string_view digits) {
            std::uint32_t number = 0;
            const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
            if (read.ec != std::errc() || read.ptr != digits.data() + digits.size())
                throw std::runtime_error("a synset number is not an integer");
            synsets_.emplace_back(word, number);
        });
        word = kMissing;
    });
}

void MeteorDataBuilder::add_exceptions(std::string_view lines) {
    std::uint32_t base = kMissing;
    for_each_line(lines, [&](std::string_view line) {
        if (base == kMissing) {
            base = words_.add(line);
            return;
        }
        for_each_word(line, [&](std::string_view form) { bases_.emplace_back(words_.add(form), base); });
        base = kMissing;
    });
}

std::uint32_t MeteorDataBuilder::phrase(std::string_view text) {
    std::uint32_t node = kMissing;
    for_each_word(text, [&](std::string_view word) { node = phrases_.add(node, words_.add(word)); });
    if (node == kMissing) throw std::runtime_error("a paraphrase is empty");
    return node;
}

void MeteorDataBuilder::add_paraphrases(std::string_view piece) {
    const auto take = [&](std::string_view line) {
        if (line_ == 1) key_ = phrase(line);
        if (line_ == 2) paraphrases_.emplace_back(key_, phrase(line));
        line_ = (line_ + 1) % 3;
    };
    while (true) {
        const std::size_t end = piece.find('\n');
        if (end == std::string_view::npos) break;
        if (unfinished_.empty()) {
            take(piece.substr(0, end));
        } else {
            unfinished_.append(piece.substr(0, end));
            take(std::exchange(unfinished_, {}));
        }
        piece.remove_prefix(end + 1);
    }
    unfinished_.append(piece);
}

// Numbers the phrases breadth first, children in the order of their last word. Returns the new number of each.
std::vector<std::uint32_t> MeteorDataBuilder::renumber_phrases(std::vector<std::uint32_t>& child_ends,
                                                               std::vector<std::uint32_t>& last_words) {
    const std::uint32_t nodes = phrases_.size();
    Pairs children(nodes);  // (prefix, node); the prefix is 0 for the empty phrase, else one more than in the table
    for (std::uint32_t node = 0; node < nodes; ++node) children[node] = {phrases_.prefix(node) + 1, node};
    std::vector<std::uint32_t> ends, sorted;
    by_index(children, std::size_t{nodes} + 1, ends, sorted);
    Pairs().swap(children);
    std::vector<std::uint32_t> number(nodes), order{kMissing};  // `order`: the old number of each new node
    order.reserve(std::size_t{nodes} + 1);
    last_words.reserve(nodes);
    child_ends.clear();
    child_ends.reserve(std::size_t{nodes} + 1);
    for (std::size_t at = 0; at < order.size(); ++at) {
        const std::uint32_t old = order[at] + 1;  // kMissing + 1 is 0
        const auto begin = sorted.begin() + (old == 0 ? 0 : ends[old - 1]), end = sorted.begin() + ends[old];
        std::sort(begin, end, [&](auto a, auto b) { return phrases_.token(a) < phrases_.token(b); });
        for (auto child = begin; child != end; ++child) {
            number[*child] = static_cast<std::uint32_t>(order.size());
            order.push_back(*child);
            last_words.push_back(phrases_.token(*child));
        }
        child_ends.push_back(static_cast<std::uint32_t>(last_words.size()));
    }
    return number;
}

std::string MeteorDataBuilder::finish() {
    if (line_ != 0 || !unfinished_.empty()) throw std::runtime_error("the paraphrases end too early");
    std::vector<std::uint32_t> arrays[MeteorData::kArrays];
    auto& [word_ends, slots, function_words, synset_ends, synsets, base_ends, bases, child_ends, last_words,
           paraphrase_ends, paraphrases] = arrays;
    const std::vector<std::uint32_t> number = renumber_phrases(child_ends, last_words);
    for (auto& pair : paraphrases_) pair = {number[pair.first], number[pair.second]};
    by_index(paraphrases_, child_ends.size(), paraphrase_ends, paraphrases);
    Pairs().swap(paraphrases_);
    phrases_ = NgramTable();

    const std::uint32_t words = words_.size();
    std::string bytes;
    for (std::uint32_t word = 0; word < words; ++word) {
        bytes.append(words_[word]);
        word_ends.push_back(static_cast<std::uint32_t>(bytes.size()));
    }
    std::size_t places = 16;
    while (places < 2 * std::size_t{words} + 1) places *= 2;
    slots.assign(places, kMissing);
    for (std::uint32_t word = 0; word < words; ++word) {
        std::size_t slot = hash_of(words_[word]) & (places - 1);
        while (slots[slot] != kMissing) slot = (slot + 1) & (places - 1);
        slots[slot] = word;
    }
    function_words.assign(words, 0);
    for (const std::uint32_t word : function_words_) function_words[word] = 1;
    std::sort(synsets_.begin(), synsets_.end());
    by_index(synsets_, words, synset_ends, synsets);
    by_index(bases_, words, base_ends, bases);

    std::string file;
    put(file, kMagic, sizeof kMagic);
    put(file, &kByteOrder, sizeof kByteOrder);
    const auto put_size = [&](std::size_t size) {
        if (size >= kMissing) throw std::length_error("METEOR's data is too large for one file");
        const auto number_of_values = static_cast<std::uint32_t>(size);
        put(file, &number_of_values, sizeof number_of_values);
    };
    std::size_t total = bytes.size() + prefixes_.size() + 256;
    for (const auto& array : arrays) {
        put_size(array.size());
        total += array.size() * sizeof(std::uint32_t);
    }
    put_size(bytes.size());
    put_size(prefixes_.size());
    file.reserve(total);
    for (auto& array : arrays) {
        put(file, array.data(), array.size() * sizeof(std::uint32_t));
        std::vector<std::uint32_t>().swap(array);
    }
    file += bytes;
    file += prefixes_;
    return file;
}

}  // namespace mmeval
