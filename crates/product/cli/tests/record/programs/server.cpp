/* A small server with five planted faults, each of which shows at several places:
 *
 * 1. `stats.requests` is counted without the lock that everything else of `stats` has;
 * 2. `clock_now` is written by the clock and read by everybody, without any lock in common;
 * 3. the journal is locked inside of the cache and the other way round, each in two functions;
 * 4. a session is deleted while the auditor may still look at it;
 * 5. the configuration is handed over by a flag that orders nothing.
 */
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <unistd.h>
#include <vector>

enum class Verb { Get, Put, Touch, Stop };

struct Request {
    Verb verb;
    int key;
    long value;
};

/* What comes in, in order. */
class Queue {
  public:
    void push(Request request) {
        std::lock_guard<std::mutex> guard(mutex);
        requests.push_back(request);
        filled.notify_one();
    }

    Request pop() {
        std::unique_lock<std::mutex> guard(mutex);
        while (requests.empty()) {
            filled.wait(guard);
        }
        Request request = requests.front();
        requests.pop_front();
        return request;
    }

  private:
    std::mutex mutex;
    std::condition_variable filled;
    std::deque<Request> requests;
};

struct Stats {
    long requests;
    long hits;
    long misses;
    std::mutex mutex;
};

struct Item {
    long value;
    long expires;
};

struct Session {
    int user;
    long calls;
    long bytes;
};

struct Config {
    int workers;
    long lifetime;
    bool is_verbose;
};

static Queue queue;
static Stats stats;
static long clock_now;

static std::mutex cache_mutex;
static std::map<int, Item> cache;

static std::mutex journal_mutex;
static std::vector<int> journal;

static Config config;
static std::atomic<bool> is_configured;

/* The clock. */

static void *tick(void *) {
    for (int i = 0; i < 3; i++) {
        clock_now = clock_now + 1; /* fault 2 */
        usleep(2000);
    }
    return nullptr;
}

/* The configuration. */

static void *configure(void *) {
    config.workers = 3;
    config.lifetime = 60;
    config.is_verbose = false;
    is_configured.store(true, std::memory_order_relaxed); /* fault 5 */
    return nullptr;
}

static long lifetime() {
    if (!is_configured.load(std::memory_order_relaxed)) {
        return 1;
    }
    if (config.is_verbose) {
        std::puts("configured");
    }
    return config.lifetime;
}

/* Counting. */

static void count_hit(bool is_hit) {
    std::lock_guard<std::mutex> guard(stats.mutex);
    if (is_hit) {
        stats.hits++;
    } else {
        stats.misses++;
    }
}

static long counted() {
    std::lock_guard<std::mutex> guard(stats.mutex);
    return stats.requests + stats.hits + stats.misses;
}

/* The journal. */

static void note(int key) {
    std::lock_guard<std::mutex> guard(journal_mutex);
    journal.push_back(key);
    if (clock_now > 1000) { /* fault 2 */
        journal.clear();
    }
}

/* Requests. */

static long get(int key) {
    stats.requests++; /* fault 1 */
    std::lock_guard<std::mutex> guard(cache_mutex);
    auto found = cache.find(key);
    bool is_hit = found != cache.end() && found->second.expires > clock_now; /* fault 2 */
    count_hit(is_hit);
    return is_hit ? found->second.value : -1;
}

static void put(int key, long value) {
    stats.requests++; /* fault 1 */
    long expires = clock_now + lifetime(); /* fault 2 */
    std::lock_guard<std::mutex> guard(cache_mutex);
    cache[key] = Item{value, expires};
    note(key); /* fault 3 */
}

static void touch(int key) {
    stats.requests += 1; /* fault 1 */
    std::lock_guard<std::mutex> guard(cache_mutex);
    auto found = cache.find(key);
    if (found != cache.end()) {
        found->second.expires = clock_now + 5; /* fault 2 */
    }
    std::lock_guard<std::mutex> inner(journal_mutex); /* fault 3 */
    journal.push_back(-key);
}

static void *work(void *) {
    for (;;) {
        Request request = queue.pop();
        switch (request.verb) {
        case Verb::Get:
            get(request.key);
            break;
        case Verb::Put:
            put(request.key, request.value);
            break;
        case Verb::Touch:
            touch(request.key);
            break;
        case Verb::Stop:
            return nullptr;
        }
    }
}

/* Housekeeping. */

static void compact() {
    std::lock_guard<std::mutex> guard(journal_mutex);
    std::lock_guard<std::mutex> inner(cache_mutex); /* fault 3 */
    if (journal.size() > 100) {
        journal.clear();
    }
}

static void expire() {
    std::lock_guard<std::mutex> guard(journal_mutex);
    std::lock_guard<std::mutex> inner(cache_mutex); /* fault 3 */
    journal.push_back(0);
    for (auto at = cache.begin(); at != cache.end();) {
        at = at->second.expires < 0 ? cache.erase(at) : std::next(at);
    }
}

static void *keep_house(void *) {
    usleep(6000);
    compact();
    expire();
    return nullptr;
}

/* Sessions. */

static long audited;

static void *audit(void *given) {
    auto *session = static_cast<Session *>(given);
    long sum = session->calls; /* fault 4 */
    sum += session->bytes;     /* fault 4 */
    audited = sum + session->user;
    return nullptr;
}

static void close_session(Session *session) {
    delete session; /* fault 4 */
}

int main() {
    pthread_t loader, clock, house, auditor, workers[3];
    pthread_create(&loader, nullptr, configure, nullptr);
    usleep(1000);
    pthread_create(&clock, nullptr, tick, nullptr);
    for (pthread_t &worker : workers) {
        pthread_create(&worker, nullptr, work, nullptr);
    }
    auto *session = new Session{7, 2, 512};
    pthread_create(&auditor, nullptr, audit, session);
    for (int key = 1; key <= 4; key++) {
        queue.push({Verb::Put, key, key * 10L});
        queue.push({Verb::Get, key, 0});
        queue.push({Verb::Touch, key, 0});
    }
    usleep(4000);
    close_session(session);
    pthread_create(&house, nullptr, keep_house, nullptr);
    long sum = counted();
    for (int i = 0; i < 3; i++) {
        queue.push({Verb::Stop, 0, 0});
    }
    for (pthread_t worker : workers) {
        pthread_join(worker, nullptr);
    }
    pthread_join(loader, nullptr);
    pthread_join(clock, nullptr);
    pthread_join(house, nullptr);
    pthread_join(auditor, nullptr);
    std::printf("%s\n", sum >= 0 && audited == 521 ? "served" : "failed");
    return 0;
}
