// A thread looks at the object by which it is joined. The library clears that after the thread has ended.
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

static std::mutex lock;
static std::condition_variable changed;
static bool is_ready;
static std::thread worker;
static int is_mine;

static void work() {
    std::unique_lock<std::mutex> held(lock);
    changed.wait(held, [] { return is_ready; });
    held.unlock();
    is_mine = worker.get_id() == std::this_thread::get_id();
}

int main() {
    {
        std::lock_guard<std::mutex> held(lock);
        worker = std::thread(work);
        is_ready = true;
    }
    changed.notify_one();
    worker.join();
    std::printf("%d\n", is_mine);
}
