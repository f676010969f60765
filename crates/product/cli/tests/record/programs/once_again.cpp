// Routines that are to run once, but are left by an exception or by the end of their thread, and run
// again by another. With an argument, what a thread does after it caught the exception races with
// the routine.

#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <thread>

static std::once_flag inner_flag, outer_flag;
static int inner_attempts, outer_attempts, value, caught;
static bool looks_at_caught;

static void inner() {
    if (looks_at_caught) caught++;
    if (++inner_attempts < 3) throw std::runtime_error("not yet");
    value = 42;
}

static void outer() {
    outer_attempts++;
    std::call_once(inner_flag, inner);
}

static void use() {
    for (;;) {
        try {
            std::call_once(outer_flag, outer);
            break;
        } catch (const std::exception &) {
            if (looks_at_caught) caught++;
            std::this_thread::yield();
        }
    }
    if (value != 42) puts("too early");
}

static pthread_once_t control = PTHREAD_ONCE_INIT;
static int starts, is_inside;

static void routine() {
    if (++starts == 1) {
        __atomic_store_n(&is_inside, 1, __ATOMIC_RELAXED);
        for (;;) usleep(1000);
    }
}

static void *start(void *) {
    pthread_once(&control, routine);
    return nullptr;
}

int main(int count, char **) {
    looks_at_caught = count > 1;
    std::thread first(use), second(use), third(use);
    first.join(), second.join(), third.join();
    printf("%d %d\n", inner_attempts, outer_attempts);

    pthread_t cancelled, other;
    pthread_create(&cancelled, nullptr, start, nullptr);
    while (!__atomic_load_n(&is_inside, __ATOMIC_RELAXED)) usleep(100);
    pthread_create(&other, nullptr, start, nullptr);
    pthread_cancel(cancelled);
    pthread_join(other, nullptr);
    pthread_join(cancelled, nullptr);
    printf("%d\n", starts);
}
