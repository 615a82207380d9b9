#include "idf_table.h"

#include <algorithm>
#include <cmath>

#include "document_frequencies.h"

namespace mmeval {
namespace {

constexpr std::uint64_t kFree = 0;
constexpr std::size_t kUsualCounts = 4096;  // whose idf is computed in advance
constexpr std::size_t kAhead = 64;  // look-ups whose memory is fetched in advance

void prefetch([[maybe_unused]] const void* address) {
#if defined(__GNUC__)
    __builtin_prefetch(address);
#endif
}

int bits_of(std::uint64_t value) {
    int bits = 0;
    for (; value != 0; value >>= 1) ++bits;
    return bits;
}

// Reads numbers as DocumentFrequencies::to_bytes writes them; anything else makes it invalid.
class StrictReader {
public:
    explicit StrictReader(std::string_view bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}
    std::uint64_t number() {
        std::uint64_t value = 0;
        for (int shift = 0; shift < 64 && at_ != end_; shift += 7) {
            const auto byte = static_cast<unsigned char>(*at_++);
            if (shift == 63 && byte > 1) break;  // more than 64 bits
            value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
            if (byte >= 0x80) continue;
            if (byte == 0 && shift > 0) break;  // longer than necessary
            return value;
        }
        is_valid_ = false;
        return 0;
    }
    std::string_view take(std::uint64_t count) {
        if (count > left()) {
            is_valid_ = false;
            return {};
        }
        const char* begin = at_;
        at_ += count;
        return {begin, static_cast<std::size_t>(count)};
    }
    // How many numbers there are from here to the end.
    std::size_t numbers_left() const {
        return static_cast<std::size_t>(
            std::count_if(at_, end_, [](char byte) { return static_cast<unsigned char>(byte) < 0x80; }));
    }
    std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }
    bool is_valid() const { return is_valid_; }

private:
    const char *at_, *end_;
    bool is_valid_ = true;
};

}  // namespace

std::optional<IdfTable> IdfTable::from_bytes(std::string_view bytes) {
    IdfTable table;
    if (!table.read(bytes)) return std::nullopt;
    return table;
}

double IdfTable::computed_idf(std::uint64_t count) const {
    return count > 1 ? log_images_ - std::log(static_cast<double>(count)) : log_images_;
}

double IdfTable::idf_in(std::uint64_t slot) const {
    const std::uint64_t count = slot & most_;
    return idf_of(count < most_ ? count : large_.at(slot >> count_bits_));
}

std::size_t IdfTable::home(std::uint64_t key) const {
    std::uint64_t hash = key * 0x9E3779B97F4A7C15ull;
    hash = (hash ^ (hash >> 32)) * 0xD6E8FEB86659FD93ull;
    return static_cast<std::size_t>(((hash >> 32) * slots_.size()) >> 32);
}

std::uint32_t IdfTable::insert(std::uint64_t key, std::uint64_t count) {
    std::size_t slot = home(key);
    while (slots_[slot] != kFree) slot = slot + 1 == slots_.size() ? 0 : slot + 1;
    slots_[slot] = key << count_bits_ | std::min(count, most_);
    if (count >= most_) large_[key] = count;
    return static_cast<std::uint32_t>(slot);
}

bool IdfTable::read(std::string_view bytes) {
    if (bytes.substr(0, kStoredMagic.size()) != kStoredMagic) return false;
    StrictReader reader(bytes.substr(kStoredMagic.size()));
    tokenizer = reader.take(reader.number());
    images = reader.number();
    log_images_ = std::log(static_cast<double>(images));
    idf_of_count_.resize(kUsualCounts);
    for (std::size_t count = 0; count < kUsualCounts; ++count) idf_of_count_[count] = computed_idf(count);
    const std::uint64_t token_count = reader.number();
    if (!reader.is_valid() || token_count > reader.left()) return false;
    std::string_view last;
    for (std::uint64_t i = 0; i < token_count; ++i) {
        const std::string_view token = reader.take(reader.number());
        if (!reader.is_valid() || (i > 0 && token <= last)) return false;
        tokens.add(token);
        last = token;
    }
    const std::size_t numbers = reader.numbers_left();  // three per n-gram, and the size of each order
    const std::size_t room = numbers / 3 + numbers / 8 + 64;
    if (room + token_count >= kMissing) return false;
    token_bits_ = bits_of(token_count);
    count_bits_ = 64 - token_bits_ - bits_of(room + token_count);
    if (count_bits_ < 8) return false;
    most_ = (std::uint64_t{1} << count_bits_) - 1;
    slots_.assign(room, kFree);
    first_unigram_ = static_cast<std::uint32_t>(room);
    unigrams_.assign(token_count, Unigram{log_images_, false});
    std::vector<std::uint8_t> is_used(token_count, 0);
    LargeVector<std::uint32_t> prefixes, places;  // places of the n-grams of the last order and of this one
    std::uint64_t keys[kAhead], counts[kAhead];
    for (int order = 1; order <= kOrders; ++order) {
        const std::uint64_t count = reader.number();
        if (!reader.is_valid() || count > reader.left()) return false;
        places.clear();
        places.reserve(count);
        std::uint64_t prefix = 0, token = 0;
        std::size_t some = 0;
        const auto insert_some = [&] {
            for (std::size_t i = 0; i < some; ++i) places.push_back(insert(keys[i], counts[i]));
            some = 0;
        };
        for (std::uint64_t i = 0; i < count; ++i) {
            const std::uint64_t further = reader.number(), more = reader.number(), images_with = reader.number();
            if (!reader.is_valid() || images_with == 0 || images_with > kMissing || more > token_count ||
                further > prefixes.size() || (order == 1 && further > 0) || (i > 0 && further == 0 && more == 0))
                return false;
            prefix += further;
            token = further > 0 ? more : token + more;
            if (token >= token_count || (order > 1 && prefix >= prefixes.size())) return false;
            is_used[token] = 1;
            varies = varies || images_with < images;
            if (order == 1) {
                unigrams_[token] = {idf_of(images_with), true};
                places.push_back(first_unigram_ + static_cast<std::uint32_t>(token));
                continue;
            }
            keys[some] = key_of(prefixes[prefix], static_cast<std::uint32_t>(token));
            counts[some] = images_with;
            prefetch(&slots_[home(keys[some])]);
            if (++some == kAhead) insert_some();
        }
        insert_some();
        size += count;
        prefixes.swap(places);
    }
    return reader.is_valid() && reader.left() == 0 &&
           std::all_of(is_used.begin(), is_used.end(), [](auto used) { return used != 0; });
}

void IdfTable::find_all(const std::uint32_t* prefixes, const std::uint32_t* tokens, std::size_t count,
                        Found* out) const {
    std::size_t homes[kAhead];  // of the look-ups that are under way
    const auto fetch = [&](std::size_t i) {
        const std::size_t slot = home(key_of(prefixes[i], tokens[i]));
        prefetch(&slots_[slot]);
        homes[i % kAhead] = slot;
    };
    for (std::size_t i = 0; i < std::min(kAhead, count); ++i) fetch(i);
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t key = key_of(prefixes[i], tokens[i]);
        std::size_t slot = homes[i % kAhead];
        if (i + kAhead < count) fetch(i + kAhead);
        while (slots_[slot] != kFree && slots_[slot] >> count_bits_ != key)
            slot = slot + 1 == slots_.size() ? 0 : slot + 1;
        out[i] = slots_[slot] == kFree ? Found{kMissing, log_images_}
                                       : Found{static_cast<std::uint32_t>(slot), idf_in(slots_[slot])};
    }
}

}  // namespace mmeval
