// The threads of the C++ standard library, and variables that are initialised when first reached.
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <thread>

struct Value {
    int number;
    explicit Value(int number) : number(number) {}
};

static int attempts;

static int first_number() {
    if (attempts++ == 0) throw std::runtime_error("not yet");
    return 7;
}

static Value &shared_value() {
    static Value value(first_number());
    return value;
}

std::mutex m;
std::recursive_mutex nested;
std::timed_mutex timed;
std::shared_mutex shared;
std::condition_variable c;
std::once_flag flag;
bool ready;
int x, once_count;

static void other() {
    std::call_once(flag, [] { once_count++; });
    {
        std::lock_guard<std::mutex> guard(m);
        ready = true;
        c.notify_one();
    }
    std::shared_lock<std::shared_mutex> guard(shared);
    std::printf("%d\n", x + shared_value().number);
}

int main() {
    try {
        shared_value();
    } catch (const std::exception &error) {
        std::printf("%s\n", error.what());
    }
    std::printf("%d\n", shared_value().number);
    std::call_once(flag, [] { once_count++; });
    {
        std::unique_lock<std::shared_mutex> guard(shared);
        x = 1;
    }
    std::thread thread(other);
    {
        std::unique_lock<std::mutex> guard(m);
        c.wait(guard, [] { return ready; });
        c.wait_for(guard, std::chrono::milliseconds(5), [] { return false; });
    }
    thread.join();
    {
        std::lock_guard<std::recursive_mutex> outer(nested);
        std::lock_guard<std::recursive_mutex> inner(nested);
        std::scoped_lock both(m, timed);
    }
    std::printf("%d\n", timed.try_lock_for(std::chrono::milliseconds(5)));
    timed.unlock();
    auto later = std::async(std::launch::async, [] { return x + 41; });
    std::printf("%d %d\n", later.get(), once_count);
    return 0;
}
