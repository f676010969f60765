// Pools of memory that two threads share: a block is given again only after it was given back.
#include <cstddef>
#include <cstdio>
#include <list>
#include <memory_resource>
#include <mutex>
#include <thread>

// Some are larger than what a pool keeps.
static std::size_t size_of(int i) { return i % 10 ? 40 : 1 << 23; }

template <class Pool> static long run() {
    constexpr int count = 40;
    Pool pool;
    std::mutex boxes, pools, lists;
    long *box[count] = {};
    long sum = 0;
    std::thread gives([&] {
        for (int i = 0; i < count; i++) {
            std::unique_lock<std::mutex> pooling(pools);
            long *block = static_cast<long *>(pool.allocate(size_of(i)));
            pooling.unlock();
            *block = i;
            std::lock_guard<std::mutex> boxing(boxes);
            box[i] = block;
        }
    });
    std::thread takes([&] {
        for (int i = 0; i < count; i++) {
            std::unique_lock<std::mutex> boxing(boxes);
            long *block = box[i];
            box[i] = nullptr;
            boxing.unlock();
            if (!block) continue;
            sum += *block;
            std::lock_guard<std::mutex> pooling(pools);
            pool.deallocate(block, size_of(i));
        }
    });
    gives.join();
    takes.join();
    for (int i = 0; i < count; i++)
        if (box[i]) pool.deallocate(box[i], size_of(i));
    std::pmr::list<int> list(&pool);
    std::thread pushes([&] {
        for (int i = 0; i < 20; i++) {
            std::lock_guard<std::mutex> guard(lists);
            list.push_back(i);
        }
    });
    std::thread pops([&] {
        for (int i = 0; i < 20; i++) {
            std::lock_guard<std::mutex> guard(lists);
            if (!list.empty()) list.pop_front();
        }
    });
    pushes.join();
    pops.join();
    return sum >= 0;
}

int main() {
    std::printf("%ld %ld\n", run<std::pmr::unsynchronized_pool_resource>(),
                run<std::pmr::synchronized_pool_resource>());
}
