// A queue that is closed without its lock.
//
// Wrong: `close` sets `closed` and notifies without the mutex that the waiting thread checks it under.
// If it comes between the check and the wait, the notification wakes nobody and the thread never ends.
// An ordinary run: by the time the queue is closed the thread has been waiting for long.
// reweave: the thread waits for ever, and a race between the lines that set and read `closed`.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <thread>

class Queue {
public:
    void push(int item) {
        std::lock_guard<std::mutex> guard(lock);
        items.push_back(item);
        changed.notify_one();
    }

    void close() {
        closed = true;
        changed.notify_all();
    }

    bool pop(int &item) {
        std::unique_lock<std::mutex> guard(lock);
        while (items.empty() && !closed)
            changed.wait(guard);
        if (items.empty())
            return false;
        item = items.front();
        items.pop_front();
        return true;
    }

private:
    std::mutex lock;
    std::condition_variable changed;
    std::deque<int> items;
    bool closed = false;
};

static Queue queue;
static int sum;

int main() {
    std::thread worker([] {
        for (int item; queue.pop(item);)
            sum += item;
    });
    queue.push(20);
    queue.push(22);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    queue.close();
    worker.join();
    std::printf("sum %d\n", sum);
}
