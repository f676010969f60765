// Double-checked locking with a plain pointer.
//
// Wrong: the first look at `settings` is outside the lock, while another thread may be writing the
// pointer. Compiler and processor may show the pointer before what it points to.
// An ordinary run: the first thread has made the settings long before the second one looks.
// reweave: a race between the first look and the line that publishes the pointer. The lock does not
// help: one of the two is outside of it.
#include <chrono>
#include <cstdio>
#include <mutex>
#include <thread>

struct Settings {
    int port = 8080;
    int workers = 4;
};

static std::mutex making;
static Settings *settings;

static Settings &get() {
    if (settings == nullptr) {
        std::lock_guard<std::mutex> guard(making);
        if (settings == nullptr) {
            Settings *made = new Settings;
            made->workers = 8;
            settings = made;
        }
    }
    return *settings;
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
    delete settings;
}
