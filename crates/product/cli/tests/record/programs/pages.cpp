/* Pages that a pool of workers renders into a cache, and a reporter that looks at the counters of both. The
 * reporter clears one counter outside of their lock. */
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

/* A queue that holds so many items at most. */
template <typename Item> class Queue {
  public:
    explicit Queue(size_t capacity) : capacity(capacity) {}

    void push(Item item) {
        std::unique_lock<std::mutex> guard(mutex);
        has_room.wait(guard, [this] { return items.size() < capacity; });
        items.push_back(std::move(item));
        is_filled.notify_one();
    }

    bool pop(Item &item) {
        std::unique_lock<std::mutex> guard(mutex);
        is_filled.wait(guard, [this] { return !items.empty() || is_closed; });
        if (items.empty())
            return false;
        item = std::move(items.front());
        items.pop_front();
        has_room.notify_one();
        return true;
    }

    void close() {
        std::lock_guard<std::mutex> guard(mutex);
        is_closed = true;
        is_filled.notify_all();
    }

  private:
    const size_t capacity;
    std::mutex mutex;
    std::condition_variable has_room, is_filled;
    std::deque<Item> items;
    bool is_closed = false;
};

class Stats {
  public:
    void job_done() {
        std::lock_guard<std::mutex> guard(mutex);
        jobs++;
    }

    void hit() {
        std::lock_guard<std::mutex> guard(mutex);
        hits++;
    }

    void miss(size_t size) {
        std::lock_guard<std::mutex> guard(mutex);
        misses++;
        bytes += size;
    }

    long seen() {
        std::lock_guard<std::mutex> guard(mutex);
        return jobs + hits + misses + (bytes > 0);
    }

    void roll_over() {
        {
            std::lock_guard<std::mutex> guard(mutex);
            periods++;
        }
        bytes = 0; /* the fault */
    }

  private:
    std::mutex mutex;
    long jobs = 0, hits = 0, misses = 0, bytes = 0, periods = 0;
};

struct Page {
    std::once_flag once;
    std::string body;
};

static Stats stats;

class Cache {
  public:
    std::shared_ptr<Page> get(const std::string &key) {
        std::shared_ptr<Page> page;
        bool is_fresh = false;
        {
            std::lock_guard<std::mutex> guard(mutex);
            auto &slot = pages[key];
            if (!slot) {
                slot = std::make_shared<Page>();
                order.push_back(key);
                is_fresh = true;
            }
            page = slot;
        }
        std::call_once(page->once, [&] { page->body = "<h1>" + key + "</h1>"; });
        if (is_fresh)
            stats.miss(page->body.size());
        else
            stats.hit();
        return page;
    }

    void trim() {
        std::lock_guard<std::mutex> guard(mutex);
        while (order.size() > 6) {
            pages.erase(order.front());
            order.pop_front();
        }
    }

  private:
    std::mutex mutex;
    std::unordered_map<std::string, std::shared_ptr<Page>> pages;
    std::list<std::string> order;
};

static Cache cache;

class Pool {
  public:
    explicit Pool(int workers) : jobs(8) {
        for (int worker = 0; worker < workers; worker++)
            threads.emplace_back([this] { work(); });
    }

    void submit(std::function<void()> job) { jobs.push(std::move(job)); }

    void stop() {
        jobs.close();
        for (auto &thread : threads)
            thread.join();
    }

  private:
    void work() {
        std::function<void()> job;
        while (jobs.pop(job)) {
            job();
            stats.job_done();
        }
    }

    Queue<std::function<void()>> jobs;
    std::vector<std::thread> threads;
};

static std::atomic<bool> is_running{true};

static void report() {
    while (is_running.load()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(15));
        stats.seen();
        stats.roll_over();
    }
}

int main() {
    std::thread reporter(report);
    Pool pool(3);
    for (int request = 0; request < 24; request++) {
        pool.submit([request] {
            cache.get("page-" + std::to_string(request * 7 % 13));
            if (request % 5 == 0)
                cache.trim();
        });
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    pool.stop();
    is_running.store(false);
    reporter.join();
    std::puts("rendered");
    return 0;
}
