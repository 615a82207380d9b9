// Vectors that grow large and are read at random. They use huge pages if the system has them, to avoid TLB misses.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>
#include <vector>
#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace mmeval {

template <typename T>
struct LargeAllocator {
    using value_type = T;
    LargeAllocator() = default;
    template <typename Other>
    LargeAllocator(const LargeAllocator<Other>&) {}

    T* allocate(std::size_t count) {
        const std::size_t bytes = count * sizeof(T);
        void* memory = nullptr;
#if defined(__linux__)
        constexpr std::size_t kPage = std::size_t{1} << 21, kLarge = 2 * kPage;
        if (bytes >= kLarge) {
            memory = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
            if (memory != nullptr) madvise(memory, bytes, MADV_HUGEPAGE);  // advice only
        } else
#endif
            memory = std::malloc(bytes);
        if (memory == nullptr) throw std::bad_alloc();
        return static_cast<T*>(memory);
    }
    // Elements without a value are not initialized: vectors that are filled later are not written twice.
    template <typename Element>
    void construct(Element* place) { ::new (static_cast<void*>(place)) Element; }
    template <typename Element, typename... Arguments>
    void construct(Element* place, Arguments&&... arguments) {
        ::new (static_cast<void*>(place)) Element(std::forward<Arguments>(arguments)...);
    }
    void deallocate(T* memory, std::size_t) { std::free(memory); }
    template <typename Other>
    bool operator==(const LargeAllocator<Other>&) const { return true; }
    template <typename Other>
    bool operator!=(const LargeAllocator<Other>&) const { return false; }
};

template <typename T>
using LargeVector = std::vector<T, LargeAllocator<T>>;

}  // namespace mmeval
