// A map that the C++ library, which is not rebuilt, rebalances under a lock; beside it a string, under
// the lock or, if the program is given an argument, without.
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <thread>

static std::mutex lock;
static std::map<std::string, std::string> table;
static std::string last;

static void put(int who, bool forgets) {
    for (int i = 0; i < 4; i++) {
        std::string key = "key-number-" + std::to_string(who * 10 + i);
        {
            std::lock_guard<std::mutex> guard(lock);
            table[key] = key + "-and-a-value-that-is-long-enough-for-the-heap";
            if (!forgets) last = key;
        }
        if (forgets) last = key;
    }
}

int main(int count, char **) {
    std::thread first(put, 1, count > 1), second(put, 2, count > 1);
    first.join();
    second.join();
    std::printf("%zu %zu\n", table.size(), last.size());
}
