// What Abseil orders; with a word, what it does not.
#include <absl/base/call_once.h>
#include <absl/synchronization/barrier.h>
#include <absl/synchronization/blocking_counter.h>
#include <absl/synchronization/mutex.h>
#include <absl/synchronization/notification.h>

#include <cstdio>
#include <thread>

static absl::Mutex mutex;
static absl::CondVar condition;
static absl::once_flag once;
static int count, made, result, behind_flag, behind_check, waited, met[2], racy;
static bool go, woken;

int main(int words_count, char**) {
    absl::Notification done, polled;
    absl::BlockingCounter pieces(2);
    absl::Barrier barrier(2);
    int parts[2] = {};
    auto work = [&](int at) {
        for (int time = 0; time < 5; time++) {
            absl::MutexLock hold(&mutex);
            count++;
        }
        absl::call_once(once, [] { made = 3; });
        parts[at] = made;
        if (words_count > 1) racy++;
        met[at] = 1;
        barrier.Block();
        parts[at] += met[1 - at];
        pieces.DecrementCount();
    };
    std::thread second(work, 1);
    std::thread first([&] {
        work(0);
        behind_flag = 4;
        behind_check = 5;
        {
            absl::MutexLock hold(&mutex);
            go = true;
        }
        waited = 2;
        {
            absl::MutexLock hold(&mutex);
            woken = true;
            condition.Signal();
        }
        result = 6;
        polled.Notify();
        done.Notify();
    });
    pieces.Wait();
    int sum = parts[0] + parts[1];
    mutex.LockWhen(absl::Condition(&go));
    mutex.Unlock();
    sum += behind_flag;
    mutex.Lock();
    mutex.Await(absl::Condition(+[](bool* flag) { return *flag; }, &go));
    mutex.Unlock();
    sum += behind_check;
    mutex.Lock();
    while (!woken) condition.Wait(&mutex);
    mutex.Unlock();
    sum += waited;
    while (!polled.HasBeenNotified()) std::this_thread::yield();
    done.WaitForNotification();
    sum += result;
    first.join();
    second.join();
    std::printf("%d %d\n", count, sum);
}
