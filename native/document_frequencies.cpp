#include "document_frequencies.h"

#include <algorithm>
#include <stdexcept>

#include "bytes_reader.h"

namespace mmeval {
std::string stored_head(std::string_view tokenizer, std::uint64_t images) {
    std::string out(kStoredMagic);
    put_number(out, tokenizer.size());
    out.append(tokenizer);
    put_number(out, images);
    return out;
}

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
    std::string out = stored_head(tokenizer, images);
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
    if (bytes.substr(0, kStoredMagic.size()) != kStoredMagic)
        throw std::runtime_error("this is not a document-frequency table of this version");
    BytesReader reader(bytes.substr(kStoredMagic.size()));
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
