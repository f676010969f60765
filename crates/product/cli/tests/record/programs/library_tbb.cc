// Loops of oneTBB, whose threads are its own.
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_reduce.h>

#include <cstdio>
#include <vector>

int main() {
    tbb::global_control two(tbb::global_control::max_allowed_parallelism, 2);
    std::vector<int> numbers(300);
    tbb::parallel_for(0, 300, [&](int at) { numbers[at] = at; });
    using Range = tbb::blocked_range<int>;
    auto add = [&](Range range, long sum) {
        for (int at = range.begin(); at < range.end(); at++) sum += numbers[at];
        return sum;
    };
    auto join = [](long left, long right) { return left + right; };
    std::printf("%ld\n", tbb::parallel_reduce(Range(0, 300), 0L, add, join));
}
