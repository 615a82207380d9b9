#include "document_frequencies.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace mmeval {
namespace {

void put_number(std::string& out, std::uint64_t value) {
    while (value >= 0x80) {
        out += static_cast<char>(value | 0x80);
        value >>= 7;
    }
    out += static_cast<char>(value);
}

template <typename Number>
void put_raw(std::string& out, const Number* values, std::size_t count) {
    out.append(reinterpret_cast<const char*>(values), count * sizeof(Number));
}

void put_numbers(std::string& out, const std::vector<std::uint32_t>& values) {
    const std::uint64_t size = values.size();
    put_raw(out, &size, 1);
    put_raw(out, values.data(), values.size());
}

void put_text(std::string& out, std::string_view text) {
    const std::uint64_t size = text.size();
    put_raw(out, &size, 1);
    out.append(text);
}

// Reads what the put functions wrote, never past the end.
class Reader {
public:
    explicit Reader(std::string_view bytes) : bytes_(bytes) {}
    std::uint64_t number() {
        std::uint64_t value = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            const auto byte = static_cast<unsigned char>(take(1)[0]);
            value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
            if (byte < 0x80) return value;
        }
        throw std::runtime_error("a number in the document-frequency table is too long");
    }
    std::string_view take(std::uint64_t count) {
        if (count > bytes_.size() - at_) throw std::runtime_error("the document-frequency table ends too early");
        const std::string_view piece = bytes_.substr(at_, count);
        at_ += count;
        return piece;
    }
    template <typename Number>
    Number raw() {
        Number value;
        std::memcpy(&value, take(sizeof(Number)).data(), sizeof(Number));
        return value;
    }
    std::vector<std::uint32_t> numbers() {
        const auto size = raw<std::uint64_t>();
        if (size > bytes_.size()) throw std::runtime_error("the document-frequency table ends too early");
        const std::string_view piece = take(size * sizeof(std::uint32_t));
        std::vector<std::uint32_t> values(size);
        if (size > 0) std::memcpy(values.data(), piece.data(), piece.size());
        return values;
    }
    bool at_end() const { return at_ == bytes_.size(); }

private:
    std::string_view bytes_;
    std::size_t at_ = 0;
};

constexpr std::string_view kMagic = "MMEVAL-DF-1\n";

}  // namespace

void DocumentFrequencies::add_count(std::uint32_t node, std::uint32_t more) {
    if (node >= counts.size()) counts.resize(ngrams.size(), 0);
    if (counts[node] > kMissing - more) throw std::length_error("an n-gram occurs in more than 2^32 images");
    counts[node] += more;
}

void DocumentFrequencies::merge(const DocumentFrequencies& other) {
    if (!tokenizer.empty() && !other.tokenizer.empty() && tokenizer != other.tokenizer)
        throw std::runtime_error("tables of different tokenizers cannot be merged");
    if (tokenizer.empty()) tokenizer = other.tokenizer;
    std::vector<std::uint32_t> token_here(other.tokens.size());
    for (std::uint32_t id = 0; id < other.tokens.size(); ++id) token_here[id] = tokens.add(other.tokens[id]);
    std::vector<std::uint32_t> node_here(other.ngrams.size());
    for (std::uint32_t node = 0; node < other.ngrams.size(); ++node) {
        const std::uint32_t prefix = other.ngrams.prefix(node);
        node_here[node] =
            ngrams.add(prefix == kMissing ? kMissing : node_here[prefix], token_here[other.ngrams.token(node)]);
        add_count(node_here[node], other.count(node));
    }
    images += other.images;
}

bool DocumentFrequencies::varies() const {
    return std::any_of(counts.begin(), counts.end(), [&](auto n) { return n > 0 && n < images; });
}

// Layout of a bucket, in the machine's byte order: images; the tokenizer's name; tokens as (lengths, bytes); for each
// order the number of n-grams; then, for all n-grams, the prefixes (indices into this list), the tokens (indices into
// the token list) and the counts. Orders are ascending, so a prefix comes before its extensions.
std::vector<std::string> DocumentFrequencies::pack(std::uint32_t buckets) const {
    std::vector<std::uint32_t> bucket_of(ngrams.size(), 0);
    std::vector<std::size_t> ends(static_cast<std::size_t>(buckets) * kOrders + 1, 0);
    const auto place = [&](std::uint32_t node) {
        return static_cast<std::size_t>(bucket_of[node]) * kOrders + ngrams.order(node) - 1;
    };
    for (std::uint32_t node = 0; node < ngrams.size(); ++node) {
        if (count(node) == 0) continue;
        const std::uint32_t prefix = ngrams.prefix(node);
        const std::string_view token = tokens[ngrams.token(node)];
        bucket_of[node] = prefix == kMissing ? Vocabulary::bucket_of(token, buckets)
                                             : bucket_of[prefix];
        ++ends[place(node) + 1];
    }
    for (std::size_t i = 1; i < ends.size(); ++i) ends[i] += ends[i - 1];
    std::vector<std::size_t> at(ends.begin(), ends.end() - 1);
    std::vector<std::uint32_t> sorted(ends.back()), rank(ngrams.size(), kMissing);
    for (std::uint32_t node = 0; node < ngrams.size(); ++node)
        if (count(node) > 0) sorted[at[place(node)]++] = node;
    std::vector<std::string> packed(buckets);
    std::vector<std::uint32_t> token_rank(tokens.size()), seen_in(tokens.size(), kMissing);
    for (std::uint32_t bucket = 0; bucket < buckets; ++bucket) {
        const std::size_t begin = ends[static_cast<std::size_t>(bucket) * kOrders];
        const std::size_t end = ends[static_cast<std::size_t>(bucket + 1) * kOrders];
        std::vector<std::uint32_t> lengths, prefixes, token_places, own_counts;
        std::string bytes;
        for (std::size_t i = begin; i < end; ++i) {
            const std::uint32_t node = sorted[i], prefix = ngrams.prefix(node), token = ngrams.token(node);
            rank[node] = static_cast<std::uint32_t>(i - begin);
            if (seen_in[token] != bucket) {
                seen_in[token] = bucket;
                token_rank[token] = static_cast<std::uint32_t>(lengths.size());
                lengths.push_back(static_cast<std::uint32_t>(tokens[token].size()));
                bytes.append(tokens[token]);
            }
            prefixes.push_back(prefix == kMissing ? kMissing : rank[prefix]);
            token_places.push_back(token_rank[token]);
            own_counts.push_back(counts[node]);
        }
        std::string& out = packed[bucket];
        put_raw(out, &images, 1);
        put_text(out, tokenizer);
        put_numbers(out, lengths);
        put_text(out, bytes);
        for (int order = 0; order < kOrders; ++order) {
            const std::size_t first = static_cast<std::size_t>(bucket) * kOrders + order;
            const std::uint64_t size = ends[first + 1] - ends[first];
            put_raw(out, &size, 1);
        }
        put_numbers(out, prefixes);
        put_numbers(out, token_places);
        put_numbers(out, own_counts);
    }
    return packed;
}

void DocumentFrequencies::merge_packed(std::string_view packed) {
    Reader reader(packed);
    const auto other_images = reader.raw<std::uint64_t>();
    const std::string_view other_tokenizer = reader.take(reader.raw<std::uint64_t>());
    if (!tokenizer.empty() && !other_tokenizer.empty() && tokenizer != other_tokenizer)
        throw std::runtime_error("tables of different tokenizers cannot be merged");
    if (tokenizer.empty()) tokenizer = other_tokenizer;
    std::vector<std::uint32_t> here;
    const std::vector<std::uint32_t> lengths = reader.numbers();
    Reader names(reader.take(reader.raw<std::uint64_t>()));
    for (const std::uint32_t length : lengths) here.push_back(tokens.add(names.take(length)));
    std::uint64_t sizes[kOrders];
    for (std::uint64_t& size : sizes) size = reader.raw<std::uint64_t>();
    std::vector<std::uint32_t> prefixes = reader.numbers(), places = reader.numbers();
    const std::vector<std::uint32_t> more = reader.numbers();
    if (prefixes.size() != places.size() || places.size() != more.size() || !reader.at_end())
        throw std::runtime_error("a packed document-frequency table is broken");
    std::vector<std::uint32_t> nodes(places.size());
    std::size_t previous = 0, begin = 0;  // start of the previous order and of this one
    for (int order = 1; order <= kOrders; ++order) {
        if (sizes[order - 1] > nodes.size() - begin)
            throw std::runtime_error("a packed document-frequency table is broken");
        const std::size_t end = begin + sizes[order - 1];
        for (std::size_t i = begin; i < end; ++i) {
            if (places[i] >= here.size() || (order > 1 && (prefixes[i] < previous || prefixes[i] >= begin)))
                throw std::runtime_error("a packed document-frequency table has an index out of range");
            if (more[i] == 0) throw std::runtime_error("a packed document-frequency table has a count of 0");
            places[i] = here[places[i]];
            if (order > 1) prefixes[i] = nodes[prefixes[i]];
        }
        if (order == 1) {
            for (std::size_t i = begin; i < end; ++i) nodes[i] = ngrams.add(kMissing, places[i]);
        } else {
            ngrams.add_all(prefixes.data() + begin, places.data() + begin, end - begin, nodes.data() + begin);
        }
        previous = begin;
        begin = end;
    }
    if (begin != nodes.size()) throw std::runtime_error("a packed document-frequency table is broken");
    for (std::size_t i = 0; i < begin; ++i) add_count(nodes[i], more[i]);
    images += other_images;
}

void DocumentFrequencies::unite(const DocumentFrequencies& other) {
    const std::uint64_t own = images;
    ngrams.reserve(other.ngrams.size());
    merge(other);
    images = std::max(own, other.images);
}

std::uint64_t DocumentFrequencies::counted() const {
    return static_cast<std::uint64_t>(std::count_if(counts.begin(), counts.end(), [](auto n) { return n > 0; }));
}

DocumentFrequencies DocumentFrequencies::with_at_least(std::uint32_t least) const {
    DocumentFrequencies kept;
    kept.images = images;
    kept.tokenizer = tokenizer;
    std::vector<std::uint32_t> node_there(ngrams.size(), kMissing);
    for (std::uint32_t node = 0; node < ngrams.size(); ++node) {
        if (count(node) < least) continue;
        const std::uint32_t prefix = ngrams.prefix(node);
        const std::uint32_t token = kept.tokens.add(tokens[ngrams.token(node)]);
        node_there[node] = kept.ngrams.add(prefix == kMissing ? kMissing : node_there[prefix], token);
        kept.add_count(node_there[node], count(node));
    }
    return kept;
}

// Layout: magic, name of the tokenizer, images, tokens in byte order (length, bytes), then for each order the number of
// n-grams and, sorted by prefix and token, each as (distance to the last prefix, token or its distance to the last one,
// count). N-grams without a count, which occur in candidates only, are left out.
std::string DocumentFrequencies::to_bytes() const {
    std::vector<std::uint8_t> used(tokens.size(), 0);
    for (std::uint32_t node = 0; node < ngrams.size(); ++node)
        if (count(node) > 0) used[ngrams.token(node)] = 1;
    std::vector<std::uint32_t> by_name;
    for (std::uint32_t id = 0; id < tokens.size(); ++id)
        if (used[id]) by_name.push_back(id);
    std::sort(by_name.begin(), by_name.end(), [&](auto a, auto b) { return tokens[a] < tokens[b]; });
    std::vector<std::uint32_t> token_rank(tokens.size(), 0);
    std::string out(kMagic);
    put_number(out, tokenizer.size());
    out.append(tokenizer);
    put_number(out, images);
    put_number(out, by_name.size());
    for (std::uint32_t rank = 0; rank < by_name.size(); ++rank) {
        token_rank[by_name[rank]] = rank;
        put_number(out, tokens[by_name[rank]].size());
        out.append(tokens[by_name[rank]]);
    }
    std::vector<std::uint32_t> rank(ngrams.size(), 0);  // of a node among those of its order
    for (int order = 1; order <= kOrders; ++order) {
        std::vector<std::pair<std::uint64_t, std::uint32_t>> sorted;  // (prefix rank, token rank), node
        for (std::uint32_t node = 0; node < ngrams.size(); ++node) {
            if (ngrams.order(node) != order || count(node) == 0) continue;
            const std::uint64_t prefix = order == 1 ? 0 : rank[ngrams.prefix(node)];
            sorted.emplace_back((prefix << 32) | token_rank[ngrams.token(node)], node);
        }
        std::sort(sorted.begin(), sorted.end());
        put_number(out, sorted.size());
        std::uint64_t last_prefix = 0, last_token = 0;
        for (std::size_t i = 0; i < sorted.size(); ++i) {
            const auto [key, node] = sorted[i];
            const std::uint64_t prefix = key >> 32, token = key & 0xFFFFFFFF;
            if (prefix != last_prefix) last_token = 0;
            put_number(out, prefix - last_prefix);
            put_number(out, token - last_token);
            put_number(out, count(node));
            last_prefix = prefix;
            last_token = token;
            rank[node] = static_cast<std::uint32_t>(i);
        }
    }
    return out;
}

DocumentFrequencies DocumentFrequencies::from_bytes(std::string_view bytes) {
    if (bytes.substr(0, kMagic.size()) != kMagic)
        throw std::runtime_error("this is not a document-frequency table of this version");
    Reader reader(bytes.substr(kMagic.size()));
    DocumentFrequencies table;
    table.tokenizer = reader.take(reader.number());
    table.images = reader.number();
    for (std::uint64_t left = reader.number(); left > 0; --left) table.tokens.add(reader.take(reader.number()));
    std::vector<std::uint32_t> prefixes, nodes;
    for (int order = 1; order <= kOrders; ++order) {
        std::uint64_t prefix = 0, token = 0;
        nodes.clear();
        const std::uint64_t size = reader.number();
        if (size > bytes.size()) throw std::runtime_error("the document-frequency table ends too early");
        if (order > 1) table.ngrams.reserve(size);
        for (std::uint64_t left = size; left > 0; --left) {
            const std::uint64_t further = reader.number();
            if (further > 0) token = 0;
            prefix += further;
            token += reader.number();
            const std::uint64_t count = reader.number();
            if (token >= table.tokens.size() || (order > 1 && prefix >= prefixes.size()))
                throw std::runtime_error("the document-frequency table has an index out of range");
            if (count == 0 || count > kMissing)
                throw std::runtime_error("the document-frequency table has a count out of range");
            const std::uint32_t node = table.ngrams.add(order == 1 ? kMissing : prefixes[prefix],
                                                        static_cast<std::uint32_t>(token));
            table.add_count(node, static_cast<std::uint32_t>(count));
            nodes.push_back(node);
        }
        prefixes.swap(nodes);
    }
    if (!reader.at_end()) throw std::runtime_error("there are extra bytes after the document-frequency table");
    return table;
}

}  // namespace mmeval
