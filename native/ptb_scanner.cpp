#include "ptb_scanner.h"

namespace mmeval::ptb {

// next[state * kStride + class]; 0 = stop. Unpacked once, on first use.
const uint16_t* transitions() {
    static const std::vector<uint16_t> table = [] {
        std::vector<uint16_t> next(static_cast<size_t>(kStates) * kStride, 0);
        const uint16_t* from = kPackedRows;
        for (int state = 0; state < kStates; ++state) {
            uint16_t* row = &next[static_cast<size_t>(state) * kStride];
            const int like = *from++;
            if (like < kStates) std::copy_n(&next[static_cast<size_t>(like) * kStride], kClasses, row);
            for (int left = *from++; left > 0; --left, from += 2) row[from[0]] = from[1];
        }
        return next;
    }();
    return table.data();
}

const ClassPage* file_classes() {
    static const std::vector<ClassPage> classes = [] {
        std::vector<ClassPage> page(kClassPage, kClassPage + 0x80);  // page 0 has the first 256 code points
        page['\n'] = kEolClass;
        return page;
    }();
    return classes.data();
}

}  // namespace mmeval::ptb
