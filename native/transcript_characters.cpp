#include "transcript_characters.h"

namespace mmeval {

SpokenCharacters::SpokenCharacters(MakePage make, Convert lower, Convert nfkc)
    : make_(std::move(make)),
      lower_(std::move(lower)),
      nfkc_(std::move(nfkc)),
      pages_(std::make_unique<std::atomic<const SpokenPage*>[]>(kPages)) {
    first_ = made(0);
    for (std::size_t code = 0; code < SpokenPage::kSize; ++code) first_flags_[code] = first_->characters[code].flags;
}

SpokenCharacters::~SpokenCharacters() {
    for (std::size_t number = 0; number < kPages; ++number) delete pages_[number].load();
}

const SpokenPage* SpokenCharacters::made(std::uint32_t number) const {
    std::unique_ptr<SpokenPage> page = make_(number);
    const SpokenPage* known = nullptr;
    if (!pages_[number].compare_exchange_strong(known, page.get(), std::memory_order_acq_rel)) return known;
    return page.release();
}

void SpokenCharacters::lower(const std::u32string& text, std::u32string& out) const {
    out.clear();
    for (char32_t c : text) {
        if (c < 0x80) {
            out.push_back(c >= U'A' && c <= U'Z' ? c + 0x20 : c);
            continue;
        }
        const SpokenCharacter& character = (*this)[c];
        if (character.is(SpokenCharacter::kContext)) {
            out = lower_(text);
            return;
        }
        if (character.lower.size() == 1)
            out.push_back(character.lower[0]);
        else
            out.append(character.lower);
    }
}

void SpokenCharacters::nfkc(std::u32string& text) const {
    for (char32_t c : text)
        if (is(c, SpokenCharacter::kMoves)) {
            text = nfkc_(text);
            return;
        }
}

void SpokenCharacters::collapse(const std::u32string& text, std::u32string& out) const {
    out.clear();
    bool in_space = false;
    for (char32_t c : text) {
        const bool is_space = is(c, SpokenCharacter::kSpace);
        if (!is_space)
            out.push_back(c);
        else if (!in_space)
            out.push_back(U' ');
        in_space = is_space;
    }
}

}  // namespace mmeval
