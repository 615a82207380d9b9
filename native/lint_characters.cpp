#include "lint_characters.h"

#include <cstring>
#include <stdexcept>

namespace mmeval {

CharacterTable::CharacterTable() : pages_(std::make_unique<std::atomic<const Character*>[]>(kPages)) {}

CharacterTable::~CharacterTable() {
    for (std::size_t number = 0; number < kPages; ++number) delete[] pages_[number].load();
}

const Character* CharacterTable::made(std::uint32_t number, const MakePage& make) const {
    const std::string bytes = make(number);
    if (bytes.size() != kPageSize * sizeof(Character))
        throw std::invalid_argument("a page must have 256 characters of 16 bytes");
    auto page = std::make_unique<Character[]>(kPageSize);
    std::memcpy(page.get(), bytes.data(), bytes.size());
    for (std::size_t i = 0; i < kPageSize; ++i)
        if (page[i].size > Character::kLongest) throw std::invalid_argument("a character is too long");
    const Character* known = nullptr;
    if (!pages_[number].compare_exchange_strong(known, page.get(), std::memory_order_acq_rel)) return known;
    return page.release();
}

}  // namespace mmeval
