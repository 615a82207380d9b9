// Document frequencies as scoring uses them: counted here, or loaded from a stored table.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "document_frequencies.h"
#include "idf_table.h"

namespace mmeval {

// A loaded table has its bytes and the weights. Its counts, which scoring does not need, are read from the bytes when
// something else asks for them.
class FrequencyTable {
public:
    FrequencyTable() : counts_(std::make_unique<DocumentFrequencies>()) {}
    explicit FrequencyTable(DocumentFrequencies counts)
        : counts_(std::make_unique<DocumentFrequencies>(std::move(counts))) {}

    static FrequencyTable from_bytes(std::string bytes) {  // throws std::runtime_error for invalid bytes
        FrequencyTable table;
        table.weights_ = IdfTable::from_bytes(bytes);
        if (table.weights_) {
            table.bytes_ = std::move(bytes);
            table.counts_.reset();
        } else {
            *table.counts_ = DocumentFrequencies::from_bytes(bytes);
        }
        return table;
    }

    std::uint64_t images() const { return weights_ ? weights_->images : counts_->images; }
    const std::string& tokenizer() const { return weights_ ? weights_->tokenizer : counts_->tokenizer; }
    std::uint64_t size() const { return weights_ ? weights_->size : counts_->counted(); }
    bool varies() const { return weights_ ? weights_->varies : counts_->varies(); }
    std::string to_bytes() const { return weights_ ? bytes_ : counts_->to_bytes(); }

    const IdfTable* weights() const { return weights_ ? &*weights_ : nullptr; }  // of a loaded table
    const DocumentFrequencies& counts() const { return *counts_; }              // of a table without weights()

    // The counts of any table. Not to be called by several threads at once.
    const DocumentFrequencies& read_counts() {
        if (!counts_) counts_ = std::make_unique<DocumentFrequencies>(DocumentFrequencies::from_bytes(bytes_));
        return *counts_;
    }
    void merge(FrequencyTable& other) {
        read_counts();
        counts_->merge(other.read_counts());
        weights_.reset();
        bytes_.clear();
    }

private:
    std::unique_ptr<DocumentFrequencies> counts_;
    std::optional<IdfTable> weights_;
    std::string bytes_;
};

}  // namespace mmeval
