// double_checked_locking.cpp, fixed: the pointer is atomic, and who sees it sees what was written
// before it.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <thread>

struct Settings {
    int port = 8080;
    int workers = 4;
};

static std::mutex making;
static std::atomic<Settings *> settings;

static Settings &get() {
    Settings *seen = settings.load(std::memory_order_acquire);
    if (seen == nullptr) {
        std::lock_guard<std::mutex> guard(making);
        seen = settings.load(std::memory_order_relaxed);
        if (seen == nullptr) {
            seen = new Settings;
            seen->workers = 8;
            settings.store(seen, std::memory_order_release);
        }
    }
    return *seen;
}

static void serve(int turn, int *port) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20 * turn));
    *port = get().port;
}

int main() {
    int ports[2] = {0, 0};
    std::thread first(serve, 0, &ports[0]);
    std::thread second(serve, 1, &ports[1]);
    first.join();
    second.join();
    std::printf("ports %d and %d\n", ports[0], ports[1]);
    delete settings.load();
}
