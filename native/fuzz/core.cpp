// A target for libFuzzer: everything in the native core that reads bytes of a user's file. The first byte chooses the
// reader. `.ci/long native-fuzz` builds it with AddressSanitizer and UndefinedBehaviorSanitizer and runs it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "../blake2b.h"
#include "../csv_columns.h"
#include "../frequency_table.h"
#include "../json_canonical.h"
#include "../json_columns.h"
#include "../json_lines.h"
#include "../json_scan.h"
#include "../json_text.h"
#include "../meteor_data.h"
#include "../meteor_normalizer.h"
#include "../stemmers.h"
#include "../tokenizers.h"

namespace {

using namespace mmeval;

void require(bool holds) {
    if (!holds) std::abort();  // libFuzzer keeps the input
}

const Routes& routes() {
    static const Routes kRoutes{
        {
            {"id", {0, Role::name}},
            {"generated_answer", {1, Role::answer}},
            {"expected_answer", {2, Role::reference}},
            {"references", {3, Role::references}},
            {"ref1", {3, Role::reference_item}},
            {"image", {4, Role::media}},
            {"question", {5, Role::text}},
            {"choices", {6, Role::choices}},
            {"metadata", {7, Role::metadata}},
            {"boxes", {8, Role::other}},
        },
        9, 0, 7};
    return kRoutes;
}

void check(const ScannedBlock& block, std::size_t size) {
    require(block.begins.size() == block.lines.size() && block.shape_of.size() == block.lines.size());
    for (const std::int32_t begin : block.begins) require(begin >= 0 && static_cast<std::size_t>(begin) <= size);
    for (const std::int32_t shape : block.shape_of) require(static_cast<std::size_t>(shape) < block.shapes.size());
    for (const OtherLine& line : block.others)
        require(line.begin <= line.end && static_cast<std::size_t>(line.end) <= size);
    for (const TextColumn& column : block.texts)
        require(static_cast<std::size_t>(column.offsets.back()) == column.bytes.size());
}

void read_json_lines(std::string_view text) {
    check(scan_json_lines(routes(), text), text.size());
    const CountedLines counted = count_records(text, 3, false);
    require(counted.records <= 3 && counted.offset <= text.size());
}

void read_csv(std::string_view text, char delimiter) {
    const CsvCut cut = cut_csv(text, delimiter, true, 5);
    require(cut.end <= text.size() && cut.records <= 5);
    static const std::vector<std::string> kHeader{"id", "generated_answer", "ref1", "references", "kind"};
    const std::string_view block = text.substr(0, cut.end);
    check(scan_csv(routes(), kHeader, block, delimiter), block.size());
}

void read_json(std::string_view text) {
    for (const RepeatedKey& key : repeated_keys(text, true)) require(key.offset <= text.size());
    repeated_keys(text, false);
    ElementBatch batch = array_elements(text, 0, 2);
    for (int rounds = 0; rounds < 1'000 && !batch.closed && !batch.broken; ++rounds) {
        for (const Element& element : batch.elements) require(element.begin <= element.end && element.end <= text.size());
        const std::size_t next = batch.next;
        batch = array_elements(text, next, 2);
        if (batch.next == next && batch.elements.empty()) break;
    }
}

void read_text(std::string_view text) {
    is_utf8(text);
    is_surely_nfc(text);
    is_blank(text);
    blake2b_64(text);
    std::string out;
    bool ascii = true;
    unescape_json(text, out, ascii);
    const char* at = text.data();
    JsonString string;
    read_string(at, text.data() + text.size(), string);
    at = text.data();
    std::string_view number;
    bool is_integer = false;
    read_number(at, text.data() + text.size(), number, is_integer);
    is_canonical_json(text);
    std::string quoted;
    append_json(quoted, text);
}

void tokenize(std::string_view text) {
    for (const char* name : {"ptb", "whitespace", "13a", "unicode"}) {
        if (const Tokenizer tokenizer = find_tokenizer(name)) {
            TokenBuffer tokens;
            tokenizer(text, tokens);
        }
    }
    static const MeteorNormalizer kEnglish("Mr\nNo #NUMERIC_ONLY#\n");
    static const MeteorNormalizer kApart("", MeteorNormalizer::Apostrophes::kApart);
    TokenBuffer english, apart;
    kEnglish.tokenize(text, english);
    kApart.tokenize(text, apart);
    std::string stem;
    for (const Stemmer stemmer : {stem_porter, stem_english, stem_russian, stem_russian_2014}) stemmer(text, stem);
}

void read_frequencies(std::string_view bytes) {
    try {
        FrequencyTable table = FrequencyTable::from_bytes(std::string(bytes));
        const DocumentFrequencies& counts = table.read_counts();
        require(DocumentFrequencies::from_bytes(counts.to_bytes()).to_bytes() == counts.to_bytes());
    } catch (const std::runtime_error&) {  // it was refused
    }
}

void read_meteor_data(std::string_view bytes) {
    try {
        const MeteorData data(bytes);
        const std::uint32_t word = data.word("run");
        if (word != kMissing) {
            data.is_function_word(word);
            data.synsets(word);
            data.exception_bases(word);
            data.paraphrases(data.longer(MeteorData::kRoot, word) == kMissing ? 0 : data.longer(MeteorData::kRoot, word));
        }
        data.prefixes();
    } catch (const std::runtime_error&) {  // it was refused
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    switch (data[0] % 8) {
        case 0: read_json_lines(text); break;
        case 1: read_csv(text, ','); break;
        case 2: read_csv(text, '\t'); break;
        case 3: read_json(text); break;
        case 4: read_text(text); break;
        case 5: tokenize(text); break;
        case 6: read_frequencies(text); break;
        default: read_meteor_data(text); break;
    }
    return 0;
}
