#include "sample_words.h"

#include <utility>

namespace mmeval {

void SampleWords::start() {
    size_ = 0;
    if (++epoch_ == 0) {
        for (Slot& slot : slots_) slot.epoch = 0;
        epoch_ = 1;
    }
}

std::uint32_t SampleWords::add_long(std::string_view word) {
    return add({long_.add(word), 0, kPadding + 1});  // a length that no other key has
}

void SampleWords::grow() {
    const std::vector<Slot> old = std::move(slots_);
    slots_.assign(old.size() * 4, Slot{});
    mask_ = slots_.size() - 1;
    for (const Slot& slot : old) {
        if (slot.epoch != epoch_) continue;
        std::size_t at = slot.key.hash() & mask_;
        while (slots_[at].epoch == epoch_) at = (at + 1) & mask_;
        slots_[at] = slot;
    }
}

}  // namespace mmeval
