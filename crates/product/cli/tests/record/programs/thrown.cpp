// A static variable whose constructor throws the first time: whoever tries next comes after that.
#include <cstdio>
#include <thread>

static int attempts;

struct Thing {
    int value;
    Thing() : value(0) {
        value = 1;
        if (attempts++ == 0) throw 1;
    }
};

static int use() {
    try {
        static Thing thing;
        return thing.value;
    } catch (int) {
        return 0;
    }
}

int main() {
    int results[3] = {};
    std::thread threads[3];
    for (int i = 0; i < 3; i++) threads[i] = std::thread([&results, i] { results[i] = use(); });
    for (auto &thread : threads) thread.join();
    std::printf("%d\n", results[0] + results[1] + results[2]);
}
