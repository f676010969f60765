// Threads that can wait for ever in C++, and programs that are meant to end while threads wait. The first argument says which;
// with a second one, "safe", nobody can.
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <future>
#include <mutex>
#include <queue>
#include <shared_mutex>
#include <thread>

static bool is_safe;
static std::mutex a, b, c;
static std::shared_mutex shared, other_shared;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t semaphore;
static int data;

static void pause_for_others() { usleep(30000); }

template <class First, class Second>
static void both(First first, Second second) {
    std::thread one(first), two([&] {
        pause_for_others();
        second();
    });
    one.join();
    two.join();
}

static void write_under_both() {
    pthread_rwlock_wrlock(&rwlock);
    data++;
    pthread_rwlock_unlock(&rwlock);
}

static void three_locks() {
    std::thread threads[] = {
        std::thread([] { std::lock_guard<std::mutex> x(a), y(b); }),
        std::thread([] { std::lock_guard<std::mutex> x(b), y(c); }),
        std::thread([] { std::lock_guard<std::mutex> x(is_safe ? a : c), y(is_safe ? c : a); }),
    };
    for (auto &thread : threads) thread.join();
}

static void reader_and_mutex() {
    both(
        [] {
            pthread_rwlock_rdlock(&rwlock);
            a.lock();
            a.unlock();
            pthread_rwlock_unlock(&rwlock);
        },
        [] {
            if (!is_safe) a.lock();
            write_under_both();
            if (!is_safe) a.unlock();
        });
}

static void shared_and_mutex() {
    both(
        [] {
            std::shared_lock<std::shared_mutex> reader(shared);
            std::lock_guard<std::mutex> guard(a);
        },
        [] {
            if (is_safe) {
                std::unique_lock<std::shared_mutex> writer(shared);
                std::lock_guard<std::mutex> guard(a);
            } else {
                std::lock_guard<std::mutex> guard(a);
                std::unique_lock<std::shared_mutex> writer(shared);
            }
        });
}

// Each reads under one lock and asks to write under the other.
static void two_shared() {
    both(
        [] {
            std::shared_lock<std::shared_mutex> reader(shared);
            std::unique_lock<std::shared_mutex> writer(other_shared);
        },
        [] {
            std::shared_lock<std::shared_mutex> reader(is_safe ? shared : other_shared);
            std::unique_lock<std::shared_mutex> writer(is_safe ? other_shared : shared);
        });
}

// A reader that asks to write waits for itself.
static void upgrade() {
    auto upgrades = [] {
        pthread_rwlock_rdlock(&rwlock);
        int seen = data;
        pause_for_others();
        if (is_safe) pthread_rwlock_unlock(&rwlock);
        pthread_rwlock_wrlock(&rwlock);
        data = seen + 1;
        pthread_rwlock_unlock(&rwlock);
    };
    both(upgrades, upgrades);
}

static void upgrade_shared() {
    auto upgrades = [] {
        shared.lock_shared();
        int seen = data;
        pause_for_others();
        if (is_safe) shared.unlock_shared();
        shared.lock();
        data = seen + 1;
        shared.unlock();
    };
    both(upgrades, upgrades);
}

// A party of a barrier that can wait for a notify for ever before it arrives.
static void missing_party() {
    static std::condition_variable condition;
    static bool is_ready;
    pthread_barrier_init(&barrier, nullptr, 2);
    both(
        [] {
            std::unique_lock<std::mutex> lock(a);
            while (!is_ready) {
                if (!is_safe) lock.unlock(), lock.lock();
                condition.wait(lock);
            }
            lock.unlock();
            pthread_barrier_wait(&barrier);
        },
        [] {
            {
                std::lock_guard<std::mutex> lock(a);
                is_ready = true;
            }
            condition.notify_one();
            pthread_barrier_wait(&barrier);
        });
}

static void join_of_locked() {
    static std::thread inner;
    inner = std::thread([] { std::lock_guard<std::mutex> lock(a); });
    pause_for_others();
    std::thread outer([] {
        if (!is_safe) a.lock();
        inner.join();
        if (!is_safe) a.unlock();
    });
    outer.join();
}

static void ended_with_lock() {
    both([] { std::lock_guard<std::mutex> lock(a); },
         [] {
             a.lock();
             if (is_safe) a.unlock();
         });
}

static void missing_post() {
    sem_init(&semaphore, 0, 1);
    both(
        [] {
            sem_wait(&semaphore);
            sem_post(&semaphore);
        },
        [] {
            sem_wait(&semaphore);
            if (is_safe) sem_post(&semaphore);
        });
}

// Programs that end while threads wait, or whose threads only seem to.

static void pool() {
    static auto &condition = *new std::condition_variable;
    for (int i = 0; i < 3; i++) {
        std::thread([] {
            std::unique_lock<std::mutex> lock(a);
            for (;;) {
                condition.wait(lock, [] { return data > 0; });
                data--;
            }
        }).detach();
    }
    for (int i = 0; i < 5; i++) {
        {
            std::lock_guard<std::mutex> lock(a);
            data++;
        }
        condition.notify_one();
        usleep(1000);
    }
}

static void consumers() {
    sem_init(&semaphore, 0, 0);
    for (int i = 0; i < 3; i++) {
        std::thread([] {
            for (;;) sem_wait(&semaphore);
        }).detach();
    }
    for (int i = 0; i < 6; i++) sem_post(&semaphore);
}

static void reader_of_pipe() {
    static int ends[2];
    if (pipe(ends)) return;
    std::thread([] {
        char byte;
        while (read(ends[0], &byte, 1) == 1) data += byte;
    }).detach();
    for (int i = 0; i < 5; i++)
        if (write(ends[1], "x", 1) != 1) return;
}

static void partner() {
    pthread_barrier_init(&barrier, nullptr, 2);
    std::thread([] {
        for (;;) pthread_barrier_wait(&barrier);
    }).detach();
    for (int i = 0; i < 3; i++) pthread_barrier_wait(&barrier);
}

static void keeper() {
    std::thread([] {
        a.lock();
        for (;;) pause();
    }).detach();
    usleep(10000);
    std::thread([] { a.lock(); }).detach();
    usleep(10000);
}

static void stopped_pool() {
    static std::condition_variable condition;
    static bool is_over;
    std::thread threads[3];
    for (auto &thread : threads) {
        thread = std::thread([] {
            std::unique_lock<std::mutex> lock(a);
            for (;;) {
                condition.wait(lock, [] { return data > 0 || is_over; });
                if (is_over) return;
                data--;
            }
        });
    }
    for (int i = 0; i < 5; i++) {
        {
            std::lock_guard<std::mutex> lock(a);
            data++;
        }
        condition.notify_one();
    }
    {
        std::lock_guard<std::mutex> lock(a);
        is_over = true;
    }
    condition.notify_all();
    for (auto &thread : threads) thread.join();
}

static void bounded_queue() {
    static std::condition_variable has_room, has_items;
    static std::queue<int> queue;
    std::thread consumer([] {
        for (int i = 0; i < 6; i++) {
            std::unique_lock<std::mutex> lock(a);
            has_items.wait(lock, [] { return !queue.empty(); });
            queue.pop();
            has_room.notify_one();
        }
    });
    for (int i = 0; i < 6; i++) {
        std::unique_lock<std::mutex> lock(a);
        has_room.wait(lock, [] { return queue.size() < 2; });
        queue.push(i);
        has_items.notify_one();
    }
    consumer.join();
}

static void limited() {
    static std::condition_variable condition;
    std::thread thread([] {
        std::unique_lock<std::mutex> lock(a);
        condition.wait_for(lock, std::chrono::milliseconds(30));
    });
    usleep(5000);
    condition.notify_one();
    thread.join();
}

static void promise() {
    std::promise<int> promised;
    auto future = promised.get_future();
    std::thread thread([&] {
        std::lock_guard<std::mutex> lock(a);
        promised.set_value(1);
    });
    data = future.get();
    thread.join();
}

static void once() {
    static std::once_flag flag;
    auto begin = [] {
        std::call_once(flag, [] {
            std::lock_guard<std::mutex> lock(a);
            data++;
        });
        std::lock_guard<std::mutex> lock(a);
    };
    both(begin, begin);
}

int main(int count, char **words) {
    static const struct {
        const char *name;
        void (*run)();
    } all[] = {{"three_locks", three_locks}, {"reader_and_mutex", reader_and_mutex},
               {"shared_and_mutex", shared_and_mutex}, {"two_shared", two_shared}, {"upgrade", upgrade},
               {"upgrade_shared", upgrade_shared}, {"missing_party", missing_party},
               {"join_of_locked", join_of_locked}, {"ended_with_lock", ended_with_lock},
               {"missing_post", missing_post}, {"pool", pool}, {"consumers", consumers},
               {"reader_of_pipe", reader_of_pipe}, {"partner", partner}, {"keeper", keeper},
               {"stopped_pool", stopped_pool}, {"bounded_queue", bounded_queue}, {"limited", limited},
               {"promise", promise}, {"once", once}};
    is_safe = count > 2;
    for (auto &it : all)
        if (count > 1 && !strcmp(words[1], it.name)) it.run();
    puts("done");
    fflush(stdout);
    return 0;
}
