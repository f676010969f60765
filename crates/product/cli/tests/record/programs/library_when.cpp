// A lock of Abseil that is acquired once a condition holds, which the library asks for itself.
#include <absl/synchronization/mutex.h>

#include <cstdio>
#include <thread>

static absl::Mutex mutex;
static int waiting;

static bool is_any(int *count) {
    return *count > 0;
}

static void give() {
    for (int time = 0; time < 4; time++) {
        mutex.Lock();
        waiting++;
        mutex.Unlock();
    }
}

int main() {
    std::thread one(give), two(give);
    for (int time = 0; time < 8; time++) {
        mutex.LockWhen(absl::Condition(is_any, &waiting));
        waiting--;
        mutex.Unlock();
    }
    one.join();
    two.join();
    printf("%d\n", waiting);
}
