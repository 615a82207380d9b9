// Work on a range with several threads. The result of a piece must not depend on how the range is split.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace mmeval {

// Calls work(piece, begin, end) for `pieces` contiguous pieces of [0, count), each in its own thread.
template <typename Work>
void in_pieces(std::size_t count, std::size_t pieces, Work work) {
    pieces = std::max<std::size_t>(1, std::min(pieces, count));
    const auto bound = [&](std::size_t piece) { return count * piece / pieces; };
    if (pieces == 1) {
        work(std::size_t{0}, std::size_t{0}, count);
        return;
    }
    std::vector<std::exception_ptr> failures(pieces);
    const auto run = [&](std::size_t piece) {
        try {
            work(piece, bound(piece), bound(piece + 1));
        } catch (...) {
            failures[piece] = std::current_exception();
        }
    };
    std::vector<std::thread> threads;
    threads.reserve(pieces - 1);
    std::size_t here = 1;  // this thread does the first piece, and those for which no thread can be created
    try {
        for (; here < pieces; ++here) threads.emplace_back(run, here);
    } catch (const std::system_error&) {
    }
    run(0);
    for (std::size_t piece = here; piece < pieces; ++piece) run(piece);
    for (auto& thread : threads) thread.join();
    for (const auto& failure : failures)
        if (failure) std::rethrow_exception(failure);
}

}  // namespace mmeval
